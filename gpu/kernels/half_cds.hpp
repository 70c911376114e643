#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// A symmetric matrix by its main diagonal and the diagonals on its left: values[k * n + i] = a(i, i - offsets[k]), 0 where i <
/// offsets[k].
struct HalfCdsView {
  std::int64_t n = 0;
  std::span<std::int32_t const> offsets;          ///< host memory; ascending, the first is 0
  std::int32_t const* backend_offsets = nullptr;  ///< the same in the backend's memory
  double const* values = nullptr;
};

/// Every product adds the terms of a row in the same order: main diagonal, lower diagonals by ascending offset, upper diagonals
/// by ascending offset, so that results depend neither on the number of threads nor on the launch.
class HalfCdsKernels {
public:
  virtual ~HalfCdsKernels() = default;
  /// y = alpha A x + beta y; y is not read when beta = 0.
  virtual void product(Context& context, HalfCdsView const& a, double alpha, double const* x, double beta, double* y) const = 0;
  /// y = A x and *dot = x . y, unless *stop is set (see Operator::product_dot).
  virtual void product_dot(Context& context, HalfCdsView const& a, double const* x, double* y, double* dot,
                           std::int32_t const* stop) const = 0;

  static HalfCdsKernels const& host();
  static HalfCdsKernels const& cuda();
};

}  // namespace poisson
