#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// A matrix by its diagonals: values[k * n_rows + i] = a(i, i + offsets[k]), 0 where that entry is not stored, and where there is
/// no such column.
struct CdsView {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  std::span<std::int32_t const> offsets;          ///< host memory; column - row, ascending
  std::int32_t const* backend_offsets = nullptr;  ///< the same in the backend's memory
  double const* values = nullptr;
};

/// Every product adds the terms of a row by ascending offset, so that results depend neither on the number of threads nor on the
/// launch. All entries of a diagonal count as stored: an infinity in x makes NaN of a row that has a zero there.
class CdsKernels {
public:
  virtual ~CdsKernels() = default;
  /// y = alpha A x + beta y; y is not read when beta = 0.
  virtual void product(Context& context, CdsView const& a, double alpha, double const* x, double beta, double* y) const = 0;
  /// y = A x and *dot = x . y, unless *stop is set (see Operator::product_dot).
  virtual void product_dot(Context& context, CdsView const& a, double const* x, double* y, double* dot,
                           std::int32_t const* stop) const = 0;

  static CdsKernels const& host();
  static CdsKernels const& cuda();
};

}  // namespace poisson
