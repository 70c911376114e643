#include "gpu/preconditioners/rank_levels.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace poisson::rank_levels {

namespace {

constexpr int steps_of_power = 14;

/// Entries of own rows with columns of all ranks, in any order; those at the same place are added in theirs.
struct Entry {
  std::int64_t row, column;  ///< row: of own ones, from 0
  double value;
};

CsrMatrix rows_of(std::vector<Entry> const& entries, std::int64_t n_rows, std::int64_t n_columns) {
  std::vector<std::int64_t> first(static_cast<std::size_t>(n_rows) + 1, 0);
  for (Entry const& entry : entries)
    ++first[static_cast<std::size_t>(entry.row) + 1];
  for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows); ++row)
    first[row + 1] += first[row];
  using Pair = std::pair<std::int32_t, double>;
  std::vector<Pair> sorted(entries.size());
  std::vector<std::int64_t> next(first.begin(), first.end() - 1);
  for (Entry const& entry : entries)
    sorted[static_cast<std::size_t>(next[static_cast<std::size_t>(entry.row)]++)] = {static_cast<std::int32_t>(entry.column),
                                                                                     entry.value};
  CsrMatrix result;
  result.n_rows = n_rows;
  result.n_columns = n_columns;
  result.row_ptr.push_back(0);
  result.columns.reserve(entries.size());
  result.values.reserve(entries.size());
  for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows); ++row) {
    auto const begin = sorted.begin() + first[row], end = sorted.begin() + first[row + 1];
    auto const before = [](Pair const& a, Pair const& b) { return a.first < b.first; };
    if (!std::is_sorted(begin, end, before))
      std::stable_sort(begin, end, before);
    for (auto entry = begin; entry != end; ++entry)
      if (entry != begin && entry->first == (entry - 1)->first)
        result.values.back() += entry->second;
      else {
        result.columns.push_back(entry->first);
        result.values.push_back(entry->second);
      }
    result.row_ptr.push_back(std::ssize(result.columns));
  }
  return result;
}

}  // namespace

FinestRows finest_rows(RankMatrix const& a) {
  Communicator& ranks = a.ranks();
  LevelRows level;
  std::int64_t const n = a.n_rows();
  level.numbering = Numbering(ranks, n);
  // The ghosts of the matrix are numbered as those here: by rank, and within a rank as it sends them, which need not ascend.
  std::vector<std::vector<std::int64_t>> to(static_cast<std::size_t>(ranks.size()));
  for (RankNeighbor const& neighbor : a.neighbors())
    for (std::int32_t const row : neighbor.sent)
      to[static_cast<std::size_t>(neighbor.rank)].push_back(level.numbering.first[level.numbering.me] + row);
  std::vector<std::int64_t> numbers;
  for (auto const& list : swap_lists(ranks, to))
    numbers.insert(numbers.end(), list.begin(), list.end());
  level.ghosts = Ghosts(ranks, level.numbering, numbers);
  CsrMatrix const local = a.local().to_csr();
  CsrMatrix const couplings = a.couplings();
  HostVector<std::int32_t> const rim = a.rim();
  auto matrix = std::make_shared<CsrMatrix>();
  matrix->n_rows = n;
  matrix->n_columns = n + std::ssize(level.ghosts.numbers);
  auto const nnz = static_cast<std::size_t>(local.nnz() + couplings.nnz());
  matrix->row_ptr.reserve(static_cast<std::size_t>(n) + 1);
  matrix->columns.reserve(nnz);
  matrix->values.reserve(nnz);
  matrix->row_ptr.push_back(0);
  std::size_t in_rim = 0;
  std::vector<std::pair<std::int32_t, double>> of_ghosts;
  for (std::int64_t row = 0; row < n; ++row) {
    auto const begin = local.row_ptr[row], end = local.row_ptr[row + 1];
    matrix->columns.insert(matrix->columns.end(), local.columns.begin() + begin, local.columns.begin() + end);
    matrix->values.insert(matrix->values.end(), local.values.begin() + begin, local.values.begin() + end);
    if (in_rim < rim.size() && rim[in_rim] == row) {
      of_ghosts.clear();
      for (std::int64_t e = couplings.row_ptr[in_rim]; e < couplings.row_ptr[in_rim + 1]; ++e)
        of_ghosts.emplace_back(
            static_cast<std::int32_t>(level.ghosts.place(level.numbering, numbers[static_cast<std::size_t>(couplings.columns[e])])),
            couplings.values[e]);
      std::sort(of_ghosts.begin(), of_ghosts.end());
      for (auto const& [column, value] : of_ghosts) {
        matrix->columns.push_back(column);
        matrix->values.push_back(value);
      }
      ++in_rim;
    }
    matrix->row_ptr.push_back(matrix->nnz());
  }
  level.matrix = std::move(matrix);
  return {std::move(level), std::move(numbers)};
}

