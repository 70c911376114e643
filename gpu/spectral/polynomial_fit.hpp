#pragma once

#include "gpu/core/context.hpp"
#include "gpu/spectral/svd.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace poisson {

/// A least squares fit of a polynomial in several variables, evaluated at one point. The result is linear in the data: the fitted
/// polynomial's value there is the sum of weights[i] times the value at point i.
struct PolynomialFit {
  int degree = 0;          ///< total degree
  std::int64_t terms = 0;  ///< monomials up to that degree
  std::vector<double> weights;
  DenseMatrix range;  ///< orthonormal basis of the vectors of values that such polynomials take at the points

  /// The residual of the fit to `values`, one for each point: the squared 2-norm of their distance from `range`.
  [[nodiscard]] double squared_misfit(std::span<double const> values) const;
};

/// The fit to values at `points` (a row for each, a column for each variable), evaluated at `at` (a value for each variable).
/// Where the points do not determine the polynomial, the one with the smallest 2-norm of coefficients, in variables scaled to
/// [-1, 1]. `host` is a context of the CPU backend. Preconditions: points are finite, and there is at least one; degree >= 0.
[[nodiscard]] PolynomialFit fit_polynomial(DenseMatrix const& points, std::span<double const> at, int degree, Context& host);

}  // namespace poisson
