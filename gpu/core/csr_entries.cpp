#include "gpu/core/csr_entries.hpp"

#include "gpu/core/host_vector.hpp"
#include "gpu/core/threads.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace poisson {

namespace {

/// Fewer entries than these are put in their places by one thread.
constexpr std::int64_t fewest_in_parts = 1 << 14;

struct ColumnEntry {
  std::int32_t column;
  double value;
};

/// Sorts the entries of a row by columns, those in one place in the order in which they were.
void sort_by_columns(std::span<ColumnEntry> row) {
  auto const is_before = [](ColumnEntry const& a, ColumnEntry const& b) { return a.column < b.column; };
  if (row.size() > 64) {
    std::stable_sort(row.begin(), row.end(), is_before);
    return;
  }
  for (std::size_t i = 1; i < row.size(); ++i) {  // of a few entries without memory
    ColumnEntry const entry = row[i];
    std::size_t at = i;
    for (; at > 0 && is_before(entry, row[at - 1]); --at)
      row[at] = row[at - 1];
    row[at] = entry;
  }
}

/// Adds the entries in one place of a row that is sorted. Returns how many are left.
std::int64_t add_equal(std::span<ColumnEntry> row) {
  std::size_t count = 0;
  for (ColumnEntry const& entry : row)
    if (count > 0 && row[count - 1].column == entry.column)
      row[count - 1].value += entry.value;
    else
      row[count++] = entry;
  return static_cast<std::int64_t>(count);
}

}  // namespace

CsrMatrix csr_of_entries(std::int64_t n_rows, std::int64_t n_columns, std::vector<MatrixEntry> const& entries) {
  // next[row + 1] is where the next entry of a row goes; in the end where those of the next row begin.
  HostVector<std::int64_t> next;
  next.resize(static_cast<std::size_t>(n_rows) + 2, 0);
  auto const n_entries = std::ssize(entries);
#pragma omp parallel for schedule(static)
  for (std::int64_t e = 0; e < n_entries; ++e) {
    std::int64_t& count = next[static_cast<std::size_t>(entries[static_cast<std::size_t>(e)].row) + 2];
#pragma omp atomic
    ++count;
  }
  for (std::size_t row = 2; row < next.size(); ++row)
    next[row] += next[row - 1];
  // A thread puts the entries of some rows in their places, as many as others, and reads all: so they stay in their order.
  std::int64_t const n_parts = n_entries < fewest_in_parts ? 1 : thread_count();
  std::vector<std::int64_t> first_row(static_cast<std::size_t>(n_parts) + 1, n_rows);
  for (std::int64_t part = 0; part < n_parts; ++part)
    first_row[static_cast<std::size_t>(part)] =
        std::lower_bound(next.begin() + 1, next.end() - 1, part * n_entries / n_parts) - (next.begin() + 1);
  first_row[0] = 0;
  HostVector<ColumnEntry> by_row(entries.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t part = 0; part < n_parts; ++part) {
    std::int64_t const begin = first_row[static_cast<std::size_t>(part)], end = first_row[static_cast<std::size_t>(part) + 1];
    for (MatrixEntry const& entry : entries)
      if (entry.row >= begin && entry.row < end)
        by_row[static_cast<std::size_t>(next[static_cast<std::size_t>(entry.row) + 1]++)] = {entry.column, entry.value};
  }

  CsrMatrix result;
  result.n_rows = n_rows;
  result.n_columns = n_columns;
  result.row_ptr.resize(static_cast<std::size_t>(n_rows) + 1);
  result.row_ptr[0] = 0;
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    auto const first = next[static_cast<std::size_t>(row)];
    std::span<ColumnEntry> const of_row(by_row.data() + first,
                                        static_cast<std::size_t>(next[static_cast<std::size_t>(row) + 1] - first));
    sort_by_columns(of_row);
    result.row_ptr[static_cast<std::size_t>(row) + 1] = add_equal(of_row);
  }
  for (std::size_t row = 1; row < result.row_ptr.size(); ++row)
    result.row_ptr[row] += result.row_ptr[row - 1];
  result.columns.resize(static_cast<std::size_t>(result.row_ptr.back()));
  result.values.resize(static_cast<std::size_t>(result.row_ptr.back()));
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    ColumnEntry const* from = by_row.data() + next[static_cast<std::size_t>(row)];
    for (std::int64_t e = result.row_ptr[static_cast<std::size_t>(row)]; e < result.row_ptr[static_cast<std::size_t>(row) + 1];
         ++e, ++from) {
      result.columns[static_cast<std::size_t>(e)] = from->column;
      result.values[static_cast<std::size_t>(e)] = from->value;
    }
  }
  return result;
}

}  // namespace poisson
