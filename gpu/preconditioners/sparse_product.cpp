#include "gpu/preconditioners/sparse_product.hpp"

#include "gpu/core/host_vector.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace poisson {

namespace {

/// Rows that a thread takes at once.
constexpr std::int64_t rows_at_once = 256;

void sum_up(HostVector<std::int64_t>& row_ptr) {
  for (std::size_t i = 1; i < row_ptr.size(); ++i)
    row_ptr[i] += row_ptr[i - 1];
}

}  // namespace

CsrMatrix transposed(CsrMatrix const& a) {
  CsrMatrix result;
  result.n_rows = a.n_columns;
  result.n_columns = a.n_rows;
  result.row_ptr.resize(static_cast<std::size_t>(a.n_columns) + 1);
  std::fill(result.row_ptr.begin(), result.row_ptr.end(), 0);
  for (std::int32_t const column : a.columns)
    ++result.row_ptr[static_cast<std::size_t>(column) + 1];
  sum_up(result.row_ptr);
  result.columns.resize(a.columns.size());
  result.values.resize(a.values.size());
  std::vector<std::int64_t> next(result.row_ptr.begin(), result.row_ptr.end() - 1);
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k) {
      auto const to = static_cast<std::size_t>(next[static_cast<std::size_t>(a.columns[k])]++);
      result.columns[to] = static_cast<std::int32_t>(i);
      result.values[to] = a.values[k];
    }
  return result;
}

CsrMatrix sparse_product(CsrMatrix const& a, CsrMatrix const& b) {
  CsrMatrix result;
  result.n_rows = a.n_rows;
  result.n_columns = b.n_columns;
  result.row_ptr.resize(static_cast<std::size_t>(a.n_rows) + 1);
  result.row_ptr[0] = 0;
  auto const width = static_cast<std::size_t>(b.n_columns);
  // First the rows' lengths, then their entries. mark[c] tells the row in which column c was met last.
#pragma omp parallel
  {
    std::vector<std::int64_t> mark(width, -1);
#pragma omp for schedule(dynamic, rows_at_once)
    for (std::int64_t i = 0; i < a.n_rows; ++i) {
      std::int64_t length = 0;
      for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
        for (std::int64_t l = b.row_ptr[a.columns[k]]; l < b.row_ptr[a.columns[k] + 1]; ++l)
          if (std::int64_t& last = mark[static_cast<std::size_t>(b.columns[l])]; last != i) {
            last = i;
            ++length;
          }
      result.row_ptr[i + 1] = length;
    }
  }
  sum_up(result.row_ptr);
  result.columns.resize(static_cast<std::size_t>(result.row_ptr.back()));
  result.values.resize(static_cast<std::size_t>(result.row_ptr.back()));
#pragma omp parallel
  {
    std::vector<double> sums(width, 0.0);
    std::vector<std::int64_t> mark(width, -1);
#pragma omp for schedule(dynamic, rows_at_once)
    for (std::int64_t i = 0; i < a.n_rows; ++i) {
      std::int32_t* const columns = result.columns.data() + result.row_ptr[i];
      std::int64_t length = 0;
      for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k) {
        double const factor = a.values[k];
        for (std::int64_t l = b.row_ptr[a.columns[k]]; l < b.row_ptr[a.columns[k] + 1]; ++l) {
          auto const column = static_cast<std::size_t>(b.columns[l]);
          if (mark[column] != i) {
            mark[column] = i;
            sums[column] = 0;
            columns[length++] = b.columns[l];
          }
          sums[column] += factor * b.values[l];
        }
      }
      std::sort(columns, columns + length);
      for (std::int64_t k = 0; k < length; ++k)
        result.values[result.row_ptr[i] + k] = sums[static_cast<std::size_t>(columns[k])];
    }
  }
  return result;
}

}  // namespace poisson
