#pragma once

#include "app/config/run_config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Samples of uncertain parameters.
namespace poisson::app {

/// `count` points of [0, 1)^dimensions, one row each. The same seed gives the same points everywhere, and the points for a smaller
/// count are the first ones of those for a larger count.
///
/// latin_hypercube: where count is a power of 2, each of `count` equal intervals holds one point in every dimension, and points are
/// paired at random (McKay, Beckman, Conover 1979); of other counts each of the next power of 2 intervals holds one point or none.
/// sobol: a low-discrepancy sequence (Joe and Kuo 2008) without its first point, 0; a seed other than 0 shifts its binary digits.
/// random: independent numbers. Precondition: at most most_sobol_dimensions dimensions for sobol.
[[nodiscard]] std::vector<std::vector<double>> unit_samples(SampleMethod method, std::size_t count, std::size_t dimensions,
                                                            std::int64_t seed);
inline constexpr std::size_t most_sobol_dimensions = 3667;

/// What a parameter is called: "k" for parameters.k; else its key path.
[[nodiscard]] std::string name_of_parameter(SampleSpec::Parameter const& parameter);

/// The value of a parameter for u in [0, 1): the u-quantile of its distribution.
[[nodiscard]] double quantile_of(SampleSpec::Parameter const& parameter, double u);

/// Cases for each sample point: one; for indices parameters + 2, by Saltelli et al. (2010): A, B, and for every parameter A with
/// the value of B for it.
[[nodiscard]] constexpr std::size_t cases_of_point(SampleSpec const& sample) {
  return sample.indices ? sample.parameters.size() + 2 : 1;
}

/// The values of the parameters in every case of a sample: [case][parameter]. Cases of one sample point follow each other.
[[nodiscard]] std::vector<std::vector<double>> sampled_values(SampleSpec const& sample);

}  // namespace poisson::app
