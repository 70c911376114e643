#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/kernels/qr.hpp"

#include <cstdint>
#include <vector>

namespace poisson {

/// A = Q R of a tall matrix with Q kept in factors: the first step of the SVD of a tall matrix. Up to
/// 64 columns by a tree of small decompositions (TSQR), which reads A once; more by panels of Householder reflectors and products.
class TallQr {
public:
  /// Takes over `a`, m x n with m >= n >= 1, column-major. Squares of the entries do not overflow. Enqueues.
  TallQr(Context& context, std::int64_t m, std::int64_t n, Array<double> a);

  /// R: n x n with its zeros, in the context's memory.
  [[nodiscard]] Array<double>& r() { return r_; }

  /// Y = Q X; X is n x columns and Y m x columns, with leading dimensions n and m.
  void apply(std::int64_t columns, double const* x, double* y) const;

  /// Bytes of the factors beside A; and of the scratch memory of apply.
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
