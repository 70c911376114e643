#include "gpu/spectral/polynomial_fit.hpp"

#include "gpu/kernels/backends.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace poisson {
namespace {

DenseMatrix points(std::vector<std::vector<double>> const& rows) {
  DenseMatrix result(static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size()));
  for (std::int64_t i = 0; i < result.n_rows; ++i)
    for (std::int64_t j = 0; j < result.n_columns; ++j)
      result(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  return result;
}

TEST(PolynomialFit, PolynomialsAreFittedExactly) {
  auto const host = make_context(Backend::cpu);
  auto const at = points({{1, 5}, {2, 7}, {4, 5}, {3, 9}, {8, 6}, {5, 5.5}, {1, 9}});
  auto const f = [](double x, double y) { return 3 - x + 2 * y + x * y - 0.5 * y * y; };
  std::vector<double> const target{2.5, 6.5};
  PolynomialFit const fit = fit_polynomial(at, target, 2, *host);
  EXPECT_EQ(fit.terms, 6);
  double sum = 0;
  for (std::int64_t i = 0; i < at.n_rows; ++i)
    sum += fit.weights[static_cast<std::size_t>(i)] * f(at(i, 0), at(i, 1));
  EXPECT_NEAR(sum, f(2.5, 6.5), 1e-11);
}

TEST(PolynomialFit, AParameterThatDoesNotVary) {
  auto const host = make_context(Backend::cpu);
  std::vector<double> const target{3, 2};
  PolynomialFit const fit = fit_polynomial(points({{1, 2}, {5, 2}, {9, 2}}), target, 1, *host);
  EXPECT_NEAR(fit.weights[0] + fit.weights[1] + fit.weights[2], 1, 1e-14);
  EXPECT_NEAR(fit.weights[0] + 5 * fit.weights[1] + 9 * fit.weights[2], 3, 1e-13);
}

TEST(PolynomialFit, Misfit) {
  auto const host = make_context(Backend::cpu);
  std::vector<double> const target{0};
  PolynomialFit const fit = fit_polynomial(points({{-1}, {0}, {1}}), target, 1, *host);
  EXPECT_NEAR(fit.squared_misfit(std::vector<double>{5, 7, 9}), 0, 1e-28);
  // The best line for 1, 0, 1 is the constant 2/3.
  EXPECT_NEAR(fit.squared_misfit(std::vector<double>{1, 0, 1}), 1. / 9 + 4. / 9 + 1. / 9, 1e-14);
}

}  // namespace
}  // namespace poisson
