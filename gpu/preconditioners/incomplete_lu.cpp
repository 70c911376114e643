#include "gpu/preconditioners/incomplete_lu.hpp"

#include "gpu/core/memory.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/preconditioners/ordering.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

namespace poisson {

namespace {

bool has_diagonal(CsrMatrix const& a) {
  bool all = true;
#pragma omp parallel for schedule(static) reduction(&& : all)
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    std::int64_t const place = place_of_diagonal(a, row);
    all = all && place < a.row_ptr[row + 1] && a.columns[place] == row;
  }
  return all;
}

std::optional<RowOrder> order_for(CsrMatrix const& a, Ordering ordering, Backend backend) {
  // A device takes some microseconds a level; on the host, rows after one another in their own order are what its threads do well.
  bool const waits_count = ordering == Ordering::automatic && backend != Backend::cpu;
  std::int64_t const waits = waits_count ? levels_of(a, false).n_levels : 0;
  if (!wants_colors(ordering, waits, 1))
    return std::nullopt;
  RowOrder order = multicolor_order(a);
  return wants_colors(ordering, waits, order.n_colors) ? std::optional(std::move(order)) : std::nullopt;
}

}  // namespace

StoredSchedule::StoredSchedule(RowLevels const& levels, std::int64_t rows_at_once, Context& context) {
  level_ptr_.assign(static_cast<std::size_t>(levels.n_levels) + 1, 0);  // counts, one place further
  for (std::int32_t const mine : levels.level)
    if (mine >= 0)
      ++level_ptr_[static_cast<std::size_t>(mine) + 1];
  for (std::size_t l = 1; l < level_ptr_.size(); ++l)
    level_ptr_[l] = level_ptr_[l - 1] + (level_ptr_[l] + rows_at_once - 1) / rows_at_once * rows_at_once;
  HostVector<std::int32_t> rows;
  rows.resize(static_cast<std::size_t>(level_ptr_.back()), -1);
  std::vector<std::int64_t> next(level_ptr_.begin(), level_ptr_.end() - 1);
  for (std::size_t row = 0; row < levels.level.size(); ++row)
    if (levels.level[row] >= 0)
      rows[next[static_cast<std::size_t>(levels.level[row])]++] = static_cast<std::int32_t>(row);
  std::int64_t neighbors = 0;
  for (std::size_t slot = 1; slot < rows.size(); ++slot)
    neighbors += rows[slot] == rows[slot - 1] + 1 ? 1 : 0;
  side_by_side_ = 2 * neighbors > std::ssize(rows);
  rows_ = Array<std::int32_t>(context, std::span<std::int32_t const>(rows));
}

std::int64_t place_of_diagonal(CsrMatrix const& a, std::int64_t row) {
  auto const* const columns = a.columns.data();
  return std::lower_bound(columns + a.row_ptr[row], columns + a.row_ptr[row + 1], static_cast<std::int32_t>(row)) - columns;
}

std::optional<CsrMatrix> with_diagonal(CsrMatrix const& a) {
  if (has_diagonal(a))
    return std::nullopt;
  CsrMatrix b;
  b.n_rows = a.n_rows;
  b.n_columns = a.n_columns;
  b.row_ptr.push_back(0);
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    std::int64_t const diagonal = place_of_diagonal(a, row), end = a.row_ptr[row + 1];
    b.columns.insert(b.columns.end(), a.columns.begin() + a.row_ptr[row], a.columns.begin() + diagonal);
    b.values.insert(b.values.end(), a.values.begin() + a.row_ptr[row], a.values.begin() + diagonal);
    if (diagonal == end || a.columns[diagonal] != row) {
      b.columns.push_back(static_cast<std::int32_t>(row));
      b.values.push_back(0);
    }
    b.columns.insert(b.columns.end(), a.columns.begin() + diagonal, a.columns.begin() + end);
    b.values.insert(b.values.end(), a.values.begin() + diagonal, a.values.begin() + end);
    b.row_ptr.push_back(static_cast<std::int64_t>(b.columns.size()));
  }
  return b;
}

double shift_of(std::span<double const> row, double diagonal, double shift) {
  double largest = 0;
  for (double const value : row)
    largest = std::max(largest, std::abs(value));
  return diagonal < 0 ? -shift * largest : shift * largest;
}

