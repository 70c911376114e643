#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"

#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace poisson {

/// Types of a product: matrix entries stored in Stored_ times vectors of Number_.
template <class Stored_, class Number_>
struct ValuePair {
  using Stored = Stored_;
  using Number = Number_;
};
template <class... Pairs>
struct ValuePairList {};

/// The pairs for which every format has products on every backend; another one is added here. Of several pairs that fit a matrix
/// the first is used: products with vectors of double do not read the low values of a matrix in double_double.
using ValuePairs = ValuePairList<ValuePair<float, float>, ValuePair<float, double>, ValuePair<double, double>,
                                 ValuePair<DoubleDouble, DoubleDouble>, ValuePair<double, DoubleDouble>>;

/// Pointers to the entries of a view, in the layout of its format: `values` in double, and `low_values` with their low parts (null
/// if the entries are doubles); or `single_values` alone. The last argument selects the type.
template <class View>
[[nodiscard]] float const* stored_values(View const& a, float) {
  return a.single_values;
}
template <class View>
[[nodiscard]] double const* stored_values(View const& a, double) {
  return a.values;
}
template <class View>
[[nodiscard]] ConstPointer<DoubleDouble> stored_values(View const& a, DoubleDouble) {
  return {a.values, a.low_values};
}

/// Whether the entries of the view are stored in Stored. A matrix without entries may have null pointers only, and then counts as
/// stored in anything.
template <class Stored, class View>
[[nodiscard]] bool is_stored_in(View const& a) {
  if constexpr (std::is_same_v<Stored, float>)
    return a.single_values != nullptr || a.values == nullptr;
  else if constexpr (std::is_same_v<Stored, DoubleDouble>)
    return a.low_values != nullptr;
  else
    return a.single_values == nullptr;
}

/// Calls call(values) with a ConstPointer to the entries as they are stored, for products with vectors of T. Throws
/// std::logic_error where ValuePairs have no such product.
template <class T, class View, class Call, class... Pairs>
void with_stored_values(View const& a, Call const& call, ValuePairList<Pairs...>) {
  auto const call_if = [&]<class Pair>(Pair) {
    using Stored = typename Pair::Stored;
    if constexpr (std::is_same_v<typename Pair::Number, T>)
      if (is_stored_in<Stored>(a)) {
        call(stored_values(a, Stored(0)));
        return true;
      }
    return false;
  };
  if (!(... || call_if(Pairs())))
    throw std::logic_error("a matrix has no product with vectors in this precision");
}

/// Products of a format on one backend with vectors of T. Rows, and x . y, are summed by DotSum<T> (core/dot_sum.hpp), or by
/// several that are added up: with vectors of float in double, rounded at the end; except that cds and half_cds on the host, which
/// keep partial sums in y, add in float.
template <class View, class T>
class ProductKernelsFor {
public:
  virtual ~ProductKernelsFor() = default;
  /// y = alpha A x + beta y; y is not read when beta = 0.
  virtual void product(Context& context, View const& a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const = 0;
  /// y = A x and *dot = x . y, unless *stop is set (see LinearOperator::product_dot).
  virtual void product_dot(Context& context, View const& a, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) const = 0;
};

/// The products of a format on one backend. View_ is the matrix as pointers into the backend's memory; see stored_values.
template <class View_>
class ProductKernels : public ProductKernelsFor<View_, float>,
                       public ProductKernelsFor<View_, double>,
                       public ProductKernelsFor<View_, DoubleDouble> {
public:
  using View = View_;
  using ProductKernelsFor<View, float>::product, ProductKernelsFor<View, float>::product_dot;
  using ProductKernelsFor<View, double>::product, ProductKernelsFor<View, double>::product_dot;
  using ProductKernelsFor<View, DoubleDouble>::product, ProductKernelsFor<View, DoubleDouble>::product_dot;
};

/// Implements the products of Kernels by two static member templates of Implementation:
///   multiply<T>(context, a, values, alpha, x, beta, y)
///   multiply_dot<T>(context, a, values, x, y, dot, stop)
/// where `values` is a ConstPointer to the entries as they are stored.
template <class Kernels, class Implementation, class Pairs = ValuePairs>
class ProductsByTemplates : public Kernels {
public:
  using typename Kernels::View;
  void product(Context& context, View const& a, float alpha, float const* x, float beta, float* y) const final {
    multiply(context, a, alpha, x, beta, y);
  }
  void product(Context& context, View const& a, double alpha, double const* x, double beta, double* y) const final {
    multiply(context, a, alpha, x, beta, y);
  }
  void product(Context& context, View const& a, DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta,
               Pointer<DoubleDouble> y) const final {
    multiply(context, a, alpha, x, beta, y);
  }
  void product_dot(Context& context, View const& a, float const* x, float* y, float* dot, std::int32_t const* stop) const final {
    multiply_dot(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, View const& a, double const* x, double* y, double* dot, std::int32_t const* stop) const final {
    multiply_dot(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, View const& a, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const final {
    multiply_dot(context, a, x, y, dot, stop);
  }

private:
  template <class T>
  static void multiply(Context& context, View const& a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    with_stored_values<T>(
        a, [&](auto values) { Implementation::template multiply<T>(context, a, values, alpha, x, beta, y); }, Pairs());
  }
  template <class T>
  static void multiply_dot(Context& context, View const& a, ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) {
    with_stored_values<T>(
        a, [&](auto values) { Implementation::template multiply_dot<T>(context, a, values, x, y, dot, stop); }, Pairs());
  }
};

}  // namespace poisson
