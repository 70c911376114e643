#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>

namespace poisson {

/// A step of a smoother on one of several columns, and r = b - A x on one of them: see SmoothingKernelsFor. Nothing is done when
/// *stop is not 0. Precondition: the steps of all columns have one diagonal.
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

/// One of several columns that go to a coarser level of multigrid, and one that comes back: see GridTransfer.
template <class V>
struct RestrictedColumn {
  V const* r;
  V* b;
  V* x;
  std::int32_t const* stop;
};
template <class V>
struct ProlongedColumn {
  V const* e;
  V* x;
  std::int32_t const* stop;
};

}  // namespace poisson
