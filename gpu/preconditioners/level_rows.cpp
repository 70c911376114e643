#include "gpu/preconditioners/level_rows.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/formats/sell_c_sigma.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

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

/// Returns `rows` with other numbers for its columns, in the same order, and with more entries; those in one place are added.
std::unique_ptr<Csr> with_more(Context& host, CsrView const& rows, std::vector<std::int32_t> const& columns, std::int64_t n_columns,
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
  return std::make_unique<Csr>(std::move(result), host);
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

LevelRows finest_rows(RankMatrix const& a, Context& host) {
  Communicator& ranks = a.ranks();
  if (a.lattices() != nullptr)
    return finest_rows(matrix_of_rows(host, ranks, {a.neighbors(), std::make_shared<CsrMatrix const>(a.rows_of_lattices())}), host);
  std::int64_t const n = a.n_rows();
  // The ghosts of the matrix are numbered as those here: by rank, and within a rank as it sends them, which need not ascend.
  RowMap const of_matrix(ranks, n, a.neighbors());
  RowMap rows = of_matrix.with_ghosts(ranks, of_matrix.ghosts);
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
  auto const* const csr = dynamic_cast<Csr const*>(&a.local());
  bool const is_here = csr != nullptr && csr->context().backend() == Backend::cpu && csr->precision() == MatrixPrecision::double_;
  CsrMatrix const copy = is_here ? CsrMatrix{} : a.local().to_csr();
  auto matrix = with_more(host, is_here ? csr->view() : view_of(copy), same, rows.n_here(), sorted_by_rows(more, rows, rows));
  return {std::move(rows), std::move(matrix)};
}

double largest_of_any(Communicator& ranks, LevelRows const& level, double const* diagonal) {
  constexpr int power_steps = 14;
  CsrView const a = level.matrix->view();
  auto const n = static_cast<std::size_t>(a.n_rows);
  std::vector<double> x(n);
  std::uint32_t state = 1 + static_cast<std::uint32_t>(ranks.rank());
  for (double& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<double>(state) / 4294967296.0 - 0.5;
  }
  auto const halo = halo_of<double>(level.matrix->context(), ranks, level.rows);
  x.resize(static_cast<std::size_t>(a.n_columns));
  std::vector<double> y(n);
  double estimate = 0;
  for (int step = 0; step < power_steps; ++step) {
    halo->fill(x.data());
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

std::shared_ptr<CsrMatrix const> whole_matrix(Communicator& ranks, CsrView const& own, RowMap const& rows, RowMap const& columns) {
  struct Item {
    std::int64_t column;
    double value;
  };
  std::vector<std::int64_t> lengths;
  std::vector<Item> items;
  items.reserve(static_cast<std::size_t>(own.nnz));
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

std::unique_ptr<Csr> as_matrix(Context& context, SparseArrays arrays) {
  return std::make_unique<Csr>(context, arrays.n_columns, std::move(arrays.row_ptr), std::move(arrays.columns),
                               std::move(arrays.values));
}

template <class V>
std::unique_ptr<Matrix> stored_as(Format format, Csr const& matrix, Context& context) {
  FormatOptions options;
  options.precision = std::is_same_v<V, float> ? MatrixPrecision::single : MatrixPrecision::double_;
  // The matrix is one of ours: nothing about it has to be found out first, as make_matrix would.
  std::unique_ptr<Matrix> result = format == Format::csr ? Csr::convert(matrix, options) : SellCSigma::convert(matrix, options);
  return &matrix.context() == &context ? std::move(result) : result->copy_to(context);
}
template std::unique_ptr<Matrix> stored_as<float>(Format, Csr const&, Context&);
template std::unique_ptr<Matrix> stored_as<double>(Format, Csr const&, Context&);

Coarser coarser_level(Communicator& ranks, Context& context, LevelRows const& fine, std::unique_ptr<Csr> of_level, RowMap of_p,
                      PreconditionerOptions const& options) {
  Context& place = fine.matrix->context();
  Coarser result;
  result.p = std::move(of_level);
  CsrView const a = fine.matrix->view(), p = result.p->view();
  if (!fine.rows.is_shared()) {
    auto const& kernels = kernels_for<AggregationKernels>(place);
    result.r = as_matrix(place, kernels.transposed(place, p));
    options.done(place, "P^T");
    result.level = {RowMap(ranks, p.n_columns), as_matrix(place, kernels.galerkin_product(place, result.r->view(), a, p))};
    options.done(place, "P^T A P");
    return result;
  }
  auto const& kernels = kernels_for<AggregationKernels>(context);
  std::int64_t const n = a.n_rows, n_own = of_p.n_own();
  result.of_p = std::move(of_p);
  // The rows of P of ghosts, with columns that others own.
  RankLists<std::int64_t> sent_lengths, sent_columns;
  RankLists<double> sent_values;
  for (RankNeighbor const& neighbor : fine.rows.neighbors)
    for (std::int32_t const row : neighbor.sent) {
      sent_lengths[neighbor.rank].push_back(p.row_ptr[row + 1] - p.row_ptr[row]);
      for (std::int64_t e = p.row_ptr[row]; e < p.row_ptr[row + 1]; ++e) {
        sent_columns[neighbor.rank].push_back(result.of_p.number_at(p.columns[e]));
        sent_values[neighbor.rank].push_back(p.values[e]);
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
  all_p.row_ptr.assign(p.row_ptr, p.row_ptr + n + 1);
  auto const nnz_of_p = static_cast<std::size_t>(p.nnz);
  all_p.columns.resize(nnz_of_p + columns.size());
  all_p.values.resize(nnz_of_p + columns.size());
  std::vector<std::int32_t> places;  // by column of P
  for (std::int64_t column = 0; column < p.n_columns; ++column)
    places.push_back(static_cast<std::int32_t>(beyond.place(result.of_p.number_at(column))));
  std::size_t out = 0;
  for (; out < nnz_of_p; ++out) {
    all_p.columns[out] = places[static_cast<std::size_t>(p.columns[out])];
    all_p.values[out] = p.values[out];
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
    own_p.nnz = p.nnz;
    SparseArrays pt_here = kernels.transposed(context, own_p);
    SparseArrays ap;
    {
      InContext const a_here(context, a);
      ap = kernels.product(context, a_here.view(), p_here.view(), false);
    }
    product = on_host(context, place, kernels.product(context, pt_here.view(), ap.view(), true));
    pt = on_host(context, place, std::move(pt_here));
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
    return with_more(place, rows, columns_there, columns_now.n_here(), sorted_by_rows(more, beyond, columns_now));
  };
  RowMap rows_of_level;
  auto product_of_all = collected(product.view(), beyond, rows_of_level);
  result.level = {std::move(rows_of_level), std::move(product_of_all)};
  result.r = collected(pt.view(), fine.rows, result.of_r);
  options.done(context, "P and P^T A P");
  return result;
}

RankMatrix matrix_of_rows(Context& context, Communicator& ranks, RankRows const& rows) {
  SplitRows const parts = split(rows);
  return {make_matrix(Format::csr, parts.local, context), parts, rows.neighbors, ranks};
}

RankMatrix matrix_of_blocks(Context& context, Communicator& ranks, RankBlocks const& blocks, LevelRows const& level) {
  std::vector<std::int64_t> needed = level.rows.ghosts;
  NodeBox const around = with_neighbours(blocks.own, blocks.nodes)[level.rows.me];
  for (std::size_t other = 0; other < blocks.own.size(); ++other)
    if (other != level.rows.me)
      common(blocks.own[other], around).for_all([&](std::array<std::int64_t, 3> const& node) {
        needed.push_back(level.rows.first[other] + blocks.own[other].index(node));
      });
  RowMap const map = level.rows.with_ghosts(ranks, std::move(needed));
  auto matrix = std::make_shared<CsrMatrix>(level.matrix->to_csr());
  matrix->n_columns = map.n_here();
  for (std::int32_t& column : matrix->columns)  // which stay in ascending order
    column = static_cast<std::int32_t>(map.place(level.rows.number_at(column)));
  return matrix_of_rows(context, ranks, {map.neighbors, std::move(matrix)});
}

}  // namespace poisson
