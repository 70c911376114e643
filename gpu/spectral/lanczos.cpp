#include "gpu/spectral/lanczos.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/vectors.hpp"
#include "gpu/spectral/bidiagonal.hpp"
#include "gpu/spectral/random_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace poisson {

namespace {

/// Computes `values` from the alpha_k and beta_k of cg. They make the tridiagonal matrix R^T R. R is bidiagonal with
/// 1 / sqrt(alpha_k) on the diagonal and sqrt(beta_k / alpha_k) above. The eigenvalues are squares of the singular values of R,
/// which have small relative errors.
void update_extremes(ExtremeEigenvalues& values, std::span<double const> alpha, std::span<double const> beta, bool singular,
                     std::int64_t n, Context& host) {
  std::size_t const k = alpha.size();
  std::vector<double> d(k), e(k - 1);
  for (std::size_t i = 0; i < k; ++i)
    d[i] = 1 / std::sqrt(alpha[i]);
  for (std::size_t i = 0; i + 1 < k; ++i)
    e[i] = std::sqrt(beta[i] / alpha[i]);
  auto const s = bidiagonal_values(host, d, e);
  std::size_t last = k - 1;
  // Rounding brings the null vector back in, after many iterations.
  double const ghost = std::sqrt(static_cast<double>(n) * std::numeric_limits<double>::epsilon()) * s.front();
  while (singular && last > 0 && s[last] < ghost)
    --last;
  values = {s.front() * s.front(), s[last] * s[last], static_cast<std::int64_t>(k), values.converged};
}

}  // namespace

ExtremeEigenvalues extreme_eigenvalues(LinearOperator<double> const& a, std::span<std::uint8_t const> fixed,
                                       std::span<double const> null_vector, Context& context, std::int64_t max_iterations) {
  std::int64_t const n = a.n_rows();
  auto const host = make_context(Backend::cpu);
  auto const& vectors = kernels_for<VectorKernels<double>>(context);
  HostVector<double> start = random_matrix(n, 1, 1).values;
  for (std::size_t i = 0; i < start.size(); ++i)
    if (fixed[i] != 0)
      start[i] = 0;
  if (!null_vector.empty()) {
    double const along = std::inner_product(start.begin(), start.end(), null_vector.begin(), 0.0) /
                         std::inner_product(null_vector.begin(), null_vector.end(), null_vector.begin(), 0.0);
    for (std::size_t i = 0; i < start.size(); ++i)
      start[i] -= along * null_vector[i];
  }
  Array<double> r(context, std::span<double const>(start)), p(context, std::span<double const>(start)), q(context, n);
  double const one_value = 1;
  Array<double> const one(context, {&one_value, 1});
  Array<double> result(context, 1);
  auto const dot = [&](Array<double> const& x, Array<double> const& y) {
    vectors.dot(context, n, x.data(), y.data(), result.data());
    double value = 0;
    result.download({&value, 1});
    return value;
  };
  auto const add = [&](double factor, Array<double> const& x, double scale, Array<double>& y) {  // y = factor x + scale y
    gemm(context, false, false, n, 1, 1, factor, x.data(), n, one.data(), 1, scale, y.data(), n);
  };

  constexpr double smallest_square = 1e-20;  // of the residual, relative: beyond it is rounding
  constexpr double converged_change = 1e-3;
  std::vector<double> alpha, beta;
  ExtremeEigenvalues values, before;
  double rr = dot(r, r);
  double const first = rr;
  std::int64_t next_look = 10;
  while (static_cast<std::int64_t>(alpha.size()) < max_iterations && rr > smallest_square * first) {
    if (interrupt_requested())
      throw Interrupted();
    a.product(1, p.data(), 0, q.data());
    double const curvature = dot(p, q);
    if (!(curvature > 0))
      break;
    alpha.push_back(rr / curvature);
    add(-alpha.back(), q, 1, r);
    double const next = dot(r, r);
    beta.push_back(next / rr);
    rr = next;
    add(1, r, beta.back(), p);
    if (static_cast<std::int64_t>(alpha.size()) < next_look)
      continue;
    next_look += std::max<std::int64_t>(10, next_look / 10);
    update_extremes(values, alpha, beta, !null_vector.empty(), n, *host);
    values.converged = std::abs(values.largest - before.largest) <= converged_change * values.largest &&
                       std::abs(values.smallest - before.smallest) <= converged_change * values.smallest;
    if (values.converged)
      return values;
    before = values;
  }
  if (alpha.empty())
    throw InputError("the operator is zero, or not positive definite");
  values.converged = rr <= smallest_square * first;  // all of the Krylov space is there
  update_extremes(values, alpha, beta, !null_vector.empty(), n, *host);
  return values;
}

}  // namespace poisson
