#include "gpu/spectral/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poisson {

Spectrum spectrum_of(std::span<double const> values, std::int64_t n_rows, std::int64_t n_columns) {
  Spectrum result;
  if (values.empty())
    return result;
  result.threshold = static_cast<double>(std::max(n_rows, n_columns)) * std::numeric_limits<double>::epsilon() * values.front();
  result.rank = std::count_if(values.begin(), values.end(), [&](double value) { return value > result.threshold; });
  result.largest = values.front();
  result.smallest = result.rank > 0 ? values[static_cast<std::size_t>(result.rank - 1)] : std::nan("");
  result.condition = values.front() / result.smallest;
  return result;
}

std::vector<double> errors_by_rank(std::span<double const> values) {
  std::vector<double> errors(values.size() + 1, 0.0);
  double const largest = values.empty() ? 0 : values.front();  // squares of scaled values neither overflow nor vanish
  if (!(largest > 0))
    return errors;
  for (std::size_t i = values.size(); i-- > 0;)
    errors[i] = errors[i + 1] + (values[i] / largest) * (values[i] / largest);
  double const all = errors.front();
  for (double& error : errors)
    error = std::sqrt(error / all);
  return errors;
}

std::int64_t smallest_rank(std::span<double const> errors, double error) {
  return std::find_if(errors.begin(), errors.end(), [&](double e) { return e <= error; }) - errors.begin();
}

}  // namespace poisson
