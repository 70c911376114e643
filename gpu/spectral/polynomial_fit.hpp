#pragma once

#include "gpu/core/context.hpp"
#include "gpu/spectral/svd.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace poisson {

/// A least squares fit of a polynomial in several variables, seen from the point where it is evaluated: the polynomial's value
/// there is the sum of weights[i] times the value at point i.
struct PolynomialFit {
  int degree = 0;          ///< total degree
  std::int64_t terms = 0;  ///< monomials up to that degree
  std::vector<double> weights;
  DenseMatrix range;  ///< orthonormal columns that span the values such polynomials take at the points

  /// How far `values`, one at each point, are from any such polynomial: the squared distance.
  [[nodiscard]] double squared_misfit(std::span<double const> values) const;
};

/// The fit to values at `points` (a row for each, a column for each variable), evaluated at `at` (a value for each variable).
/// Where the points do not determine the polynomial, the one of the smallest coefficients in variables scaled to [-1, 1]. `host`
/// is a context of the CPU backend. Preconditions: points are finite, there is at least one; degree >= 0.
[[nodiscard]] PolynomialFit fit_polynomial(DenseMatrix const& points, std::span<double const> at, int degree, Context& host);

}  // namespace poisson
