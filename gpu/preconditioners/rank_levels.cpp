#include "gpu/preconditioners/rank_levels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace poisson::rank_levels {

namespace {

/// An entry that goes to the rank of its row; numbers are those of all ranks.
struct SentEntry {
  std::int64_t row, column;
  double value;
};

/// Entries for some of the rows, by rows, with columns as those of a level.
struct MoreEntries {
  std::vector<std::int64_t> row_ptr;  ///< of all own rows
  std::vector<std::int32_t> columns;
  std::vector<double> values;
};
MoreEntries sorted_by_rows(std::vector<SentEntry> const& entries, RowMap const& rows, RowMap const& columns) {
  auto const n = static_cast<std::size_t>(rows.n_own());
  MoreEntries result;
  result.row_ptr.assign(n + 1, 0);
  auto const row_of = [&](SentEntry const& entry) { return static_cast<std::size_t>(entry.row - rows.first[rows.me]); };
  for (SentEntry const& entry : entries)
    ++result.row_ptr[row_of(entry) + 1];
  for (std::size_t row = 0; row < n; ++row)
    result.row_ptr[row + 1] += result.row_ptr[row];
  result.columns.resize(entries.size());
  result.values.resize(entries.size());
  std::vector<std::int64_t> next(result.row_ptr.begin(), result.row_ptr.end() - 1);
  for (SentEntry const& entry : entries) {
    auto const at = static_cast<std::size_t>(next[row_of(entry)]++);
    result.columns[at] = static_cast<std::int32_t>(columns.place(entry.column));
    result.values[at] = entry.value;
  }
  return result;
}

/// `rows` with other numbers for its columns, in the same order, and with more entries; those in one place are added.
std::shared_ptr<CsrMatrix const> with_more(CsrView const& rows, std::vector<std::int32_t> const& columns, std::int64_t n_columns,
                                           MoreEntries const& more) {
  auto result = std::make_shared<CsrMatrix>();
  result->n_rows = rows.n_rows;
  result->n_columns = n_columns;
  result->row_ptr.resize(static_cast<std::size_t>(rows.n_rows) + 1);
  result->row_ptr[0] = 0;
  std::vector<std::pair<std::int32_t, double>> merged;
  auto const merge = [&](std::int64_t row) {
    merged.clear();
    for (std::int64_t e = rows.row_ptr[row]; e < rows.row_ptr[row + 1]; ++e)
      merged.emplace_back(columns[static_cast<std::size_t>(rows.columns[e])], rows.values[e]);
    for (auto e = static_cast<std::size_t>(more.row_ptr[row]); e < static_cast<std::size_t>(more.row_ptr[row + 1]); ++e)
      merged.emplace_back(more.columns[e], more.values[e]);
    sort_and_add(merged);
  };
  auto const has_more = [&](std::int64_t row) { return more.row_ptr[row + 1] > more.row_ptr[row]; };
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    if (has_more(row))
      merge(row);
    result->row_ptr[row + 1] =
        result->row_ptr[row] + (has_more(row) ? std::ssize(merged) : rows.row_ptr[row + 1] - rows.row_ptr[row]);
  }
  auto const nnz = static_cast<std::size_t>(result->row_ptr[static_cast<std::size_t>(rows.n_rows)]);
  result->columns.resize(nnz);
  result->values.resize(nnz);
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    auto out = static_cast<std::size_t>(result->row_ptr[row]);
    if (has_more(row)) {
      merge(row);
      for (auto const& [column, value] : merged) {
        result->columns[out] = column;
        result->values[out++] = value;
      }
      continue;
    }
    for (std::int64_t e = rows.row_ptr[row]; e < rows.row_ptr[row + 1]; ++e, ++out) {
      result->columns[out] = columns[static_cast<std::size_t>(rows.columns[e])];
      result->values[out] = rows.values[e];
    }
  }
  return result;
}

