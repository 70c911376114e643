#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"

#include <cstdint>

namespace poisson {

/// A = Q_left B Q_right^T with orthogonal Q and an upper triangular band matrix B, which has `width` diagonals above the main one:
/// the first stage of Bischof's method (Hirota, Hashimoto, Yamamoto 2012, step 1-1, with an upper instead of a lower band). Panels
/// of `width` columns and of `width` rows are decomposed alternately.
struct BandReduction {
  std::int64_t m = 0, n = 0;  ///< of A; m >= n
  int width = 1;
  /// m x n, column-major, in the context's memory. Each panel's reflectors are a block I - Y T Y^T. Panel p begins at row and
  /// column i = p width: Y of its columns is in rows i, i + 1, ... and columns i ... i + width - 1; the transposed Y of its rows in
  /// rows i ... i + width - 1 and all columns right of these. Ones and zeros of Y are stored.
  Array<double> reflectors;
  Array<double> t_left, t_right;  ///< T of every panel, width x width each
  Array<double> band;             ///< B, as BandView in gpu/kernels/svd.hpp reads it
};

/// Reduces `a`, m x n and column-major in the context's memory, whose array becomes part of the result. 8/3 n^3 flops for m = n,
/// nearly all in products: each pair of panels updates the rest of A once, by both block reflectors together (rank 2 width; Wu's
/// combination). Without `keep` the reflectors are discarded. Preconditions: m >= n >= 1; 1 <= width < max(n, 2); entries are
/// finite and their squares do not overflow. Throws OutOfMemoryError; Interrupted.
[[nodiscard]] BandReduction reduce_to_band(Context& context, std::int64_t m, std::int64_t n, int width, Array<double> a, bool keep);

/// How many reflectors are applied as one block by default. On a device products of rank 64 are bound by memory, those of rank 256
/// are not; on the host larger blocks cost operations that do not pay where n is small.
[[nodiscard]] constexpr std::int64_t merged_columns(Backend backend) {
  return backend == Backend::cuda ? 256 : 128;
}

/// X = Q_left X with X of m x `columns`, and X = Q_right X with X of n x `columns`; X is column-major in the context's memory with
/// leading dimension ldx. Panels are combined to blocks of `merged` reflectors (0: merged_columns), at least one panel each.
/// Precondition: reduced with `keep`. Throws OutOfMemoryError; Interrupted.
void apply_left(Context& context, BandReduction const& reduction, std::int64_t columns, double* x, std::int64_t ldx,
                std::int64_t merged = 0);
void apply_right(Context& context, BandReduction const& reduction, std::int64_t columns, double* x, std::int64_t ldx,
                 std::int64_t merged = 0);

/// Bytes that reduce_to_band allocates beside `a`, including the result; and those that apply_left and apply_right allocate at
/// most, with the default of `merged`.
[[nodiscard]] std::int64_t reduction_bytes(std::int64_t m, std::int64_t n, int width, bool keep);
[[nodiscard]] std::int64_t apply_reduction_bytes(std::int64_t m, std::int64_t n, int width, std::int64_t columns);

}  // namespace poisson
