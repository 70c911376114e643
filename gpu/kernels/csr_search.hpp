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

/// a(row, column) by bisection, after a look at place `guess` of columns and values (-1: no guess).
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

/// The largest |a_ij| of the row over its finite entries; 0 where there is none.
[[nodiscard]] POISSON_HOST_DEVICE inline double largest_entry(CsrView const& a, std::int64_t row) {
  double largest = 0;
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    double const size = std::abs(a.values[e]);
    if (largest < size && size <= std::numeric_limits<double>::max())
      largest = size;
  }
  return largest;
}

/// How far an entry is from its mirror image, relative to the largest entries of their rows (see kernels/symmetry.hpp).
[[nodiscard]] POISSON_HOST_DEVICE inline double asymmetry_of(double value, double mirror, double largest_of_row,
                                                             double largest_of_mirror) {
  if (value == mirror || (value != value && mirror != mirror))
    return 0;
  double const relative = std::abs(value - mirror) / (largest_of_row < largest_of_mirror ? largest_of_mirror : largest_of_row);
  return relative == relative ? relative : std::numeric_limits<double>::infinity();
}

}  // namespace poisson