double largest_on_ranks(Communicator& ranks, LevelRows const& level, std::span<double const> diagonal) {
  CsrMatrix const& a = *level.matrix;
  auto const n = static_cast<std::size_t>(a.n_rows);
  std::vector<double> x(n);
  std::uint32_t state = 1 + static_cast<std::uint32_t>(ranks.rank());
  for (double& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<double>(state) / 4294967296.0 - 0.5;
  }
  auto const host = make_cpu_context();
  auto const exchange = exchange_of<double>(*host, ranks, level.numbering, level.ghosts);
  x.resize(static_cast<std::size_t>(a.n_columns));
  std::vector<double> y(n);
  double estimate = 0;
  for (int step = 0; step < steps_of_power; ++step) {
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
    before = sum_over(&ranks, before);
    after = sum_over(&ranks, after);
    if (!(before > 0) || !(after > 0))
      return std::nan("");
    estimate = std::sqrt(after / before);
    for (std::size_t i = 0; i < n; ++i)
      x[i] = y[i] / std::sqrt(after);
  }
  return estimate;
}

std::shared_ptr<CsrMatrix const> whole_matrix(Communicator& ranks, CsrMatrix const& own, Numbering const& rows,
                                              Numbering const& columns, Ghosts const& ghosts) {
  struct Item {
    std::int64_t row, column;
    double value;
  };
  std::vector<Item> mine;
  for (std::int64_t row = 0; row < own.n_rows; ++row)
    for (std::int64_t e = own.row_ptr[row]; e < own.row_ptr[row + 1]; ++e)
      mine.push_back({rows.first[rows.me] + row, ghosts.number_at(columns, own.columns[e]), own.values[e]});
  std::vector<Entry> entries;
  for (auto const& list : swap_lists(ranks, std::vector<std::vector<Item>>(static_cast<std::size_t>(ranks.size()), mine)))
    for (Item const& item : list)
      entries.push_back({item.row, item.column, item.value});
  return std::make_shared<CsrMatrix const>(rows_of(entries, rows.n_of_all(), columns.n_of_all()));
}

