#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace poisson {

/// Points of the interval [0, 1], ascending, and the weights of a quadrature, whose sum is 1.
struct QuadratureRule {
  std::vector<double> point, weight;
};
/// Gauss-Legendre points: exact for polynomials of degree 2 n - 1. Rounded from long double. Precondition: n >= 1.
[[nodiscard]] QuadratureRule gauss_rule(int n);
/// Gauss-Lobatto points, 0 and 1 among them: exact up to degree 2 n - 3. Rounded from long double. Precondition: n >= 2.
[[nodiscard]] QuadratureRule lobatto_rule(int n);

/// A Lagrange function and its derivative at a place.
struct LagrangeValue {
  double value, derivative;
};
/// The function that is 1 at points[a] and 0 at the others, at x. Rounded from long double.
[[nodiscard]] LagrangeValue lagrange(std::span<double const> points, std::size_t a, double x);

}  // namespace poisson
