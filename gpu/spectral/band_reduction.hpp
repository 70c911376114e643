#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"

#include <cstdint>

namespace poisson {

/// A = Q_left B Q_right^T with B upper triangular and of `width` diagonals above the main one: the first stage of Bischof's method
/// (Hirota, Hashimoto, Yamamoto 2012, step 1-1, with an upper in place of a lower band). Panels of `width` columns and rows
/// alternate.
struct BandReduction {
  std::int64_t m = 0, n = 0;  ///< of A; m >= n
  int width = 1;
  /// m x n. Of panel p, from row and column i = p width on: Y of its columns in rows i.. and columns i .. i + width - 1, the
  /// transposed Y of its rows in rows i .. i + width - 1 and the columns after them; both with their ones and zeros.
  Array<double> reflectors;
  Array<double> t_left, t_right;  ///< T of every panel, width x width each
  Array<double> band;             ///< B, as BandView in gpu/kernels/svd.hpp reads it
};

/// Reduces `a`, m x n with m >= n >= 1, which the result takes over. 1 <= width < max(n, 2). 8/3 n^3 flops for m = n, nearly all in
/// products: each panel pair updates the rest of A once, by both block reflectors together (rank 2 width; Wu's combination).
/// Without `keep` the reflectors are not kept.
[[nodiscard]] BandReduction reduce_to_band(Context& context, std::int64_t m, std::int64_t n, int width, Array<double> a, bool keep);

/// The number of reflectors to apply as one block: on a device memory bounds products of rank 64, but not those of rank 256; a CPU
/// gains from fewer operations where n is small.
[[nodiscard]] constexpr std::int64_t merged_columns(Backend backend) {
  return backend == Backend::cuda ? 256 : 128;
}

/// X = Q_left X, X m x columns (X = Q_right X, X n x columns), by blocks of as many panels as have `merged` columns, one at least;
/// 0: merged_columns. Precondition: reduced with `keep`.
void apply_left(Context& context, BandReduction const& reduction, std::int64_t columns, double* x, std::int64_t ldx,
                std::int64_t merged = 0);
void apply_right(Context& context, BandReduction const& reduction, std::int64_t columns, double* x, std::int64_t ldx,
                 std::int64_t merged = 0);

/// Bytes that reduce_to_band allocates beside `a`, those of the result included; and apply_left at most, with its default.
[[nodiscard]] std::int64_t reduction_bytes(std::int64_t m, std::int64_t n, int width, bool keep);
[[nodiscard]] std::int64_t apply_reduction_bytes(std::int64_t m, std::int64_t n, int width, std::int64_t columns);

}  // namespace poisson
