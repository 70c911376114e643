#pragma once

#include "gpu/kernels/ilu.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace poisson {

/// Eliminates a row on the host by those of its columns that come before it: they have been eliminated. Returns its pivot where
/// that is bad (IluKernels::factorize). Rows that do not need each other may be eliminated at the same time.
[[nodiscard]] inline std::optional<double> bad_pivot_of(IluView const& a, std::int64_t row, bool positive) {
  std::int64_t const begin = a.row_ptr[row], diagonal = a.diagonal[row], end = a.row_ptr[row + 1];
  double largest = 0;
  for (std::int64_t e = begin; e < end; ++e)
    largest = std::max(largest, std::abs(a.values[e]));
  for (std::int64_t e = begin; e < diagonal; ++e) {
    std::int64_t const k = a.columns[e];
    double const factor = a.values[e] * a.values[a.diagonal[k]];
    a.values[e] = factor;
    std::int64_t to = e + 1;
    for (std::int64_t from = a.diagonal[k] + 1; from < a.row_ptr[k + 1]; ++from) {
      while (to < end && a.columns[to] < a.columns[from])
        ++to;
      if (to == end)
        break;
      if (a.columns[to] == a.columns[from])
        a.values[to] = std::fma(-factor, a.values[from], a.values[to]);
    }
  }
  double const pivot = a.values[diagonal];
  a.values[diagonal] = 1 / pivot;
  if (!((positive ? pivot : std::abs(pivot)) > smallest_pivot * largest) || !std::isfinite(pivot))
    return pivot;
  return std::nullopt;
}

}  // namespace poisson
