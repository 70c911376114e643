#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"

#include <cstdint>

namespace poisson {

/// A step of Richardson's method for A x = b in the arithmetic V, float or double: x_after = x + factor D^-1 (b - A x). Pointers
/// are in the backend's memory. 16 bytes a row in float, besides the matrix.
template <class V>
struct SmoothingStep {
  V const* diagonal = nullptr;  ///< D
  V const* b = nullptr;
  V factor = 0;
  V* x_after = nullptr;       ///< on the host it also holds what is not complete yet
  double* outside = nullptr;  ///< if not null, x_after goes here instead
};

/// What a step reads at an unknown besides x; it may be loaded before A x is there.
template <class V>
struct StepTerms {
  V b, diagonal;
};
template <class V>
[[nodiscard, gnu::always_inline]] inline POISSON_HOST_DEVICE StepTerms<V> step_terms(SmoothingStep<V> const& step, std::int64_t i,
                                                                                     V diagonal) {
  return {step.b[i], diagonal};
}
template <class V>
[[nodiscard, gnu::always_inline]] inline POISSON_HOST_DEVICE StepTerms<V> step_terms(SmoothingStep<V> const& step, std::int64_t i) {
  return step_terms(step, i, step.diagonal[i]);
}

/// The step at unknown i, where y = (A x)_i and x = x_i.
template <class V>
[[gnu::always_inline]] inline POISSON_HOST_DEVICE void take_step(SmoothingStep<V> const& step, std::int64_t i, V y, V x,
                                                                 StepTerms<V> const& terms) {
  V const after = x + step.factor * (terms.b - y) / terms.diagonal;
  if (step.outside != nullptr)
    step.outside[i] = static_cast<double>(after);
  else
    step.x_after[i] = after;
}
template <class V>
[[gnu::always_inline]] inline POISSON_HOST_DEVICE void take_step(SmoothingStep<V> const& step, std::int64_t i, V y, V x) {
  take_step(step, i, y, x, step_terms(step, i));
}

/// What a smoother does with a matrix in one pass over it, with vectors of V, in which rows are summed. Nothing is done when *stop
/// is not 0. On a device calls enqueue work.
template <class View, class V>
class SmoothingKernelsFor {
public:
  virtual ~SmoothingKernelsFor() = default;
  /// Precondition: step.x_after is not x.
  virtual void smooth(Context& context, View const& a, SmoothingStep<V> const& step, V const* x,
                      std::int32_t const* stop) const = 0;
  /// r = b - A x. Precondition: r is neither b nor x.
  virtual void subtract_product(Context& context, View const& a, V const* b, V const* x, V* r, std::int32_t const* stop) const = 0;
};

template <class View>
class SmoothingKernels : public SmoothingKernelsFor<View, float>, public SmoothingKernelsFor<View, double> {
public:
  using SmoothingKernelsFor<View, float>::smooth, SmoothingKernelsFor<View, double>::smooth;
  using SmoothingKernelsFor<View, float>::subtract_product, SmoothingKernelsFor<View, double>::subtract_product;
};

}  // namespace poisson