CsrMatrix own_block(CsrMatrix const& a) {
  std::vector<Entry> entries;
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (a.columns[e] < a.n_rows)
        entries.push_back({row, a.columns[e], a.values[e]});
  return rows_of(entries, a.n_rows, a.n_rows);
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

Coarser coarser_level(Communicator& ranks, Context& host, LevelRows const& fine, Numbering const& coarse,
                      std::shared_ptr<CsrMatrix const> p, Ghosts of_p) {
  auto const& kernels = AggregationKernels::cpu();
  CsrMatrix const& a = *fine.matrix;
  std::int64_t const n = a.n_rows, n_ghosts = std::ssize(fine.ghosts.numbers), first = coarse.first[coarse.me];
  Coarser result;
  result.p = p;
  result.of_p = std::move(of_p);
  // The rows of P of ghosts, with columns that others own.
  std::vector<std::vector<std::int64_t>> lengths(fine.ghosts.sent.size()), columns(lengths.size());
  std::vector<std::vector<double>> values(lengths.size());
  for (std::size_t other = 0; other < fine.ghosts.sent.size(); ++other)
    for (std::int32_t const row : fine.ghosts.sent[other]) {
      lengths[other].push_back(p->row_ptr[row + 1] - p->row_ptr[row]);
      for (std::int64_t e = p->row_ptr[row]; e < p->row_ptr[row + 1]; ++e) {
        columns[other].push_back(result.of_p.number_at(coarse, p->columns[e]));
        values[other].push_back(p->values[e]);
      }
    }
  lengths = swap_lists(ranks, lengths);
  columns = swap_lists(ranks, columns);
  values = swap_lists(ranks, values);
  std::vector<std::int64_t> beyond = result.of_p.numbers;
  for (auto const& list : columns)
    for (std::int64_t const number : list)
      if (!coarse.is_own(number))
        beyond.push_back(number);
  std::sort(beyond.begin(), beyond.end());
  beyond.erase(std::unique(beyond.begin(), beyond.end()), beyond.end());
  auto const place_beyond = [&](std::int64_t number) {
    return coarse.is_own(number) ? number - first
                                 : coarse.n_own() + (std::lower_bound(beyond.begin(), beyond.end(), number) - beyond.begin());
  };
  auto const number_beyond = [&](std::int64_t place) {
    return place < coarse.n_own() ? first + place : beyond[static_cast<std::size_t>(place - coarse.n_own())];
  };
  std::int64_t const width = coarse.n_own() + std::ssize(beyond);
  std::vector<Entry> of_own_p, of_ghost_p;
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t e = p->row_ptr[row]; e < p->row_ptr[row + 1]; ++e)
      of_own_p.push_back({row, place_beyond(result.of_p.number_at(coarse, p->columns[e])), p->values[e]});
  std::int64_t ghost = n;
  for (std::size_t other = 0; other < lengths.size(); ++other) {
    std::size_t e = 0;
    for (std::int64_t const length : lengths[other]) {
      for (std::int64_t k = 0; k < length; ++k, ++e)
        of_ghost_p.push_back({ghost, place_beyond(columns[other][e]), values[other][e]});
      ++ghost;
    }
  }
  CsrMatrix const own_p = rows_of(of_own_p, n, width);
  of_own_p.insert(of_own_p.end(), of_ghost_p.begin(), of_ghost_p.end());
  CsrMatrix const all_p = rows_of(of_own_p, n + n_ghosts, width);
  SparseArrays const ap = kernels.product(host, view_of(a), view_of(all_p), false);
  SparseArrays const pt = kernels.transposed(host, view_of(own_p));
  SparseArrays const product = kernels.product(host, pt.view(), ap.view(), true);

  // Rows of coarse unknowns that others own go to them: of P^T A P and of P^T, whose columns are fine unknowns.
  struct Item {
    std::int64_t row, column;
    double value;
  };
  auto const share_out = [&](CsrView const& rows, auto const& number_of_column) {
    std::vector<std::vector<Item>> to(static_cast<std::size_t>(ranks.size()));
    for (std::int64_t row = 0; row < rows.n_rows; ++row) {
      std::int64_t const number = number_beyond(row);
      auto& list = to[coarse.owner(number)];
      for (std::int64_t e = rows.row_ptr[row]; e < rows.row_ptr[row + 1]; ++e)
        list.push_back({number, number_of_column(rows.columns[e]), rows.values[e]});
    }
    return swap_lists(ranks, to);
  };
  auto const collect = [&](std::vector<std::vector<Item>> const& lists, Numbering const& of_columns, Ghosts& ghosts) {
    std::vector<std::int64_t> foreign;
    std::vector<Entry> entries;
    for (auto const& list : lists)
      for (Item const& item : list)
        if (!of_columns.is_own(item.column))
          foreign.push_back(item.column);
    ghosts = Ghosts(ranks, of_columns, foreign);
    for (auto const& list : lists)
      for (Item const& item : list)
        entries.push_back({item.row - first, ghosts.place(of_columns, item.column), item.value});
    return std::make_shared<CsrMatrix const>(rows_of(entries, coarse.n_own(), of_columns.n_own() + std::ssize(ghosts.numbers)));
  };
  result.level.numbering = coarse;
  result.level.matrix = collect(share_out(product.view(), number_beyond), coarse, result.level.ghosts);
  result.r = collect(share_out(pt.view(), [&](std::int64_t row) { return fine.numbering.first[fine.numbering.me] + row; }),
                     fine.numbering, result.of_r);
  return result;
}

}  // namespace poisson::rank_levels
