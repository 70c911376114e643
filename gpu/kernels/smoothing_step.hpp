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

// What a pass over the rows of a matrix does with y = (A x)_i and x = x_i. What `load` reads may be asked for before y is known;
// with `diagonal` where that entry is known: diagonal(i), where it is used.

template <class V>
struct SmoothingRow {
  SmoothingStep<V> step;
  using Terms = StepTerms<V>;
  [[nodiscard]] POISSON_HOST_DEVICE V diagonal(std::int64_t i) const { return step.diagonal[i]; }
  [[nodiscard]] POISSON_HOST_DEVICE Terms load(std::int64_t i) const { return step_terms(step, i); }
  [[nodiscard]] POISSON_HOST_DEVICE Terms load(std::int64_t i, V diagonal) const { return step_terms(step, i, diagonal); }
  POISSON_HOST_DEVICE void operator()(std::int64_t i, V y, V x, Terms const& terms) const { take_step(step, i, y, x, terms); }
  POISSON_HOST_DEVICE void operator()(std::int64_t i, V y, V x) const { take_step(step, i, y, x); }
};

template <class V>
struct ResidualRow {
  V const* __restrict__ b;
  V* __restrict__ r;
  using Terms = V;
  [[nodiscard]] POISSON_HOST_DEVICE V diagonal(std::int64_t) const { return 0; }
  [[nodiscard]] POISSON_HOST_DEVICE Terms load(std::int64_t i) const { return b[i]; }
  [[nodiscard]] POISSON_HOST_DEVICE Terms load(std::int64_t i, V) const { return b[i]; }
  POISSON_HOST_DEVICE void operator()(std::int64_t i, V y, V, Terms const& own) const { r[i] = own - y; }
  POISSON_HOST_DEVICE void operator()(std::int64_t i, V y, V x) const { (*this)(i, y, x, load(i)); }
};

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

/// Implements these kernels, which Base declares, by a static member template of Implementation:
///   finish_rows<V>(context, a, x, finish, stop)
/// which calls finish, a SmoothingRow or ResidualRow of V, for every row.
template <class Base, class Implementation>
class SmoothingByTemplates : public Base {
public:
  using typename Base::View;
  void smooth(Context& context, View const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const final {
    Implementation::template finish_rows<float>(context, a, x, SmoothingRow<float>{step}, stop);
  }
  void smooth(Context& context, View const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const final {
    Implementation::template finish_rows<double>(context, a, x, SmoothingRow<double>{step}, stop);
  }
  void subtract_product(Context& context, View const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const final {
    Implementation::template finish_rows<float>(context, a, x, ResidualRow<float>{b, r}, stop);
  }
  void subtract_product(Context& context, View const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const final {
    Implementation::template finish_rows<double>(context, a, x, ResidualRow<double>{b, r}, stop);
  }
};

}  // namespace poisson
