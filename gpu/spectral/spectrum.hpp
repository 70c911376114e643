#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace poisson {

/// Numerical rank and condition of a matrix, from its singular values.
struct Spectrum {
  std::int64_t rank = 0;  ///< number of values above `threshold`
  double threshold = 0;   ///< max(n_rows, n_columns) 2^-52 times the largest value: smaller values may be rounding errors
  double condition = 0;   ///< the largest value over the smallest above the threshold; NaN when rank is 0
  double largest = 0;     ///< the largest value
  double smallest = 0;    ///< the smallest value above the threshold
};
/// Precondition: values descend.
[[nodiscard]] Spectrum spectrum_of(std::span<double const> values, std::int64_t n_rows, std::int64_t n_columns);

/// The relative errors, in the Frobenius norm, of the best approximations of rank r = 0, 1, ..., values.size() (Eckart, Young
/// 1936): sqrt(sum of the squares of values[r], values[r + 1], ...) / sqrt(sum of all squares). All 0 when all values are 0.
/// Squares neither overflow nor underflow.
[[nodiscard]] std::vector<double> errors_by_rank(std::span<double const> values);
/// The smallest rank whose error is at most `error`. Preconditions: `errors` are from errors_by_rank; error >= 0.
[[nodiscard]] std::int64_t smallest_rank(std::span<double const> errors, double error);

}  // namespace poisson
