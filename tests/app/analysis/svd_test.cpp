/// Arithmetic behind the analyses: spectra, ranks, fits, small systems, CSV.
#include "app/io/csv.hpp"
#include "app/analysis/dense_svd.hpp"
#include "app/analysis/snapshots.hpp"
#include "app/analysis/svd_report.hpp"
#include "gpu/kernels/backends.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace poisson::app {
namespace {

TEST(SvdReport, Spectrum) {
  std::vector<double> const values{4, 2, 1e-17, 0};
  Spectrum const s = spectrum_of(values, 4, 6);
  EXPECT_EQ(s.rank, 2);
  EXPECT_EQ(s.condition, 2);
  EXPECT_EQ(s.smallest, 2);
  EXPECT_EQ(s.threshold, 6 * 4 * std::numeric_limits<double>::epsilon());
  std::vector<double> const zero{0, 0};
  EXPECT_EQ(spectrum_of(zero, 2, 2).rank, 0);
  EXPECT_TRUE(std::isnan(spectrum_of(zero, 2, 2).condition));
}

TEST(SvdReport, ErrorsByRank) {
  for (double const scale : {1.0, 1e300, 1e-300}) {  // squares of the last two are out of range
    std::vector<double> const values{12 * scale, 4 * scale, 3 * scale};
    auto const errors = errors_by_rank(values);
    ASSERT_EQ(errors.size(), 4u);
    EXPECT_NEAR(errors[0], 1, 1e-15);
    EXPECT_NEAR(errors[1], 5.0 / 13, 1e-15);
    EXPECT_NEAR(errors[2], 3.0 / 13, 1e-15);
    EXPECT_EQ(errors[3], 0);
    EXPECT_EQ(smallest_rank(errors, 0.3), 2);
    EXPECT_EQ(smallest_rank(errors, 0.99), 1);
    EXPECT_EQ(smallest_rank(errors, 1e-9), 3);
  }
  std::vector<double> const zero{0, 0};
  EXPECT_EQ(smallest_rank(errors_by_rank(zero), 1e-9), 0);
}

TEST(Csv, Text) {
  std::vector<double> const a{1, 0.1, 1e-300}, b{2, std::nan("")};
  EXPECT_EQ(csv_text("i", 0, {{"a", a}, {"b", b}}), "i,a,b\n0,1,2\n1,0.1,\n2,1e-300,\n");
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
}

TEST(Snapshots, SmallSystems) {
  // needs a swap of rows
  auto const x = solve_small({0, 2, 1, 1, 0, 0, 0, 1, 1}, {7, 1, 5});
  EXPECT_NEAR(x[0], 1, 1e-15);
  EXPECT_NEAR(x[1], 2, 1e-15);
  EXPECT_NEAR(x[2], 3, 1e-15);
  EXPECT_TRUE(std::isnan(solve_small({1, 1, 1, 1}, {1, 2})[1]));
}

DenseMatrix points(std::vector<std::vector<double>> const& rows) {
  DenseMatrix result(static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size()));
  for (std::int64_t i = 0; i < result.n_rows; ++i)
    for (std::int64_t j = 0; j < result.n_columns; ++j)
      result(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  return result;
}

TEST(Snapshots, PolynomialsAreFittedExactly) {
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

TEST(Snapshots, AParameterThatDoesNotVary) {
  auto const host = make_context(Backend::cpu);
  std::vector<double> const target{3, 2};
  PolynomialFit const fit = fit_polynomial(points({{1, 2}, {5, 2}, {9, 2}}), target, 1, *host);
  EXPECT_NEAR(fit.weights[0] + fit.weights[1] + fit.weights[2], 1, 1e-14);
  EXPECT_NEAR(fit.weights[0] + 5 * fit.weights[1] + 9 * fit.weights[2], 3, 1e-13);
}

TEST(DenseSvd, RandomEntriesAreUniform) {
  DenseMatrix const a = random_matrix(100, 50, 7);
  double sum = 0, squares = 0, largest = 0;
  for (double const x : a.values) {
    sum += x;
    squares += x * x;
    largest = std::max(largest, std::abs(x));
  }
  EXPECT_LE(largest, 0.5);
  EXPECT_GT(largest, 0.49);
  EXPECT_NEAR(sum / 5000, 0, 0.02);
  EXPECT_NEAR(squares / 5000, 1.0 / 12, 0.005);
  EXPECT_NE(a.values[0], random_matrix(1, 1, 8).values[0]);
  EXPECT_EQ(a.values[0], random_matrix(1, 1, 7).values[0]);
}

}  // namespace
}  // namespace poisson::app
