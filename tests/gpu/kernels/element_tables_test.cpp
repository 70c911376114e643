#include "gpu/kernels/element_tables.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace poisson {
namespace {

/// A value on [-1, 1], as tables of quadratures have them.
double on_unit(double x) {
  return (1 + x) / 2;
}
constexpr double near_double = 2e-16;

TEST(ElementTables, GaussPointsAreThoseOfTables) {
  // Abramowitz and Stegun, table 25.4.
  Quadrature1D const two = gauss_quadrature(2), three = gauss_quadrature(3), four = gauss_quadrature(4), nine = gauss_quadrature(9);
  EXPECT_NEAR(two.point[0], on_unit(-1 / std::sqrt(3.)), near_double);
  EXPECT_NEAR(two.weight[1], 0.5, near_double);
  EXPECT_NEAR(three.point[2], on_unit(std::sqrt(0.6)), near_double);
  EXPECT_EQ(three.point[1], 0.5);
  EXPECT_NEAR(three.weight[1], 4. / 9, near_double);
  EXPECT_NEAR(four.point[2], on_unit(0.339981043584856264802665759103), near_double);
  EXPECT_NEAR(four.point[0], on_unit(-0.861136311594052575223946488893), near_double);
  EXPECT_NEAR(four.weight[1], 0.652145154862546142626936050778 / 2, near_double);
  EXPECT_NEAR(nine.point[8], on_unit(0.968160239507626089835576202904), near_double);
  EXPECT_NEAR(nine.weight[8], 0.081274388361574411971892158111 / 2, near_double);
}

TEST(ElementTables, LobattoPointsAreThoseOfTables) {
  Quadrature1D const three = lobatto_quadrature(3), four = lobatto_quadrature(4), five = lobatto_quadrature(5);
  EXPECT_EQ(three.point[1], 0.5);
  EXPECT_NEAR(three.weight[1], 2. / 3, near_double);
  EXPECT_EQ(four.point[0], 0);
  EXPECT_EQ(four.point[3], 1);
  EXPECT_NEAR(four.point[1], on_unit(-1 / std::sqrt(5.)), near_double);
  EXPECT_NEAR(five.point[3], on_unit(std::sqrt(3. / 7)), near_double);
  EXPECT_NEAR(five.weight[3], 49. / 180, near_double);
}

TEST(ElementTables, QuadraturesAreExactForPolynomials) {
  for (int n = 1; n <= max_points; ++n)
    for (bool const lobatto : {false, true}) {
      if (lobatto && n < 2)
        continue;
      Quadrature1D const quadrature = lobatto ? lobatto_quadrature(n) : gauss_quadrature(n);
      for (int degree = 0; degree <= 2 * n - (lobatto ? 3 : 1); ++degree) {
        double sum = 0;
        for (std::size_t q = 0; q < static_cast<std::size_t>(n); ++q)
          sum += quadrature.weight[q] * std::pow(quadrature.point[q], degree);
        EXPECT_NEAR(sum, 1. / (degree + 1), 4e-16) << n << " points, degree " << degree;
      }
    }
}

TEST(ElementTables, InterpolateAndDifferentiatePolynomials) {
  for (std::int32_t order = 1; order <= max_order; ++order) {
    auto const n = static_cast<std::size_t>(order + 1);
    Quadrature1D const gauss = gauss_quadrature(order + 1), lobatto = lobatto_quadrature(order + 1);
    ElementTables const tables = element_tables(order);
    MapTables const map = map_tables(order, order);
    for (int degree = 0; degree <= order; ++degree)
      for (std::size_t q = 0; q < n; ++q) {
        double const x = gauss.point[q], exact = std::pow(x, degree);
        double const slope = degree == 0 ? 0 : degree * std::pow(x, degree - 1);
        double value = 0, collocation = 0, map_value = 0, derivative = 0;
        for (std::size_t a = 0; a < n; ++a) {
          value += tables.value[q][a] * std::pow(lobatto.point[a], degree);
          map_value += map.value[q][a] * std::pow(lobatto.point[a], degree);
          derivative += map.derivative[q][a] * std::pow(lobatto.point[a], degree);
          collocation += tables.collocation[q][a] * std::pow(gauss.point[a], degree);
        }
        EXPECT_NEAR(value, exact, 1e-15);
        EXPECT_NEAR(map_value, exact, 1e-15);
        EXPECT_NEAR(collocation, slope, 2e-14);
        EXPECT_NEAR(derivative, slope, 2e-14);
      }
    // A trilinear map at the same points.
    MapTables const linear = map_tables(order, 1);
    EXPECT_EQ(linear.points, order + 1);
    for (std::size_t q = 0; q < n; ++q) {
      EXPECT_NEAR(linear.value[q][1], gauss.point[q], near_double);
      EXPECT_EQ(linear.derivative[q][0], -1);
      EXPECT_EQ(linear.derivative[q][1], 1);
      EXPECT_EQ(linear.weight[q], gauss.weight[q]);
    }
  }
}

}  // namespace
}  // namespace poisson
