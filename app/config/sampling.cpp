#include "app/config/sampling.hpp"

#include <boost/math/special_functions/erf.hpp>
#include <boost/random/sobol.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

namespace poisson::app {

namespace {

/// Of one dimension.
std::mt19937_64 engine_for(std::int64_t seed, std::size_t dimension) {
  auto const bits = static_cast<std::uint64_t>(seed);
  std::seed_seq words{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32),
                      static_cast<std::uint32_t>(dimension)};
  return std::mt19937_64(words);
}

/// In [0, 1). Not std::uniform_real_distribution, which is another one in every library.
double uniform(std::mt19937_64& engine) {
  return static_cast<double>(engine() >> 11) * 0x1p-53;
}

/// One dimension of a Latin hypercube that doubles: after 2^j numbers each of 2^j equal intervals has one of them, and the next 2^j
/// numbers fall into the halves that are still empty, in random order.
std::vector<double> stratified(std::size_t count, std::mt19937_64 engine) {
  std::vector<double> numbers{uniform(engine)};
  while (numbers.size() < count) {
    std::size_t const n = numbers.size();
    double const width = 0.5 / static_cast<double>(n);
    std::vector<std::size_t> empty;
    for (double const number : numbers)
      empty.push_back(std::min(static_cast<std::size_t>(number / width), 2 * n - 1) ^ 1U);
    for (std::size_t i = n; i > 1; --i)
      std::swap(empty[i - 1], empty[engine() % i]);
    for (std::size_t const interval : empty)
      // A number that is rounded up would be in the next interval.
      numbers.push_back(std::min((static_cast<double>(interval) + uniform(engine)) * width,
                                 std::nextafter(static_cast<double>(interval + 1) * width, 0.)));
  }
  numbers.resize(count);
  return numbers;
}

}  // namespace

std::vector<std::vector<double>> unit_samples(SampleMethod method, std::size_t count, std::size_t dimensions, std::int64_t seed) {
  std::vector<std::vector<double>> points(count, std::vector<double>(dimensions));
  if (count == 0)
    return points;
  if (method == SampleMethod::sobol) {
    assert(dimensions <= most_sobol_dimensions);
    boost::random::sobol sequence(dimensions);
    std::vector<std::uint64_t> shifts(dimensions, 0);
    if (seed != 0)
      for (std::size_t d = 0; d < dimensions; ++d)
        shifts[d] = engine_for(seed, d)();
    for (auto& point : points)
      for (std::size_t d = 0; d < dimensions; ++d)
        point[d] = static_cast<double>((sequence() ^ shifts[d]) >> 11) * 0x1p-53;
    return points;
  }
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::mt19937_64 engine = engine_for(seed, d);
    std::vector<double> numbers;
    if (method == SampleMethod::latin_hypercube)
      numbers = stratified(count, engine);
    else
      for (std::size_t i = 0; i < count; ++i)
        numbers.push_back(uniform(engine));
    for (std::size_t i = 0; i < count; ++i)
      points[i][d] = numbers[i];
  }
  return points;
}

std::string name_of_parameter(SampleSpec::Parameter const& parameter) {
  constexpr std::string_view of_parameters = "parameters.";
  return parameter.path.starts_with(of_parameters) ? parameter.path.substr(of_parameters.size()) : parameter.path;
}

double quantile_of(SampleSpec::Parameter const& parameter, double u) {
  double const a = parameter.numbers[0], b = parameter.numbers[1];
  auto const normal = [&] {
    double const inside = std::clamp(u, 0x1p-54, 1 - 0x1p-53);
    return a + b * std::numbers::sqrt2 * boost::math::erf_inv(2 * inside - 1);
  };
  switch (parameter.distribution) {
  case Distribution::uniform:
    return a + u * (b - a);
  case Distribution::loguniform:
    return a * std::pow(b / a, u);
  case Distribution::normal:
    return normal();
  case Distribution::lognormal:
    return std::exp(normal());
  }
  return u;
}

std::vector<std::vector<double>> sampled_values(SampleSpec const& sample) {
  std::size_t const n = sample.parameters.size();
  auto const points = unit_samples(sample.method, static_cast<std::size_t>(sample.count), sample.indices ? 2 * n : n, sample.seed);
  std::vector<std::vector<double>> cases;
  auto const add = [&](std::vector<double> const& point, auto const& dimension_of) {
    std::vector<double>& values = cases.emplace_back();
    for (std::size_t p = 0; p < n; ++p)
      values.push_back(quantile_of(sample.parameters[p], point[dimension_of(p)]));
  };
  for (auto const& point : points) {
    add(point, [](std::size_t p) { return p; });
    if (!sample.indices)
      continue;
    add(point, [&](std::size_t p) { return n + p; });
    for (std::size_t other = 0; other < n; ++other)
      add(point, [&](std::size_t p) { return p == other ? n + p : p; });
  }
  return cases;
}

}  // namespace poisson::app
