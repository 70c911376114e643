#include "gpu/spectral/reduced_model.hpp"

#include "gpu/kernels/blas.hpp"

#include <algorithm>
#include <cmath>

namespace poisson {

namespace {

/// sum w u v
double weighted_dot(std::span<double const> w, std::span<double const> u, std::span<double const> v) {
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i)
    sum += w[i] * u[i] * v[i];
  return sum;
}

/// The part of the systems' coefficients that no polynomial of the fit can meet, relative to all of them. `part` is a or b.
double misfit(PolynomialFit const& fit, std::vector<ReducedSystem> const& systems, std::vector<double> ReducedSystem::*part) {
  double all = 0, missed = 0;
  std::vector<double> values(systems.size());
  for (std::size_t e = 0; e < (systems.front().*part).size(); ++e) {
    for (std::size_t i = 0; i < systems.size(); ++i)
      all += std::pow(values[i] = (systems[i].*part)[e], 2);
    missed += fit.squared_misfit(values);
  }
  return all > 0 ? std::sqrt(missed / all) : 0;
}

}  // namespace

ProperOrthogonalDecomposition proper_orthogonal_decomposition(DenseMatrix snapshots, std::span<double const> weights,
                                                              std::int64_t max_modes, Context& context) {
  std::int64_t const n = snapshots.n_rows, m = snapshots.n_columns;
  ProperOrthogonalDecomposition result;
  result.scaled = std::move(snapshots);
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      result.scaled(i, j) *= std::sqrt(weights[static_cast<std::size_t>(i)]);
  result.svd = svd(result.scaled, {}, context);
  result.spectrum = spectrum_of(result.svd.values, n, m);
  result.modes = DenseMatrix(n, std::min(max_modes, result.spectrum.rank));
  for (std::int64_t k = 0; k < result.modes.n_columns; ++k)
    for (std::int64_t i = 0; i < n; ++i)
      result.modes(i, k) = result.svd.u(i, k) / std::sqrt(weights[static_cast<std::size_t>(i)]);
  return result;
}

std::vector<double> coordinates(DenseMatrix const& modes, std::span<double const> weights, std::span<double const> u) {
  std::vector<double> result;
  for (std::int64_t k = 0; k < modes.n_columns; ++k)
    result.push_back(weighted_dot(weights, u, {modes.column(k), u.size()}));
  return result;
}

double weighted_norm(std::span<double const> weights, std::span<double const> u) {
  return std::sqrt(weighted_dot(weights, u, u));
}

HostVector<double> remainder(std::span<double const> u, DenseMatrix const& modes, std::span<double const> c) {
  HostVector<double> rest(u.begin(), u.end());
  for (std::size_t k = 0; k < c.size(); ++k) {
    double const* const mode = modes.column(static_cast<std::int64_t>(k));
    for (std::size_t i = 0; i < rest.size(); ++i)
      rest[i] -= c[k] * mode[i];
  }
  return rest;
}

ReducedSystem project(LinearOperator<double> const& a, std::span<double const> rhs, DenseMatrix const& modes, Context& host) {
  std::int64_t const n = modes.n_rows, r = modes.n_columns;
  DenseMatrix images(n, r);
  for (std::int64_t k = 0; k < r; ++k)
    a.product(1, modes.column(k), 0, images.column(k));
  ReducedSystem reduced{std::vector<double>(static_cast<std::size_t>(r * r)), std::vector<double>(static_cast<std::size_t>(r))};
  gemm(host, true, false, r, r, n, 1, modes.values.data(), n, images.values.data(), n, 0, reduced.a.data(), r);
  gemm(host, true, false, r, 1, n, 1, modes.values.data(), n, rhs.data(), n, 0, reduced.b.data(), r);
  for (std::int64_t i = 0; i < r; ++i)  // symmetric to the last bit; then rows and columns are the same
    for (std::int64_t j = 0; j < i; ++j) {
      double& lower = reduced.a[static_cast<std::size_t>(i * r + j)];
      double& upper = reduced.a[static_cast<std::size_t>(j * r + i)];
      lower = upper = (lower + upper) / 2;
    }
  return reduced;
}

std::vector<double> solve_leading(ReducedSystem const& system, std::size_t k) {
  std::size_t const r = system.b.size();
  std::vector<double> a(k * k), b(system.b.begin(), system.b.begin() + static_cast<std::ptrdiff_t>(k));
  for (std::size_t i = 0; i < k; ++i)
    std::copy_n(system.a.begin() + static_cast<std::ptrdiff_t>(i * r), k, a.begin() + static_cast<std::ptrdiff_t>(i * k));
  return solve_small(std::move(a), std::move(b));
}

ReducedSystem combine(std::vector<ReducedSystem> const& systems, std::span<double const> weights) {
  ReducedSystem sum{std::vector<double>(systems.front().a.size(), 0.0), std::vector<double>(systems.front().b.size(), 0.0)};
  for (std::size_t i = 0; i < systems.size(); ++i) {
    for (std::size_t e = 0; e < sum.a.size(); ++e)
      sum.a[e] += weights[i] * systems[i].a[e];
    for (std::size_t e = 0; e < sum.b.size(); ++e)
      sum.b[e] += weights[i] * systems[i].b[e];
  }
  return sum;
}

PolynomialFit fit_systems(std::vector<ReducedSystem> const& systems, DenseMatrix const& points, std::span<double const> at,
                          Context& host) {
  constexpr int highest = 6;
  constexpr double exact = 1e-10;
  PolynomialFit best = fit_polynomial(points, at, 0, host);
  for (int degree = 1; degree <= highest; ++degree) {
    if (best.terms < points.n_rows && misfit(best, systems, &ReducedSystem::a) < exact &&
        misfit(best, systems, &ReducedSystem::b) < exact)
      break;
    PolynomialFit fit = fit_polynomial(points, at, degree, host);
    if (fit.terms > points.n_rows)
      break;
    best = std::move(fit);
  }
  return best;
}

std::vector<double> solve_small(std::vector<double> a, std::vector<double> b) {
  std::size_t const n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k]))
        pivot = i;
    for (std::size_t j = k; j < n; ++j)
      std::swap(a[k * n + j], a[pivot * n + j]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      double const factor = a[k * n + k] != 0 ? a[i * n + k] / a[k * n + k] : std::nan("");
      for (std::size_t j = k + 1; j < n; ++j)
        a[i * n + j] -= factor * a[k * n + j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j)
      b[k] -= a[k * n + j] * b[j];
    b[k] = a[k * n + k] != 0 ? b[k] / a[k * n + k] : std::nan("");
  }
  return b;
}

}  // namespace poisson
