#pragma once

#include "gpu/core/host_device.hpp"
#include "gpu/kernels/csr.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

namespace poisson {

struct CsrEntry {
  double value = 0;
  bool stored = false;
};

/// a(row, column). `guess` is where the entry would be in a row that mirrors its neighbour's pattern, as rows of a box do; -1
/// without.
[[nodiscard]] POISSON_HOST_DEVICE inline CsrEntry find_entry(CsrView const& a, std::int64_t row, std::int64_t column,
                                                             std::int64_t guess) {
  std::int64_t first = a.row_ptr[row];
  std::int64_t const end = a.row_ptr[row + 1];
  if (guess >= first && guess < end && a.columns[guess] == column)
    return {a.values[guess], true};
  for (std::int64_t last = end; first < last;) {
    std::int64_t const middle = first + (last - first) / 2;
    if (a.columns[middle] < column)
      first = middle + 1;
    else
      last = middle;
  }
  if (first == end || a.columns[first] != column)
    return {};
  return {a.values[first], true};
}

/// Whether the entry value = a(row, column) and its mirror differ by more than 64 units in the last place of the largest among the
/// two and their diagonal entries; two NaNs do not.
[[nodiscard]] POISSON_HOST_DEVICE inline bool asymmetric(CsrView const& a, std::int64_t row, std::int64_t column, double value,
                                                         double mirror) {
  if (value == mirror || (value != value && mirror != mirror))
    return false;
  double scale = std::abs(value);
  for (double const other : {mirror, find_entry(a, row, row, -1).value, find_entry(a, column, column, -1).value})
    if (scale < std::abs(other))
      scale = std::abs(other);
  return !(std::abs(value - mirror) <= 64 * std::numeric_limits<double>::epsilon() * scale);
}

}  // namespace poisson
