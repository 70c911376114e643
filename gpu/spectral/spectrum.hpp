#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace poisson {

/// What a matrix's singular values, in descending order, say of it.
struct Spectrum {
  std::int64_t rank = 0;  ///< number of values above `threshold`
  double threshold = 0;   ///< max(rows, columns) eps times the largest value: smaller values may be rounding
  double condition = 0;   ///< the largest value over the smallest above the threshold; NaN when there is none
  double largest = 0;     ///< the largest value
  double smallest = 0;    ///< the smallest value above the threshold
};
[[nodiscard]] Spectrum spectrum_of(std::span<double const> values, std::int64_t n_rows, std::int64_t n_columns);

/// sqrt(sum of the squares of values[rank ...]) / sqrt(sum of all squares): the relative error in the Frobenius norm of the best
/// approximation of each rank 0, 1, ..., values.size() (Eckart, Young 1936). All 0 when all values are.
[[nodiscard]] std::vector<double> errors_by_rank(std::span<double const> values);
/// The first rank whose error is at most `error`. Precondition: the errors come from errors_by_rank, and error >= 0.
[[nodiscard]] std::int64_t smallest_rank(std::span<double const> errors, double error);

}  // namespace poisson
