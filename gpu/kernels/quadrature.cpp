#include "gpu/kernels/quadrature.hpp"

#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

namespace poisson {

namespace {

using Extended = long double;

/// The Legendre polynomial of degree n on [-1, 1] and its derivative.
struct Legendre {
  Extended value, derivative;
};
Legendre legendre(int n, Extended x) {
  Extended before = 1, value = x;
  if (n == 0)
    return {1, 0};
  for (int k = 2; k <= n; ++k) {
    Extended const next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
    before = value;
    value = next;
  }
  return {value, n * (before - x * value) / (1 - x * x)};
}

/// Newton's method from `x`: step(x) is what to subtract.
template <class Step>
Extended root(Extended x, Step const& step) {
  for (int i = 0; i < 100; ++i) {
    Extended const change = step(x);
    x -= change;
    if (std::abs(change) < 4 * std::numeric_limits<Extended>::epsilon())
      break;
  }
  return x;
}

}  // namespace

QuadratureRule gauss_rule(int n) {
  assert(n >= 1);
  QuadratureRule result;
  for (int i = 0; i < n; ++i) {
    Extended const first = -std::cos(std::numbers::pi_v<Extended> * (i + Extended(0.75)) / (n + Extended(0.5)));
    Extended const x = 2 * i + 1 == n ? Extended(0) : root(first, [n](Extended at) {
      Legendre const p = legendre(n, at);
      return p.value / p.derivative;
    });
    Extended const slope = legendre(n, x).derivative;
    result.point.push_back(static_cast<double>((1 + x) / 2));
    result.weight.push_back(static_cast<double>(1 / ((1 - x * x) * slope * slope)));
  }
  return result;
}

QuadratureRule lobatto_rule(int n) {
  assert(n >= 2);
  QuadratureRule result;
  int const degree = n - 1;
  for (int i = 0; i < n; ++i) {
    Extended x = i == 0 ? -1 : i == n - 1 ? 1 : 0;
    if (i > 0 && i < n - 1 && 2 * i + 1 != n)
      // A root of P': by Legendre's equation (1 - x^2) P'' = 2 x P' - degree (degree + 1) P.
      x = root(-std::cos(std::numbers::pi_v<Extended> * i / degree), [degree](Extended at) {
        Legendre const p = legendre(degree, at);
        return p.derivative * (1 - at * at) / (2 * at * p.derivative - degree * (degree + 1) * p.value);
      });
    Extended const value = legendre(degree, x).value;
    result.point.push_back(static_cast<double>((1 + x) / 2));
    result.weight.push_back(static_cast<double>(1 / (degree * (degree + 1) * value * value)));
  }
  return result;
}

LagrangeValue lagrange(std::span<double const> points, std::size_t a, double at) {
  Extended const x = at;
  Extended value = 1, derivative = 0;
  for (std::size_t b = 0; b < points.size(); ++b) {
    if (b == a)
      continue;
    Extended const scale = 1 / (Extended(points[a]) - Extended(points[b]));
    derivative = (derivative * (x - Extended(points[b])) + value) * scale;
    value *= (x - Extended(points[b])) * scale;
  }
  return {static_cast<double>(value), static_cast<double>(derivative)};
}

}  // namespace poisson
