#include "assembly/space/reference_element.hpp"

#include <deal.II/base/quadrature_lib.h>
#include <gtest/gtest.h>

namespace poisson::assembly {
namespace {

constexpr int most_points = 20;

TEST(ReferenceElement, GaussRulesEqualThoseOfDealII) {
  for (int n = 1; n <= most_points; ++n) {
    SCOPED_TRACE(n);
    dealii::QGauss<1> const rule(n);
    std::vector<double> points, weights{7, 8, 9};
    gauss_rule(n, points, weights);
    ASSERT_EQ(points.size(), static_cast<std::size_t>(n));
    ASSERT_EQ(weights.size(), points.size());
    for (int i = 0; i < n; ++i) {
      EXPECT_NEAR(points[i], rule.point(i)[0], 4e-16);
      EXPECT_NEAR(weights[i], rule.weight(i), 4e-16);
    }
  }
}

TEST(ReferenceElement, GaussLobattoPointsEqualThoseOfDealII) {
  for (int n = 2; n <= most_points; ++n) {
    SCOPED_TRACE(n);
    dealii::QGaussLobatto<1> const rule(n);
    auto const points = gauss_lobatto_points(n);
    ASSERT_EQ(points.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(points.front(), 0);
    EXPECT_EQ(points.back(), 1);
    for (int i = 0; i < n; ++i)
      EXPECT_NEAR(points[i], rule.point(i)[0], 4e-16);
  }
}

TEST(ReferenceElement, GaussRulesIntegratePolynomialsOfDegreeTwoNMinusOne) {
  for (int n = 1; n <= most_points; ++n) {
    std::vector<double> points, weights;
    gauss_rule(n, points, weights);
    for (int degree = 0; degree < 2 * n; ++degree) {
      double sum = 0;
      for (int i = 0; i < n; ++i)
        sum += weights[i] * std::pow(points[i], degree);
      EXPECT_NEAR(sum, 1. / (degree + 1), 1e-15) << n << " points, degree " << degree;
    }
  }
}

}  // namespace
}  // namespace poisson::assembly
