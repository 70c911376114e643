#include "gpu/kernels/element_tables.hpp"

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

Quadrature1D gauss_quadrature(int n) {
  assert(n >= 1 && n <= max_points);
  Quadrature1D result{n, {}, {}};
  for (int i = 0; i < n; ++i) {
    Extended const first = -std::cos(std::numbers::pi_v<Extended> * (i + Extended(0.75)) / (n + Extended(0.5)));
    Extended const x = 2 * i + 1 == n ? Extended(0) : root(first, [n](Extended at) {
      Legendre const p = legendre(n, at);
      return p.value / p.derivative;
    });
    Extended const slope = legendre(n, x).derivative;
    auto const q = static_cast<std::size_t>(i);
    result.point[q] = static_cast<double>((1 + x) / 2);
    result.weight[q] = static_cast<double>(1 / ((1 - x * x) * slope * slope));
  }
  return result;
}

Quadrature1D lobatto_quadrature(int n) {
  assert(n >= 2 && n <= max_points);
  Quadrature1D result{n, {}, {}};
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
    auto const q = static_cast<std::size_t>(i);
    result.point[q] = static_cast<double>((1 + x) / 2);
    result.weight[q] = static_cast<double>(1 / (degree * (degree + 1) * value * value));
  }
  return result;
}

LagrangeTables lagrange_tables(Quadrature1D const& functions, Quadrature1D const& points) {
  LagrangeTables result;
  auto const n = static_cast<std::size_t>(functions.n);
  for (std::size_t q = 0; q < static_cast<std::size_t>(points.n); ++q) {
    Extended const x = points.point[q];
    for (std::size_t a = 0; a < n; ++a) {
      Extended value = 1, derivative = 0;
      for (std::size_t b = 0; b < n; ++b) {
        if (b == a)
          continue;
        Extended const scale = 1 / (Extended(functions.point[a]) - Extended(functions.point[b]));
        derivative = (derivative * (x - Extended(functions.point[b])) + value) * scale;
        value *= (x - Extended(functions.point[b])) * scale;
      }
      result.value[q][a] = static_cast<double>(value);
      result.derivative[q][a] = static_cast<double>(derivative);
    }
  }
  return result;
}

ElementTables element_tables(std::int32_t order) {
  Quadrature1D const gauss = gauss_quadrature(order + 1);
  ElementTables result;
  result.order = order;
  result.value = lagrange_tables(lobatto_quadrature(order + 1), gauss).value;
  result.collocation = lagrange_tables(gauss, gauss).derivative;
  return result;
}

MapTables map_tables(std::int32_t element_order, std::int32_t map_order) {
  Quadrature1D const gauss = gauss_quadrature(element_order + 1);
  LagrangeTables const lagrange = lagrange_tables(lobatto_quadrature(map_order + 1), gauss);
  return {map_order, element_order + 1, gauss.weight, lagrange.value, lagrange.derivative};
}

}  // namespace poisson
