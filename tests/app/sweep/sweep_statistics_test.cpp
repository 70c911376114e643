#include "app/config/sampling.hpp"
#include "app/sweep/sweep_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

namespace poisson::app {
namespace {

/// A quantity as a function of the sampled parameters.
QuantityStatistics statistics_of_function(SampleSpec const& sample, std::function<double(std::vector<double> const&)> const& f) {
  auto const parameters = sampled_values(sample);
  std::vector<double> values;
  std::vector<std::size_t> places;
  for (auto const& p : parameters) {
    values.push_back(f(p));
    places.push_back(places.size());
  }
  return statistics_of("f", sample, {values, parameters, places});
}

SampleSpec three_angles(SampleMethod method, std::int64_t count, bool indices) {
  SampleSpec sample;
  sample.method = method;
  sample.count = count;
  sample.indices = indices;
  for (char const* name : {"x", "y", "z"})
    sample.parameters.push_back({std::string("parameters.") + name, Distribution::uniform, {-std::numbers::pi, std::numbers::pi}});
  return sample;
}

// Ishigami and Homma's function with a = 7, b = 0.1: its moments and indices are known.
TEST(SweepStatistics, IndicesOfTheIshigamiFunction) {
  auto const ishigami = [](std::vector<double> const& x) {
    return std::sin(x[0]) + 7 * std::sin(x[1]) * std::sin(x[1]) + 0.1 * std::pow(x[2], 4) * std::sin(x[0]);
  };
  double const pi4 = std::pow(std::numbers::pi, 4), v1 = 0.5 * std::pow(1 + 0.1 * pi4 / 5, 2), v2 = 49. / 8,
               v13 = 0.01 * pi4 * pi4 * (1. / 18 - 1. / 50), v = v1 + v2 + v13;
  auto const found = statistics_of_function(three_angles(SampleMethod::sobol, 4096, true), ishigami);
  EXPECT_EQ(found.count, 2 * 4096U);
  EXPECT_NEAR(found.mean, 3.5, 0.02);
  EXPECT_NEAR(found.deviation, std::sqrt(v), 0.02);
  double const first[] = {v1 / v, v2 / v, 0}, total[] = {(v1 + v13) / v, v2 / v, v13 / v};
  for (std::size_t p = 0; p < 3; ++p) {
    ASSERT_TRUE(found.effects[p].first && found.effects[p].total);
    EXPECT_NEAR(found.effects[p].first->value, first[p], 0.02);
    EXPECT_NEAR(found.effects[p].total->value, total[p], 0.02);
    EXPECT_LT(found.effects[p].first->half_width, 0.1);
    EXPECT_GT(found.effects[p].first->half_width, 0);
  }
}

TEST(SweepStatistics, OfALinearFunction) {
  auto const found = statistics_of_function(three_angles(SampleMethod::latin_hypercube, 1024, false),
                                            [](std::vector<double> const& x) { return 10 + x[0] - 2 * x[1]; });
  double const of_one = 2 * std::numbers::pi / std::sqrt(12.);
  EXPECT_NEAR(found.mean, 10, 1e-2);
  EXPECT_NEAR(found.deviation, of_one * std::sqrt(5.), 0.2);
  EXPECT_NEAR(found.mean_error, found.deviation / 32, 1e-12);
  EXPECT_NEAR(*found.effects[0].correlation, 1 / std::sqrt(5.), 0.05);
  EXPECT_NEAR(*found.effects[1].correlation, -2 / std::sqrt(5.), 0.02);
  EXPECT_NEAR(*found.effects[2].correlation, 0, 0.1);
  EXPECT_FALSE(found.effects[0].first);
  EXPECT_EQ(std::accumulate(found.counts.begin(), found.counts.end(), std::size_t{0}), 1024U);
  EXPECT_EQ(found.edges.size(), found.counts.size() + 1);
  ASSERT_EQ(found.quantiles.size(), 5U);
  for (SampleQuantile const& q : found.quantiles) {
    ASSERT_TRUE(q.low && q.high);
    EXPECT_LE(*q.low, q.value);
    EXPECT_GE(*q.high, q.value);
  }
  EXPECT_NEAR(found.quantiles[2].value, 10, 0.3);
}

// Values by hand: 1, 2, 3, 4 and 10.
TEST(SweepStatistics, SmallSample) {
  SampleSpec sample;
  sample.count = 5;
  sample.parameters = {{"parameters.k", Distribution::uniform, {0, 1}}};
  std::vector<double> const values{4, 1, std::numeric_limits<double>::quiet_NaN(), 3, 2, 10};
  std::vector<std::vector<double>> const parameters{{0.4}, {0.1}, {0.9}, {0.3}, {0.2}, {0.5}};
  auto const found = statistics_of("q", sample, {values, parameters, {0, 1, 2, 3, 4, 5}});
  EXPECT_EQ(found.count, 5U);
  EXPECT_DOUBLE_EQ(found.mean, 4);
  EXPECT_DOUBLE_EQ(found.deviation, std::sqrt(12.5));
  EXPECT_DOUBLE_EQ(found.quantiles[2].value, 3);
  EXPECT_DOUBLE_EQ(found.quantiles[4].value, 4 + 0.8 * 6);
  EXPECT_FALSE(found.quantiles[4].high) << "five values hold no bound of it";
  EXPECT_DOUBLE_EQ(*found.effects[0].rank_correlation, 1);
  EXPECT_LT(*found.effects[0].correlation, 1);
}

TEST(SweepStatistics, AQuantityThatDoesNotVary) {
  auto const found = statistics_of_function(three_angles(SampleMethod::random, 20, true), [](auto const&) { return 2.0; });
  EXPECT_EQ(found.mean, 2);
  EXPECT_EQ(found.deviation, 0);
  EXPECT_TRUE(found.counts.empty());
  for (ParameterEffect const& effect : found.effects)
    EXPECT_FALSE(effect.correlation || effect.first || effect.total);
}

}  // namespace
}  // namespace poisson::app
