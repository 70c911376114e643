#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/kernels/qr.hpp"

#include <cstdint>
#include <vector>

namespace poisson {

/// A = Q R of a tall matrix, with Q kept as a product of factors: the first step of the SVD of a tall matrix. Up to 64 columns by a
/// tree of small decompositions that reads A once (TSQR; Demmel, Grigori, Hoemmen, Langou 2012), more by blocked Householder QR.
class TallQr {
public:
  /// Decomposes `a`, m x n and column-major in the context's memory, and reuses its array. Enqueues. Preconditions: m >= n >= 1;
  /// squares of the entries do not overflow. Throws OutOfMemoryError; Interrupted.
  TallQr(Context& context, std::int64_t m, std::int64_t n, Array<double> a);

  /// R: n x n, column-major, zeros below the diagonal stored, in the context's memory.
  [[nodiscard]] Array<double>& r() { return r_; }

  /// Y = Q X with X of n x `columns` and Y of m x `columns`, column-major in the context's memory with leading dimensions n and m.
  /// Throws OutOfMemoryError; Interrupted.
  void apply(std::int64_t columns, double const* x, double* y) const;

  /// Bytes that the constructor allocates beside `a`, and those that apply allocates.
  [[nodiscard]] static std::int64_t bytes(Context const& context, std::int64_t m, std::int64_t n);
  [[nodiscard]] static std::int64_t apply_bytes(Context const& context, std::int64_t m, std::int64_t n, std::int64_t columns);

private:
  /// One level of the tree: Q of every chunk. The chunks' factors R, below each other, are the matrix of the next level.
  struct Level {
    RowChunks chunks;
    Array<double> q;
  };
  void factor_tree(Array<double> a);
  void factor_panels(Array<double> a);

  Context& context_;
  std::int64_t m_, n_;
  Array<double> r_;
  std::vector<Level> levels_;     ///< of the tree; none with panels
  Array<double> reflectors_, t_;  ///< Y of the panels with its ones and zeros, m x n; T of each panel
};

}  // namespace poisson
