#include "gpu/preconditioners/smoother_roots.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numbers>
#include <vector>

namespace poisson::testing {

namespace {

double polynomial(std::vector<double> const& roots, double t) {
  double p = 1;
  for (double const root : roots)
    p *= 1 - t / root;
  return p;
}
/// 1 / sup t p(t)^2 / (1 - p(t)^2): the larger, the better a V-cycle's bound.
double quality(std::vector<double> const& roots) {
  double largest = 0;
  for (int i = 1; i <= 20000; ++i) {
    double const t = i / 20000.0, p = polynomial(roots, t);
    largest = std::max(largest, t * p * p / (1 - p * p));
  }
  return 1 / largest;
}

}  // namespace

// Lottes' figures: 4/3 k (k + 1) for the fourth kind, about (4 / pi^2) (2 k + 1)^2 - 2 / 3 for the best.
TEST(SmootherRoots, AreThoseOfTheTheory) {
  for (int degree = 1; degree <= 6; ++degree) {
    double const fourth = quality(smoother_roots(degree, SmootherPolynomial::fourth_kind)),
                 best = quality(smoother_roots(degree, SmootherPolynomial::optimal));
    EXPECT_NEAR(fourth, 4.0 / 3 * degree * (degree + 1), 3e-3 * fourth) << degree;
    double const expected = 4 / (std::numbers::pi * std::numbers::pi) * (2 * degree + 1) * (2 * degree + 1) - 2.0 / 3;
    EXPECT_NEAR(best, expected, 0.01 * expected) << degree;
  }
}

// |p| <= 1 on the spectrum, also after the first steps within a small factor, so that nothing overflows on the way.
TEST(SmootherRoots, StepsStaySmall) {
  for (int const degree : {1, 2, 3, 6, 7, 12, 40})
    for (auto const kind : {SmootherPolynomial::optimal, SmootherPolynomial::fourth_kind}) {
      std::vector<double> const roots = smoother_roots(degree, kind);
      ASSERT_EQ(roots.size(), static_cast<std::size_t>(degree));
      std::vector<double> begun;
      for (double const root : roots) {
        EXPECT_GT(root, 0);
        EXPECT_LT(root, 1);
        begun.push_back(root);
        for (int i = 0; i <= 1000; ++i)
          ASSERT_LE(std::abs(polynomial(begun, i / 1000.0)), begun.size() < roots.size() ? 4.0 + degree * degree : 1 + 1e-12)
              << degree;
      }
    }
}

}  // namespace poisson::testing
