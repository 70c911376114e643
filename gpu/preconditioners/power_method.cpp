#include "gpu/preconditioners/power_method.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/smoother.hpp"

#include <cmath>
#include <span>
#include <vector>

namespace poisson {

template <class V>
Array<V> pseudo_random_vector(Context& context, std::int64_t n) {
  Array<V> values(context, n);
  kernels_for<SmootherKernels<V>>(context).fill_pseudo_random(context, n, values.data());
  return values;
}

template <class V>
double largest_by_power(Matrix const& matrix, Array<V> const& diagonal, Array<V> const& start) {
  LinearOperator<V> const& a = matrix;
  Context& context = matrix.context();
  std::int64_t const n = a.n_rows();
  Array<V> x(context, n), y(context, n), zero(context, n), dots(context, 2);
  zero.set_zero();
  Array<std::int32_t> const running(context, std::span<std::int32_t const>(std::vector<std::int32_t>{0}));
  auto const& smoother = kernels_for<SmootherKernels<V>>(context);
  smoother.begin(context, n, diagonal.data(), start.data(), V(1), x.data(), running.data());
  for (int step = 0; step < steps_of_power_method - 2; ++step) {
    if (!matrix.subtract_product(zero.data(), x.data(), y.data(), running.data()))
      a.product(-1, x.data(), 0, y.data());
    smoother.begin(context, n, diagonal.data(), y.data(), V(-1), x.data(), running.data());
  }
  for (int step = 0; step < 2; ++step) {
    a.product_dot(x.data(), y.data(), dots.data() + step, running.data());
    smoother.begin(context, n, diagonal.data(), y.data(), V(1), x.data(), running.data());
  }
  std::vector<V> found(2);
  dots.download(found);
  double const before = static_cast<double>(found[0]), after = static_cast<double>(found[1]);
  return before > 0 && after > 0 ? std::sqrt(after / before) : std::nan("");
}

template Array<float> pseudo_random_vector(Context&, std::int64_t);
template Array<double> pseudo_random_vector(Context&, std::int64_t);
template double largest_by_power(Matrix const&, Array<float> const&, Array<float> const&);
template double largest_by_power(Matrix const&, Array<double> const&, Array<double> const&);

}  // namespace poisson
