#include "gpu/preconditioners/lanczos.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/smoother.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace poisson {

namespace {

constexpr int lanczos_steps = 6;
/// Where N_{k+1} / N_k is below this, times the square of the largest entry of the diagonal, u_{k+1} is rounding.
constexpr double least_growth = 1e-10;

/// *value = its sum over ranks. Both are in the backend's memory.
template <class Number>
void sum_in_place(Communicator& ranks, Context& context, Number* value) {
  if (ranks.is_alone())
    return;
  Number own{};
  context.download(&own, value, sizeof own);
  own = static_cast<Number>(sum_over(ranks, static_cast<double>(own)));
  context.upload(value, &own, sizeof own);
}

}  // namespace

template <class V>
Array<V> pseudo_random_vector(Context& context, std::int64_t n, std::int64_t first) {
  Array<V> values(context, n);
  kernels_for<SmootherKernels<V>>(context).fill_pseudo_random(context, first, n, values.data());
  return values;
}

double largest_of_tridiagonal(std::span<double const> diagonal, std::span<double const> squares) {
  // Bisection: T has an eigenvalue above t where T - t has a positive pivot, or one of 0 beside an entry (Golub and Van Loan,
  // section 8.4.1).
  double below = *std::max_element(diagonal.begin(), diagonal.end()), above = below;
  for (double const square : squares)
    above = std::max(above, below + 2 * std::sqrt(square));
  for (;;) {
    double const t = below + (above - below) / 2;
    if (!(t > below && t < above))
      return above;
    double pivot = diagonal[0] - t;
    bool larger = pivot > 0;
    for (std::size_t k = 0; k < squares.size() && !larger; ++k) {
      larger = pivot == 0 && squares[k] > 0;
      pivot = diagonal[k + 1] - t - (pivot == 0 ? 0 : squares[k] / pivot);
      larger = larger || pivot > 0;
    }
    (larger ? below : above) = t;
  }
}

template <class V>
double largest_by_lanczos(MultigridLevel<V> const& level, Array<V> const& start, Communicator& ranks) {
  LinearOperator<V> const& a = *level.matrix;
  Context& context = level.matrix->context();
  std::int64_t const n = a.n_rows();
  auto const& kernels = kernels_for<SmootherKernels<V>>(context);
  Array<V> x(context, a.n_columns()), other(context, a.n_columns()), y(context, n), energies(context, lanczos_steps);
  Array<double> norms(context, lanczos_steps + 1);
  energies.set_zero();
  norms.set_zero();
  Array<std::int32_t> const running(context, std::span<std::int32_t const>(std::vector<std::int32_t>{0}));
  LanczosStep<V> step{-1, level.diagonal.data(), start.data(), nullptr, x.data(), energies.data(), norms.data()};
  kernels.lanczos(context, n, step);
  sum_in_place(ranks, context, norms.data());
  for (int k = 0; k < lanczos_steps; ++k) {
    if (level.halo != nullptr)
      level.halo->fill(x.data());
    if (n > 0)
      a.product_dot(x.data(), y.data(), energies.data() + k, running.data());
    sum_in_place(ranks, context, energies.data() + k);
    if (k + 1 == lanczos_steps)
      break;
    step = {k, level.diagonal.data(), y.data(), x.data(), other.data(), energies.data(), norms.data()};
    kernels.lanczos(context, n, step);
    sum_in_place(ranks, context, norms.data() + k + 1);
    std::swap(x, other);
  }
  std::vector<V> found(lanczos_steps);
  std::vector<double> squares(lanczos_steps + 1), diagonal, beside;
  energies.download(found);
  norms.download(squares);
  if (!(squares[0] > 0))
    return std::nan("");
  double largest = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (k > 0) {
      double const growth = squares[k] / squares[k - 1];
      if (growth <= least_growth * largest * largest)
        break;
      beside.push_back(growth);
    }
    diagonal.push_back(static_cast<double>(found[k]) / squares[k]);
    if (!(diagonal.back() > 0) || !std::isfinite(diagonal.back()))
      return std::nan("");
    largest = std::max(largest, diagonal.back());
  }
  return largest_of_tridiagonal(diagonal, beside);
}

template Array<float> pseudo_random_vector(Context&, std::int64_t, std::int64_t);
template Array<double> pseudo_random_vector(Context&, std::int64_t, std::int64_t);
template double largest_by_lanczos(MultigridLevel<float> const&, Array<float> const&, Communicator&);
template double largest_by_lanczos(MultigridLevel<double> const&, Array<double> const&, Communicator&);

}  // namespace poisson