/// A in the memory of a context, where that is another one.
class InContext {
public:
  InContext(Context& context, CsrView const& host) : view_(host) {
    if (context.backend() == Backend::cpu)
      return;
    auto const nnz = static_cast<std::size_t>(host.nnz);
    arrays_.n_columns = host.n_columns;
    arrays_.row_ptr = Array<std::int64_t>(context, std::span(host.row_ptr, static_cast<std::size_t>(host.n_rows) + 1));
    arrays_.columns = Array<std::int32_t>(context, std::span(host.columns, nnz));
    arrays_.values = Array<double>(context, std::span(host.values, nnz));
    view_ = arrays_.view();
  }
  [[nodiscard]] CsrView const& view() const { return view_; }

private:
  SparseArrays arrays_;
  CsrView view_;
};

SparseArrays on_host(Context& context, Context& host, SparseArrays a) {
  if (context.backend() == Backend::cpu)
    return a;
  return {a.n_columns, a.row_ptr.copy_to(host), a.columns.copy_to(host), a.values.copy_to(host)};
}

}  // namespace

LevelRows finest_rows(RankMatrix const& a) {
  Communicator& ranks = a.ranks();
  LevelRows level;
  std::int64_t const n = a.n_rows();
  // The ghosts of the matrix are numbered as those here: by rank, and within a rank as it sends them, which need not ascend.
  RowMap const of_matrix(ranks, n, a.neighbors());
  RowMap const& rows = level.rows = of_matrix.with_ghosts(ranks, of_matrix.ghosts);
  std::vector<std::int64_t> numbers = of_matrix.ghosts;
  for (std::int32_t const row : a.own_columns())
    numbers.push_back(rows.number_at(row));
  CsrMatrix const couplings = a.couplings();
  HostVector<std::int32_t> const rim = a.rim();
  std::vector<SentEntry> more;
  for (std::size_t i = 0; i < rim.size(); ++i)
    for (std::int64_t e = couplings.row_ptr[i]; e < couplings.row_ptr[i + 1]; ++e)
      more.push_back({rows.number_at(rim[i]), numbers[static_cast<std::size_t>(couplings.columns[e])], couplings.values[e]});
  std::vector<std::int32_t> same(static_cast<std::size_t>(n));
  std::iota(same.begin(), same.end(), 0);
  auto const merged = [&](CsrView const& local) { return with_more(local, same, rows.n_here(), sorted_by_rows(more, rows, rows)); };
  auto const* const csr = dynamic_cast<Csr const*>(&a.local());
  if (csr != nullptr && csr->context().backend() == Backend::cpu && csr->precision() == MatrixPrecision::double_)
    level.matrix = merged(csr->view());
  else
    level.matrix = merged(view_of(a.local().to_csr()));
  return level;
}

double largest_of_any(Communicator& ranks, LevelRows const& level, std::span<double const> diagonal) {
  constexpr int power_steps = 14;
  CsrMatrix const& a = *level.matrix;
  auto const n = static_cast<std::size_t>(a.n_rows);
  std::vector<double> x(n);
  std::uint32_t state = 1 + static_cast<std::uint32_t>(ranks.rank());
  for (double& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<double>(state) / 4294967296.0 - 0.5;
  }
  auto const host = make_cpu_context();
  auto const exchange = exchange_of<double>(*host, ranks, level.rows);
  x.resize(static_cast<std::size_t>(a.n_columns));
  std::vector<double> y(n);
  double estimate = 0;
  for (int step = 0; step < power_steps; ++step) {
    exchange->fill(x.data());
    double before = 0, after = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e)
        sum += a.values[e] * x[static_cast<std::size_t>(a.columns[e])];
      y[i] = sum / diagonal[i];
      before += std::abs(diagonal[i]) * x[i] * x[i];
      after += std::abs(diagonal[i]) * y[i] * y[i];
    }
    before = sum_over(ranks, before);
    after = sum_over(ranks, after);
    if (!(before > 0) || !(after > 0))
      return std::nan("");
    estimate = std::sqrt(after / before);
    for (std::size_t i = 0; i < n; ++i)
      x[i] = y[i] / std::sqrt(after);
  }
  return estimate;
}

