#pragma once

#include "gpu/core/csr_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace poisson {

/// Sorts the entries of a row by columns, and adds those in one place in the order in which they were.
inline void sort_and_add(std::vector<std::pair<std::int32_t, double>>& row) {
  std::stable_sort(row.begin(), row.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
  std::size_t last = 0;
  for (std::size_t e = 1; e < row.size(); ++e)
    if (row[e].first == row[last].first)
      row[last].second += row[e].second;
    else
      row[++last] = row[e];
  row.resize(row.empty() ? 0 : last + 1);
}

/// Whether half_cds stores an entry: -0.0 stands where it stores nothing.
[[nodiscard]] inline bool is_stored(double value) {
  return value != 0 || !std::signbit(value);
}

struct MatrixEntry {
  std::int64_t row;
  std::int32_t column;
  double value;
};

/// Calls take(row, column, value) for the entries, row by row.
template <class Take>
void for_entries(CsrMatrix const& a, Take const& take) {
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      take(row, a.columns[e], a.values[e]);
}

/// Makes a matrix in CSR from entries in any order, with all threads. Entries in one place are added in the order in which they
/// stand. Bytes an entry: 24 read once, and once by every thread, then 16, three times at most.
[[nodiscard]] CsrMatrix csr_of_entries(std::int64_t n_rows, std::int64_t n_columns, std::vector<MatrixEntry> const& entries);

}  // namespace poisson