bool wants_colors(Ordering ordering, std::int64_t waits, std::int64_t n_colors) {
  constexpr std::int64_t many = 64, many_more = 4;
  if (ordering != Ordering::automatic)
    return ordering == Ordering::multicolor;
  return waits > many && waits > many_more * n_colors;
}

int threads_for_rows(std::int64_t n_rows, std::int64_t nnz, bool level_launches) {
  // Two terms a thread or so, four where they are loaded together: half of a row's entries are in each triangle.
  std::int64_t const terms = level_launches ? 4 : 2;
  int threads = 1;
  while (threads < 32 && 2 * terms * n_rows * threads < nnz)
    threads *= 2;
  return threads;
}

StoredFactors::StoredFactors(std::span<std::int64_t const> row_ptr, std::span<std::int32_t const> columns,
                             std::span<double const> values, std::span<std::int64_t const> diagonal,
                             std::span<std::int32_t const> order, Context& context)
    : row_ptr_(context, row_ptr), diagonal_(context, diagonal), columns_(context, columns), values_(context, values) {
  if (!order.empty())
    order_ = Array<std::int32_t>(context, order);
}

IluView StoredFactors::view() {
  IluView result;
  result.n_rows = diagonal_.size();
  result.nnz = columns_.size();
  result.row_ptr = row_ptr_.data();
  result.columns = columns_.data();
  result.values = values_.data();
  result.diagonal = diagonal_.data();
  result.order = order_.data();
  return result;
}

IncompleteLu::IncompleteLu(CsrMatrix const& matrix, double shift, bool positive, Ordering ordering, Context& context) {
  std::optional<CsrMatrix> const completed = with_diagonal(matrix);
  CsrMatrix const& natural = completed ? *completed : matrix;
  std::optional<RowOrder> const order = order_for(natural, ordering, context.backend());
  CsrMatrix const by_color = order ? reordered(natural, *order) : CsrMatrix{};
  CsrMatrix const& a = order ? by_color : natural;
  std::int64_t const n = a.n_rows;
  constexpr std::int64_t scratch_of_row = 16;  // while they are computed
  require_memory(context, bytes(n, a.nnz(), order.has_value()) + scratch_of_row * n, "the incomplete factors",
                 "use the preconditioner jacobi, a coarser mesh, or the cpu backend");

  HostVector<std::int64_t> diagonal(static_cast<std::size_t>(n));
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n; ++row)
    diagonal[row] = place_of_diagonal(a, row);
  HostVector<double> shifted;
  if (shift != 0) {
    shifted = a.values;
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < n; ++row) {
      double& entry = shifted[diagonal[row]];
      entry += shift_of(std::span(a.values).subspan(a.row_ptr[row], a.row_ptr[row + 1] - a.row_ptr[row]), entry, shift);
    }
  }
  factors_ = StoredFactors(a.row_ptr, a.columns, shift == 0 ? a.values : shifted, diagonal,
                           order ? std::span<std::int32_t const>(order->rows) : std::span<std::int32_t const>(), context);
  shifted = {};
  view_ = factors_.view();
  // A launch takes about 2 microseconds, in which a device works on as many rows.
  constexpr std::int64_t rows_worth_a_launch = 1 << 16;
  bool const device = context.backend() == Backend::cuda;
  view_.level_launches = device && order && n >= rows_worth_a_launch * order->n_colors;
  view_.threads_per_row = threads_for_rows(n, a.nnz(), view_.level_launches);
  // Rows of a warp do not wait for each other: levels begin with a warp of their own.
  std::int64_t const rows_at_once = device && !view_.level_launches ? 32 / view_.threads_per_row : 1;
  lower_ = StoredSchedule(levels_of(a, false), rows_at_once, context);
  upper_ = StoredSchedule(levels_of(a, true), rows_at_once, context);
  view_.lower = lower_.view();
  view_.upper = upper_.view();
  bad_pivot_ = kernels_for<IluKernels>(context).factorize(context, view_, positive);
  if (order && bad_pivot_.row >= 0)
    bad_pivot_.row = order->rows[bad_pivot_.row];
}

}  // namespace poisson