std::shared_ptr<CsrMatrix const> whole_matrix(Communicator& ranks, CsrMatrix const& own, RowMap const& rows,
                                              RowMap const& columns) {
  struct Item {
    std::int64_t column;
    double value;
  };
  std::vector<std::int64_t> lengths;
  std::vector<Item> items;
  items.reserve(static_cast<std::size_t>(own.nnz()));
  for (std::int64_t row = 0; row < own.n_rows; ++row) {
    auto const begin = std::ssize(items);
    for (std::int64_t e = own.row_ptr[row]; e < own.row_ptr[row + 1]; ++e)
      items.push_back({columns.number_at(own.columns[e]), own.values[e]});
    std::sort(items.begin() + begin, items.end(), [](Item const& a, Item const& b) { return a.column < b.column; });
    lengths.push_back(std::ssize(items) - begin);
  }
  lengths = gather_lists(ranks, std::move(lengths));
  items = gather_lists(ranks, std::move(items));
  auto result = std::make_shared<CsrMatrix>();
  result->n_rows = rows.n_of_all();
  result->n_columns = columns.n_of_all();
  result->row_ptr.push_back(0);
  for (std::int64_t const length : lengths)
    result->row_ptr.push_back(result->row_ptr.back() + length);
  result->columns.resize(items.size());
  result->values.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    result->columns[i] = static_cast<std::int32_t>(items[i].column);
    result->values[i] = items[i].value;
  }
  return result;
}

CsrMatrix matrix_of_arrays(SparseArrays const& a) {
  CsrMatrix result;
  CsrView const view = a.view();
  result.n_rows = view.n_rows;
  result.n_columns = view.n_columns;
  result.row_ptr.assign(view.row_ptr, view.row_ptr + view.n_rows + 1);
  result.columns.assign(view.columns, view.columns + view.nnz);
  result.values.assign(view.values, view.values + view.nnz);
  return result;
}

