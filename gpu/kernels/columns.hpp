#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>

namespace poisson {

/// A step of a smoother on one of several columns, and r = b - A x on one of them: see SmoothingKernelsFor. Nothing is done when
/// *stop is not 0.
template <class V>
struct SmoothingColumn {
  SmoothingStep<V> step;
  V const* x;
  std::int32_t const* stop;
};
template <class V>
struct ResidualColumn {
  V const* b;
  V const* x;
  V* r;
  std::int32_t const* stop;
};

}  // namespace poisson
