#pragma once

#include "app/sweep/sweep_cases.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// What the spread of sampled parameters does to the quantities of a sweep.
namespace poisson::app {

/// A quantile of the sample (between neighbouring values linear), and the values that hold that of the distribution with a
/// confidence of 95 %, whatever the distribution is: order statistics. None where the sample is too small for one.
struct SampleQuantile {
  double probability = 0, value = 0;
  std::optional<double> low{}, high{};
};

/// An index by Sobol, and half of the width of its interval of 95 %, by resampling.
struct SobolIndex {
  double value = 0, half_width = 0;
};

/// How a quantity depends on one parameter. Empty where the quantity does not vary, or nothing was asked for.
struct ParameterEffect {
  std::optional<double> correlation{}, rank_correlation{};  ///< Pearson's and Spearman's
  std::optional<SobolIndex> first{}, total{};               ///< shares of the variance
};

struct QuantityStatistics {
  std::string name;
  std::size_t count = 0;  ///< finite values
  double mean = 0, deviation = 0, min = 0, max = 0;
  double mean_error = 0;  ///< deviation / sqrt(count): of stratified samples it is too large
  std::vector<SampleQuantile> quantiles{};
  std::vector<double> edges{};  ///< of the histogram, one more than counts
  std::vector<std::size_t> counts{};
  std::vector<ParameterEffect> effects{};  ///< one per sampled parameter
};

/// The statistics of the cases that have the same values of all axes that are not sampled.
struct SampleStatistics {
  std::vector<std::pair<std::string, std::string>> parameters{};  ///< those axes and values
  std::size_t n_cases = 0, n_used = 0, n_predicted = 0;           ///< used are those that converged, or are predicted
  std::vector<QuantityStatistics> quantities{};
};

/// The values of one quantity over a sample.
struct SampledQuantity {
  std::vector<double> const& values;                   ///< by case; NaN where there is none
  std::vector<std::vector<double>> const& parameters;  ///< [case][parameter]
  std::vector<std::size_t> const& places;              ///< of the cases in the plan of the sample
};
/// Statistics of a quantity. With indices only cases of A and B count, but for the indices. `places` is ascending.
[[nodiscard]] QuantityStatistics statistics_of(std::string name, SampleSpec const& sample, SampledQuantity const& quantity);

/// Statistics of all quantities that are numbers, own ones first; empty without a sample.
[[nodiscard]] std::vector<SampleStatistics> sample_statistics(std::span<SweepCase const> cases, RunConfig const& config);

/// "Statistics of 60 of 64 cases, order = 2"
[[nodiscard]] std::string title_of(SampleStatistics const& statistics);
/// A map from names of quantities.
[[nodiscard]] nlohmann::ordered_json to_json(SampleStatistics const& statistics, SampleSpec const& sample);
/// Rows for Console::grid: own quantities, or where there are none those that vary, twelve at most.
[[nodiscard]] std::vector<std::vector<std::string>> table_of(SampleStatistics const& statistics, RunConfig const& config);

}  // namespace poisson::app