Coarser coarser_level(Communicator& ranks, Context& context, LevelRows const& fine, std::shared_ptr<CsrMatrix const> p,
                      RowMap of_p) {
  auto const& kernels = kernels_for<AggregationKernels>(context);
  auto const host = make_cpu_context();
  CsrMatrix const& a = *fine.matrix;
  std::int64_t const n = a.n_rows, n_own = of_p.n_own();
  Coarser result;
  result.p = p;
  result.of_p = std::move(of_p);
  // The rows of P of ghosts, with columns that others own.
  RankLists<std::int64_t> sent_lengths, sent_columns;
  RankLists<double> sent_values;
  for (RankNeighbor const& neighbor : fine.rows.neighbors)
    for (std::int32_t const row : neighbor.sent) {
      sent_lengths[neighbor.rank].push_back(p->row_ptr[row + 1] - p->row_ptr[row]);
      for (std::int64_t e = p->row_ptr[row]; e < p->row_ptr[row + 1]; ++e) {
        sent_columns[neighbor.rank].push_back(result.of_p.number_at(p->columns[e]));
        sent_values[neighbor.rank].push_back(p->values[e]);
      }
    }
  std::vector<std::int64_t> const lengths = swap_lists(ranks, sent_lengths).joined(),
                                  columns = swap_lists(ranks, sent_columns).joined();
  std::vector<double> const values = swap_lists(ranks, sent_values).joined();
  // The coarse unknowns of others that these rows meet, ascending.
  RowMap beyond = result.of_p;
  for (std::int64_t const number : columns)
    if (!beyond.is_own(number))
      beyond.ghosts.push_back(number);
  std::sort(beyond.ghosts.begin(), beyond.ghosts.end());
  beyond.ghosts.erase(std::unique(beyond.ghosts.begin(), beyond.ghosts.end()), beyond.ghosts.end());

  // P with the rows of ghosts.
  CsrMatrix all_p;
  all_p.n_rows = fine.rows.n_here();
  all_p.n_columns = beyond.n_here();
  all_p.row_ptr.reserve(static_cast<std::size_t>(all_p.n_rows) + 1);
  all_p.row_ptr.assign(p->row_ptr.begin(), p->row_ptr.end());
  all_p.columns.resize(p->columns.size() + columns.size());
  all_p.values.resize(p->columns.size() + columns.size());
  std::vector<std::int32_t> places;  // by column of P
  for (std::int64_t column = 0; column < p->n_columns; ++column)
    places.push_back(static_cast<std::int32_t>(beyond.place(result.of_p.number_at(column))));
  std::size_t out = 0;
  for (; out < p->columns.size(); ++out) {
    all_p.columns[out] = places[static_cast<std::size_t>(p->columns[out])];
    all_p.values[out] = p->values[out];
  }
  std::vector<std::pair<std::int32_t, double>> row_of_ghost;
  std::size_t of_ghosts = 0;
  for (std::int64_t const length : lengths) {
    row_of_ghost.clear();
    for (std::int64_t k = 0; k < length; ++k, ++of_ghosts)
      row_of_ghost.emplace_back(static_cast<std::int32_t>(beyond.place(columns[of_ghosts])), values[of_ghosts]);
    std::sort(row_of_ghost.begin(), row_of_ghost.end());
    for (auto const& [column, value] : row_of_ghost) {
      all_p.columns[out] = column;
      all_p.values[out++] = value;
    }
    all_p.row_ptr.push_back(static_cast<std::int64_t>(out));
  }

  SparseArrays product, pt;
  {
    InContext const p_here(context, view_of(all_p));
    CsrView own_p = p_here.view();
    own_p.n_rows = n;
    own_p.nnz = p->nnz();
    SparseArrays pt_here = kernels.transposed(context, own_p);
    SparseArrays ap;
    {
      InContext const a_here(context, view_of(a));
      ap = kernels.product(context, a_here.view(), p_here.view(), false);
    }
    product = on_host(context, *host, kernels.product(context, pt_here.view(), ap.view(), true));
    pt = on_host(context, *host, std::move(pt_here));
  }
  all_p = {};

  // Rows of coarse unknowns that others own go to them: of P^T A P and of P^T, whose columns are fine unknowns.
  auto const collected = [&](CsrView rows, RowMap const& columns_here, RowMap& columns_now) {
    RankLists<SentEntry> to;
    for (std::int64_t row = n_own; row < rows.n_rows; ++row) {
      std::int64_t const number = beyond.number_at(row);
      auto& list = to[beyond.owner(number)];
      for (std::int64_t e = rows.row_ptr[row]; e < rows.row_ptr[row + 1]; ++e)
        list.push_back({number, columns_here.number_at(rows.columns[e]), rows.values[e]});
    }
    std::vector<SentEntry> const more = swap_lists(ranks, to).joined();
    rows.n_rows = n_own;
    std::vector<std::uint8_t> is_met(static_cast<std::size_t>(rows.n_columns), 0);
    for (std::int64_t e = 0; e < rows.row_ptr[n_own]; ++e)
      is_met[static_cast<std::size_t>(rows.columns[e])] = 1;
    std::vector<std::int64_t> needed;
    for (std::int64_t column = columns_here.n_own(); column < rows.n_columns; ++column)
      if (is_met[static_cast<std::size_t>(column)] != 0)
        needed.push_back(columns_here.number_at(column));
    for (SentEntry const& entry : more)
      if (!columns_here.is_own(entry.column))
        needed.push_back(entry.column);
    columns_now = columns_here.with_ghosts(ranks, std::move(needed));
    std::vector<std::int32_t> columns_there(static_cast<std::size_t>(rows.n_columns), -1);
    for (std::int64_t column = 0; column < rows.n_columns; ++column)
      if (is_met[static_cast<std::size_t>(column)] != 0)
        columns_there[static_cast<std::size_t>(column)] =
            static_cast<std::int32_t>(columns_now.place(columns_here.number_at(column)));
    return with_more(rows, columns_there, columns_now.n_here(), sorted_by_rows(more, beyond, columns_now));
  };
  result.level.matrix = collected(product.view(), beyond, result.level.rows);
  result.r = collected(pt.view(), fine.rows, result.of_r);
  return result;
}

}  // namespace poisson::rank_levels
