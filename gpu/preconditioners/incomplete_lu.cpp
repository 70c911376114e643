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

/// Place of the diagonal entry in a row, or of the first entry after it.
std::int64_t place_of_diagonal(CsrMatrix const& a, std::int64_t row) {
  auto const* const columns = a.columns.data();
  return std::lower_bound(columns + a.row_ptr[row], columns + a.row_ptr[row + 1], static_cast<std::int32_t>(row)) - columns;
}

/// a with the diagonal entries that it does not store, as zeros.
CsrMatrix with_diagonal(CsrMatrix const& a) {
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

bool has_diagonal(CsrMatrix const& a) {
  bool all = true;
#pragma omp parallel for schedule(static) reduction(&& : all)
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    std::int64_t const place = place_of_diagonal(a, row);
    all = all && place < a.row_ptr[row + 1] && a.columns[place] == row;
  }
  return all;
}

/// The multicolor order, where it is asked for or, on a device, chains of rows of the natural order are long and much longer: a
/// device takes some microseconds a level. On the host, rows after one another in their own order are what its threads do well.
std::optional<RowOrder> order_for(CsrMatrix const& a, Ordering ordering, Backend backend) {
  constexpr std::int64_t short_chains = 64, much_longer = 4;
  if (ordering == Ordering::natural || (ordering == Ordering::automatic && backend == Backend::cpu))
    return std::nullopt;
  std::int64_t const levels = ordering == Ordering::automatic ? levels_of(a, false).n_levels : 0;
  if (ordering == Ordering::automatic && levels <= short_chains)
    return std::nullopt;
  RowOrder order = multicolor_order(a);
  if (ordering == Ordering::automatic && levels <= much_longer * order.n_colors)
    return std::nullopt;
  return order;
}

}  // namespace

IncompleteLu::IncompleteLu(CsrMatrix const& matrix, double shift, bool positive, Ordering ordering, Context& context) {
  CsrMatrix const completed = has_diagonal(matrix) ? CsrMatrix{} : with_diagonal(matrix);
  CsrMatrix const& natural = completed.n_rows > 0 ? completed : matrix;
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
  row_ptr_ = Array<std::int64_t>(context, std::span<std::int64_t const>(a.row_ptr));
  columns_ = Array<std::int32_t>(context, std::span<std::int32_t const>(a.columns));
  diagonal_ = Array<std::int64_t>(context, std::span<std::int64_t const>(diagonal));
  if (shift == 0)
    values_ = Array<double>(context, std::span<double const>(a.values));
  else {
    HostVector<double> shifted(a.values);
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < n; ++row) {
      double largest = 0;
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        largest = std::max(largest, std::abs(a.values[e]));
      double& entry = shifted[diagonal[row]];
      entry += entry < 0 ? -shift * largest : shift * largest;
    }
    values_ = Array<double>(context, std::span<double const>(shifted));
  }

  if (order)
    order_ = Array<std::int32_t>(context, std::span<std::int32_t const>(order->rows));

  view_.n_rows = n;
  view_.nnz = a.nnz();
  view_.row_ptr = row_ptr_.data();
  view_.columns = columns_.data();
  view_.values = values_.data();
  view_.diagonal = diagonal_.data();
  view_.order = order_.data();
  // A launch takes about 2 microseconds, in which a device works on as many rows.
  constexpr std::int64_t rows_worth_a_launch = 1 << 16;
  bool const device = context.backend() == Backend::cuda;
  view_.level_launches = device && order && n >= rows_worth_a_launch * order->n_colors;
  // Two terms a thread or so, four where they are loaded together: half of a row's entries are in each triangle.
  std::int64_t const terms = view_.level_launches ? 4 : 2;
  while (view_.threads_per_row < 32 && 2 * terms * n * view_.threads_per_row < a.nnz())
    view_.threads_per_row *= 2;
  // Rows of a warp do not wait for each other: levels begin with a warp of their own.
  std::int64_t const rows_at_once = device && !view_.level_launches ? 32 / view_.threads_per_row : 1;
  view_.lower = make_schedule(a, false, rows_at_once, context, lower_);
  view_.upper = make_schedule(a, true, rows_at_once, context, upper_);
  bad_pivot_ = kernels_for<IluKernels>(context).factorize(context, view_, positive);
  if (order && bad_pivot_.row >= 0)
    bad_pivot_.row = order->rows[bad_pivot_.row];
}

LevelSchedule IncompleteLu::make_schedule(CsrMatrix const& a, bool upper, std::int64_t rows_at_once, Context& context,
                                          Schedule& schedule) {
  auto const [level, n_levels] = levels_of(a, upper);
  std::vector<std::int64_t>& ptr = schedule.level_ptr;
  ptr.assign(static_cast<std::size_t>(n_levels) + 1, 0);  // counts, one place further
  for (std::int32_t const mine : level)
    ++ptr[static_cast<std::size_t>(mine) + 1];
  for (std::size_t l = 1; l < ptr.size(); ++l)
    ptr[l] = ptr[l - 1] + (ptr[l] + rows_at_once - 1) / rows_at_once * rows_at_once;
  HostVector<std::int32_t> rows;
  rows.resize(static_cast<std::size_t>(ptr.back()), -1);
  std::vector<std::int64_t> next(ptr.begin(), ptr.end() - 1);
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    rows[next[level[row]]++] = static_cast<std::int32_t>(row);
  schedule.rows = Array<std::int32_t>(context, std::span<std::int32_t const>(rows));
  return {schedule.rows.data(), ptr.back(), ptr.data(), n_levels};
}

}  // namespace poisson
