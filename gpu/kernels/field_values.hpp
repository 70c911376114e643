#pragma once

#include "gpu/core/host_device.hpp"
#include "gpu/kernels/fields.hpp"

#include <cmath>
#include <cstdint>

namespace poisson {

/// w_i x_i.
[[nodiscard]] inline POISSON_HOST_DEVICE double weighted_value(double const* x, DiagonalWeights weights, std::int64_t i) {
  if (weights.diagonal == nullptr || weights.diagonal[i] == 0)
    return x[i];
  return std::sqrt(weights.largest / std::fabs(weights.diagonal[i])) * x[i];
}

/// 2^exponent as two factors, of which each is a normal number.
struct PowerOfTwo {
  double first, second;
  explicit PowerOfTwo(int exponent) : first(std::scalbn(1.0, exponent / 2)), second(std::scalbn(1.0, exponent - exponent / 2)) {}
  [[nodiscard]] POISSON_HOST_DEVICE double times(double x) const { return x * first * second; }
};

}  // namespace poisson
