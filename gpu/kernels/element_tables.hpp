#pragma once

#include <array>
#include <cstdint>

namespace poisson {

/// Elements of order p = 1 ... max_order; tables have room for p + 1 points a direction.
inline constexpr int max_order = 8;
inline constexpr int max_points = max_order + 1;
using PointTable = std::array<double, max_points>;
using SquareTable = std::array<std::array<double, max_points>, max_points>;

/// Points of the interval [0, 1], ascending, and the weights of a quadrature, whose sum is 1.
struct Quadrature1D {
  int n = 0;
  PointTable point{}, weight{};
};
/// Gauss-Legendre points: exact for polynomials of degree 2 n - 1. Precondition: 1 <= n <= max_points.
[[nodiscard]] Quadrature1D gauss_quadrature(int n);
/// Gauss-Lobatto points, 0 and 1 among them: exact up to degree 2 n - 3. Precondition: 2 <= n <= max_points.
[[nodiscard]] Quadrature1D lobatto_quadrature(int n);

/// The Lagrange functions of some points, and their derivatives: [q][a] of function a at point q of others. Rounded from long
/// double. A row of derivatives adds up to 0 but for rounding.
struct LagrangeTables {
  SquareTable value{}, derivative{};
};
[[nodiscard]] LagrangeTables lagrange_tables(Quadrature1D const& functions, Quadrature1D const& points);

/// One direction of an element of order p, at its p + 1 Gauss points. An element's operator is made of these numbers as they are
/// rounded: the derivative of function a at point q is, exactly, the sum over r of collocation[q][r] value[r][a].
struct ElementTables {
  std::int32_t order = 1;
  SquareTable value{};        ///< [q][a] of the Lagrange function of Gauss-Lobatto point a
  SquareTable collocation{};  ///< [q][r], derivative of the Lagrange function of Gauss point r
  [[nodiscard]] constexpr int points() const { return order + 1; }
};
[[nodiscard]] ElementTables element_tables(std::int32_t order);

/// One direction of the map from the reference cell [0, 1]^3, of order g, at the Gauss points of elements of order p.
struct MapTables {
  std::int32_t order = 1;   ///< g
  std::int32_t points = 2;  ///< p + 1
  PointTable weight{};
  SquareTable value{}, derivative{};  ///< [q][a] of the Lagrange function of Gauss-Lobatto point a of order g
};
[[nodiscard]] MapTables map_tables(std::int32_t element_order, std::int32_t map_order);

}  // namespace poisson
