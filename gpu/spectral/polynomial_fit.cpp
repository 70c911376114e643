#include "gpu/spectral/polynomial_fit.hpp"

#include "gpu/spectral/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace poisson {

namespace {

/// Exponents of all monomials in `n_variables` up to the total degree.
std::vector<std::vector<int>> monomials(std::size_t n_variables, int degree) {
  std::vector<std::vector<int>> exponents{std::vector<int>(n_variables, 0)};
  for (std::size_t a = 0; a < n_variables; ++a) {
    std::vector<std::vector<int>> longer;
    for (auto const& e : exponents)
      for (int power = 0; power + std::accumulate(e.begin(), e.end(), 0) <= degree; ++power) {
        longer.push_back(e);
        longer.back()[a] = power;
      }
    exponents = std::move(longer);
  }
  return exponents;
}

}  // namespace

double PolynomialFit::squared_misfit(std::span<double const> values) const {
  std::vector<double> rest(values.begin(), values.end());
  for (std::int64_t j = 0; j < range.n_columns; ++j) {
    double const* const q = range.column(j);
    double const along = std::inner_product(rest.begin(), rest.end(), q, 0.0);
    for (std::size_t i = 0; i < rest.size(); ++i)
      rest[i] -= along * q[i];
  }
  return std::inner_product(rest.begin(), rest.end(), rest.begin(), 0.0);
}

PolynomialFit fit_polynomial(DenseMatrix const& points, std::span<double const> at, int degree, Context& host) {
  std::int64_t const m = points.n_rows, n_variables = points.n_columns;
  // Variables over [-1, 1], so that powers stay of one size.
  auto const scaled = [&](std::int64_t variable, double x) {
    auto const [low, high] = std::minmax_element(points.column(variable), points.column(variable) + m);
    return *high > *low ? (2 * x - *low - *high) / (*high - *low) : 0.0;
  };
  auto const exponents = monomials(static_cast<std::size_t>(n_variables), degree);
  PolynomialFit fit;
  fit.degree = degree;
  fit.terms = static_cast<std::int64_t>(exponents.size());
  auto const monomial = [&](std::int64_t term, auto const& coordinate) {
    double value = 1;
    for (std::int64_t a = 0; a < n_variables; ++a)
      value *= std::pow(scaled(a, coordinate(a)), exponents[static_cast<std::size_t>(term)][static_cast<std::size_t>(a)]);
    return value;
  };
  DenseMatrix table(m, fit.terms);
  std::vector<double> target;
  for (std::int64_t t = 0; t < fit.terms; ++t) {
    for (std::int64_t i = 0; i < m; ++i)
      table(i, t) = monomial(t, [&](std::int64_t a) { return points(i, a); });
    target.push_back(monomial(t, [&](std::int64_t a) { return at[static_cast<std::size_t>(a)]; }));
  }
  Svd const decomposed = svd(table, {}, host);
  std::int64_t const rank = spectrum_of(decomposed.values, m, fit.terms).rank;
  fit.range = DenseMatrix(m, rank);
  fit.weights.assign(static_cast<std::size_t>(m), 0.0);
  for (std::int64_t k = 0; k < rank; ++k) {
    std::copy_n(decomposed.u.column(k), m, fit.range.column(k));
    double const along = std::inner_product(target.begin(), target.end(), decomposed.v.column(k), 0.0) /
                         decomposed.values[static_cast<std::size_t>(k)];
    for (std::int64_t i = 0; i < m; ++i)
      fit.weights[static_cast<std::size_t>(i)] += along * decomposed.u(i, k);
  }
  return fit;
}

}  // namespace poisson
