#include "assembly/space/reference_element.hpp"

#include <cmath>
#include <numbers>
#include <utility>

namespace poisson::assembly {
namespace {

/// The Legendre polynomial P_n and its derivative at x, |x| < 1, by its recurrence.
struct Legendre {
  Legendre(int n, long double x) {
    long double before = 1;
    value = n == 0 ? 1 : x;
    for (int k = 2; k <= n; ++k)
      before = std::exchange(value, ((2 * k - 1) * x * value - (k - 1) * before) / k);
    derivative = n == 0 ? 0 : n * (before - x * value) / (1 - x * x);
  }
  long double value, derivative;
};

/// Newton's method. `step(x)` is the function over its derivative.
template <class Step>
long double root(long double x, Step const& step) {
  for (int i = 0; i < 20; ++i)
    x -= step(x);
  return x;
}

}  // namespace

Basis1D lagrange_basis(std::vector<double> const& nodes, std::vector<double> const& points) {
  auto const n = nodes.size();
  Basis1D basis{static_cast<int>(points.size()), static_cast<int>(n), {}, {}};
  basis.values.reserve(n * points.size());
  basis.derivatives.reserve(n * points.size());
  for (double const x : points)
    for (std::size_t j = 0; j < n; ++j) {
      double value = 1, derivative = 0;
      for (std::size_t m = 0; m < n; ++m) {
        if (m == j)
          continue;
        double const factor = 1 / (nodes[j] - nodes[m]);
        derivative = derivative * (x - nodes[m]) * factor + value * factor;
        value *= (x - nodes[m]) * factor;
      }
      basis.values.push_back(value);
      basis.derivatives.push_back(derivative);
    }
  return basis;
}

void apply_tensor(int m, int n, double const* x, double const* y, double const* z, double const* in, double* out,
                  std::vector<double>& work) {
  auto const size = static_cast<std::size_t>(m) * n * (n + m);
  if (work.size() < size)
    work.resize(size);
  double* const a = work.data();                              // n x n x m
  double* const b = a + static_cast<std::size_t>(n) * n * m;  // n x m x m
  for (int kj = 0; kj < n * n; ++kj)
    for (int q = 0; q < m; ++q) {
      double sum = 0;
      for (int i = 0; i < n; ++i)
        sum += x[q * n + i] * in[kj * n + i];
      a[kj * m + q] = sum;
    }
  for (int k = 0; k < n; ++k)
    for (int q = 0; q < m; ++q)
      for (int r = 0; r < m; ++r) {
        double sum = 0;
        for (int j = 0; j < n; ++j)
          sum += y[q * n + j] * a[(k * n + j) * m + r];
        b[(k * m + q) * m + r] = sum;
      }
  for (int q = 0; q < m; ++q)
    for (int r = 0; r < m * m; ++r) {
      double sum = 0;
      for (int k = 0; k < n; ++k)
        sum += z[q * n + k] * b[k * m * m + r];
      out[q * m * m + r] = sum;
    }
}

PointTables tabulate(std::vector<double> const& nodes, std::vector<Point3> const& points) {
  auto const n = static_cast<int>(nodes.size());
  PointTables tables{static_cast<int>(points.size()), n * n * n, {}, {}};
  auto const functions = static_cast<std::size_t>(tables.n_functions);
  tables.values.resize(functions * points.size());
  tables.gradients.resize(3 * functions * points.size());
  for (std::size_t q = 0; q < points.size(); ++q) {
    std::array<Basis1D, 3> basis;
    for (std::size_t d = 0; d < 3; ++d)
      basis[d] = lagrange_basis(nodes, {points[q][d]});
    std::size_t f = 0;
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i, ++f) {
          double const x = basis[0].values[i], y = basis[1].values[j], z = basis[2].values[k];
          tables.values[q * functions + f] = x * y * z;
          tables.gradients[(3 * q + 0) * functions + f] = basis[0].derivatives[i] * y * z;
          tables.gradients[(3 * q + 1) * functions + f] = x * basis[1].derivatives[j] * z;
          tables.gradients[(3 * q + 2) * functions + f] = x * y * basis[2].derivatives[k];
        }
  }
  return tables;
}

void gauss_rule(int n, std::vector<double>& points, std::vector<double>& weights) {
  points.resize(n);
  weights.resize(n);
  for (int i = 0; i < n; ++i) {
    long double const x = root(-std::cos(std::numbers::pi_v<long double> * (i + 0.75L) / (n + 0.5L)), [n](long double at) {
      Legendre const p(n, at);
      return p.value / p.derivative;
    });
    long double const slope = Legendre(n, x).derivative;
    points[i] = static_cast<double>((1 + x) / 2);
    weights[i] = static_cast<double>(1 / ((1 - x * x) * slope * slope));
  }
}

std::vector<double> gauss_lobatto_points(int n) {
  std::vector<double> points(n);
  points.back() = 1;
  int const m = n - 1;
  for (int i = 1; i < m; ++i) {
    // A root of P_m'. Legendre's equation gives the second derivative.
    long double const x = root(-std::cos(std::numbers::pi_v<long double> * i / m), [m](long double at) {
      Legendre const p(m, at);
      return p.derivative * (1 - at * at) / (2 * at * p.derivative - m * (m + 1) * p.value);
    });
    points[i] = static_cast<double>((1 + x) / 2);
  }
  return points;
}

ReferenceElement::ReferenceElement(int order_, int points) : order(order_), n_nodes((order_ + 1) * (order_ + 1) * (order_ + 1)) {
  nodes = gauss_lobatto_points(order + 1);
  int const m = points > 0 ? points : order + 1;
  gauss_rule(m, gauss, gauss_weights);
  for (int k = 0; k < m; ++k)
    for (int j = 0; j < m; ++j)
      for (int i = 0; i < m; ++i) {
        volume_points.push_back({gauss[i], gauss[j], gauss[k]});
        weights.push_back(gauss_weights[i] * gauss_weights[j] * gauss_weights[k]);
      }
  for (int j = 0; j < m; ++j)
    for (int i = 0; i < m; ++i)
      face_weights.push_back(gauss_weights[i] * gauss_weights[j]);
  for (int face = 0; face < 6; ++face) {
    int const d = face / 2;
    for (int j = 0; j < m; ++j)
      for (int i = 0; i < m; ++i) {
        Point3 point{};
        point[d] = face % 2;
        point[(d + 1) % 3] = gauss[i];
        point[(d + 2) % 3] = gauss[j];
        face_points[face].push_back(point);
      }
  }
}

Point3 ReferenceElement::node(int i) const {
  int const n = order + 1;
  return {nodes[i % n], nodes[i / n % n], nodes[i / (n * n)]};
}

std::vector<int> ReferenceElement::face_nodes(int face) const {
  int const n = order + 1;
  std::vector<int> result;
  for (int i = 0; i < n_nodes; ++i) {
    std::array<int, 3> const index{i % n, i / n % n, i / (n * n)};
    if (index[face / 2] == (face % 2 == 0 ? 0 : order))
      result.push_back(i);
  }
  return result;
}

}  // namespace poisson::assembly
