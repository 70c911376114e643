#include "app/config/config.hpp"
#include "app/config/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace poisson::app {
namespace {

using Points = std::vector<std::vector<double>>;

// Joe and Kuo's numbers: the first points of the sequence in three dimensions, after 0.
TEST(Sampling, SobolPointsArePublishedOnes) {
  Points const expected{{0.5, 0.5, 0.5},       {0.75, 0.25, 0.25},    {0.25, 0.75, 0.75},    {0.375, 0.375, 0.625},
                        {0.875, 0.875, 0.125}, {0.625, 0.125, 0.875}, {0.125, 0.625, 0.375}, {0.1875, 0.3125, 0.9375}};
  EXPECT_EQ(unit_samples(SampleMethod::sobol, 8, 3, 0), expected);
  Points const shifted = unit_samples(SampleMethod::sobol, 255, 2, 7);
  std::set<int> cells;
  for (auto const& p : shifted)
    cells.insert(static_cast<int>(p[0] * 16) * 16 + static_cast<int>(p[1] * 16));
  EXPECT_EQ(cells.size(), 255U) << "a shift keeps one point in each of 256 squares; the first one is left out";
}

TEST(Sampling, LatinHypercubeHoldsOnePointInEveryInterval) {
  for (std::size_t const n : {1U, 2U, 16U, 64U})
    for (std::int64_t const seed : {0, 1, 2}) {
      Points const points = unit_samples(SampleMethod::latin_hypercube, n, 3, seed);
      ASSERT_EQ(points.size(), n);
      for (std::size_t d = 0; d < 3; ++d) {
        std::set<std::size_t> intervals;
        for (auto const& p : points) {
          ASSERT_GE(p[d], 0);
          ASSERT_LT(p[d], 1);
          intervals.insert(static_cast<std::size_t>(p[d] * static_cast<double>(n)));
        }
        EXPECT_EQ(intervals.size(), n);
      }
    }
}

TEST(Sampling, MorePointsBeginWithFewer) {
  for (SampleMethod const method : {SampleMethod::latin_hypercube, SampleMethod::sobol, SampleMethod::random}) {
    Points const many = unit_samples(method, 100, 4, 5);
    for (std::size_t const n : {1U, 3U, 17U, 64U}) {
      Points const few = unit_samples(method, n, 4, 5);
      EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
    }
    EXPECT_NE(unit_samples(method, 3, 4, 6)[2], many[2]) << "another seed";
  }
}

TEST(Sampling, QuantilesOfDistributions) {
  EXPECT_DOUBLE_EQ(quantile_of({"", Distribution::uniform, {1, 3}}, 0.25), 1.5);
  EXPECT_NEAR(quantile_of({"", Distribution::loguniform, {1, 100}}, 0.5), 10, 1e-13);
  EXPECT_NEAR(quantile_of({"", Distribution::normal, {5, 2}}, 0.975), 5 + 2 * 1.959963984540054, 1e-12);
  EXPECT_NEAR(quantile_of({"", Distribution::lognormal, {0, 0.5}}, 0.84134474606854293), std::exp(0.5), 1e-12);
  EXPECT_TRUE(std::isfinite(quantile_of({"", Distribution::normal, {0, 1}}, 0)));
}

// Moments of 4096 points: those of the distributions to what the method owes.
TEST(Sampling, Moments) {
  for (SampleMethod const method : {SampleMethod::latin_hypercube, SampleMethod::sobol, SampleMethod::random}) {
    SampleSpec sample;
    sample.method = method;
    sample.count = 4096;
    sample.seed = 3;
    sample.parameters = {{"parameters.a", Distribution::uniform, {-1, 3}}, {"parameters.b", Distribution::normal, {2, 0.5}}};
    double a = 0, b = 0, bb = 0, ab = 0;
    for (auto const& values : sampled_values(sample)) {
      a += values[0] / 4096;
      b += values[1] / 4096;
      bb += (values[1] - 2) * (values[1] - 2) / 4096;
      ab += (values[0] - 1) * (values[1] - 2) / 4096;
    }
    double const near = method == SampleMethod::random ? 0.06 : 0.002;
    EXPECT_NEAR(a, 1, near);
    EXPECT_NEAR(b, 2, near);
    EXPECT_NEAR(bb, 0.25, method == SampleMethod::random ? 0.02 : 0.002);
    EXPECT_NEAR(ab, 0, method == SampleMethod::sobol ? 0.003 : 0.04);
  }
}

TEST(Sampling, PlanForIndices) {
  SampleSpec sample;
  sample.count = 5;
  sample.indices = true;
  sample.parameters = {{"parameters.a", Distribution::uniform, {0, 1}}, {"parameters.b", Distribution::uniform, {0, 1}}};
  auto const cases = sampled_values(sample);
  ASSERT_EQ(cases.size(), 20U);
  for (std::size_t i = 0; i < 20; i += 4) {
    auto const &a = cases[i], &b = cases[i + 1];
    EXPECT_EQ(cases[i + 2], (std::vector<double>{b[0], a[1]}));
    EXPECT_EQ(cases[i + 3], (std::vector<double>{a[0], b[1]}));
    EXPECT_NE(a, b);
  }
}

}  // namespace
}  // namespace poisson::app
