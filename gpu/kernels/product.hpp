#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"

#include <cstdint>
#include <type_traits>

namespace poisson {

/// Products of a format on one backend, with vectors of double and of DoubleDouble. View_ is what the backend sees of a matrix; its
/// `values` are the entries rounded to double, its `low_values` what that leaves out, laid out alike, or null where the entries are
/// doubles. Products in double read no low values. In DoubleDouble a row is a DotSum (core/dot_sum.hpp), or several that are added
/// up, and so is x . y.
template <class View_>
class ProductKernels {
public:
  using View = View_;
  virtual ~ProductKernels() = default;
  /// y = alpha A x + beta y; y is not read when beta = 0.
  virtual void product(Context& context, View const& a, double alpha, double const* x, double beta, double* y) const = 0;
  virtual void product(Context& context, View const& a, DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta,
                       Pointer<DoubleDouble> y) const = 0;
  /// y = A x and *dot = x . y, unless *stop is set (see LinearOperator::product_dot).
  virtual void product_dot(Context& context, View const& a, double const* x, double* y, double* dot,
                           std::int32_t const* stop) const = 0;
  virtual void product_dot(Context& context, View const& a, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y,
                           DoubleDouble* dot, std::int32_t const* stop) const = 0;
};

/// The products of Kernels by two templates of Written, both static:
///   multiply<T>(context, a, values, alpha, x, beta, y)
///   multiply_dot<T>(context, a, values, x, y, dot, stop)
/// where `values` is a ConstPointer to the entries, of double or of DoubleDouble.
template <class Kernels, class Written>
class ProductsByTemplates : public Kernels {
  using View = typename Kernels::View;

public:
  void product(Context& context, View const& a, double alpha, double const* x, double beta, double* y) const final {
    Written::template multiply<double>(context, a, a.values, alpha, x, beta, y);
  }
  void product(Context& context, View const& a, DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta,
               Pointer<DoubleDouble> y) const final {
    if (a.low_values == nullptr)
      Written::template multiply<DoubleDouble>(context, a, a.values, alpha, x, beta, y);
    else
      Written::template multiply<DoubleDouble>(context, a, both_parts(a), alpha, x, beta, y);
  }
  void product_dot(Context& context, View const& a, double const* x, double* y, double* dot, std::int32_t const* stop) const final {
    Written::template multiply_dot<double>(context, a, a.values, x, y, dot, stop);
  }
  void product_dot(Context& context, View const& a, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const final {
    if (a.low_values == nullptr)
      Written::template multiply_dot<DoubleDouble>(context, a, a.values, x, y, dot, stop);
    else
      Written::template multiply_dot<DoubleDouble>(context, a, both_parts(a), x, y, dot, stop);
  }

private:
  static ConstPointer<DoubleDouble> both_parts(View const& a) { return {a.values, a.low_values}; }
};

}  // namespace poisson
