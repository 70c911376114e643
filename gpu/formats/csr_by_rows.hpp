#pragma once

#include "gpu/core/csr_matrix.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace poisson {

/// Makes a matrix in CSR from rows that are computed twice, in parallel: to count entries, and to store them. Calls
/// row_of(row, entries, scratch), which appends columns and values in any order; those in one place are added, in this order, in
/// Number (double or DoubleDouble). `scratch` is null where only columns count, else a Scratch of the thread.
template <class Number, class Scratch, class RowOf>
[[nodiscard]] CsrMatrix csr_by_rows(std::int64_t n_rows, std::int64_t n_columns, RowOf const& row_of) {
  CsrMatrix result;
  result.n_rows = n_rows;
  result.n_columns = n_columns;
  result.row_ptr.resize(static_cast<std::size_t>(n_rows) + 1);
  result.row_ptr[0] = 0;
  auto const for_rows = [&](bool with_values, auto const& take) {
#pragma omp parallel
    {
      std::vector<std::pair<std::int32_t, Number>> entries;
      Scratch scratch;
#pragma omp for schedule(static)
      for (std::int64_t row = 0; row < n_rows; ++row) {
        entries.clear();
        row_of(row, entries, with_values ? &scratch : nullptr);
        std::stable_sort(entries.begin(), entries.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
        std::size_t count = 0;
        for (auto const& entry : entries)
          if (count > 0 && entries[count - 1].first == entry.first)
            entries[count - 1].second = entries[count - 1].second + entry.second;
          else
            entries[count++] = entry;
        entries.resize(count);
        take(row, entries);
      }
    }
  };
  for_rows(false, [&](std::int64_t row, auto const& entries) { result.row_ptr[row + 1] = std::ssize(entries); });
  std::partial_sum(result.row_ptr.begin(), result.row_ptr.end(), result.row_ptr.begin());
  result.columns.resize(static_cast<std::size_t>(result.row_ptr.back()));
  result.values.resize(static_cast<std::size_t>(result.row_ptr.back()));
  for_rows(true, [&](std::int64_t row, auto const& entries) {
    std::int64_t e = result.row_ptr[row];
    for (auto const& [column, value] : entries) {
      result.columns[e] = column;
      result.values[e++] = static_cast<double>(value);
    }
  });
  return result;
}

}  // namespace poisson
