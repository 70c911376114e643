#include "gpu/core/rank_rows.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>

namespace poisson {

SplitRows split(RankRows const& rows) {
  CsrMatrix const& a = *rows.matrix;
  std::int64_t const n = a.n_rows, n_ghosts = rows.n_ghosts();
  if (n_ghosts == 0) {
    auto const none = std::make_shared<CsrMatrix>();
    none->row_ptr.push_back(0);
    return {rows.matrix, {}, none, {}};
  }
  assert(a.n_columns == n + n_ghosts);
  // Columns ascend, so that those of ghosts are a row's last.
  auto const first_ghost = [&](std::int64_t row) {
    auto const begin = a.columns.begin() + a.row_ptr[row], end = a.columns.begin() + a.row_ptr[row + 1];
    return std::lower_bound(begin, end, static_cast<std::int32_t>(n)) - a.columns.begin();
  };
  bool const low = !a.low_values.empty();
  auto local = std::make_shared<CsrMatrix>(), couplings = std::make_shared<CsrMatrix>();
  SplitRows result;
  local->n_rows = local->n_columns = n;
  local->row_ptr.resize(static_cast<std::size_t>(n) + 1);
  local->row_ptr[0] = 0;
  for (std::int64_t row = 0; row < n; ++row) {
    std::int64_t const ghost = first_ghost(row);
    local->row_ptr[row + 1] = local->row_ptr[row] + ghost - a.row_ptr[row];
    if (ghost < a.row_ptr[row + 1])
      result.rim.push_back(static_cast<std::int32_t>(row));
  }
  auto const n_local = static_cast<std::size_t>(local->row_ptr[n]), n_couplings = a.values.size() - n_local;
  local->columns.resize(n_local);
  local->values.resize(n_local);
  couplings->n_rows = static_cast<std::int64_t>(result.rim.size());
  couplings->n_columns = n_ghosts;
  couplings->row_ptr.push_back(0);
  couplings->columns.reserve(n_couplings);
  couplings->values.reserve(n_couplings);
  if (low) {
    local->low_values.resize(n_local);
    couplings->low_values.reserve(n_couplings);
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n; ++row) {
    std::int64_t const from = a.row_ptr[row], count = local->row_ptr[row + 1] - local->row_ptr[row], to = local->row_ptr[row];
    std::copy_n(a.columns.begin() + from, count, local->columns.begin() + to);
    std::copy_n(a.values.begin() + from, count, local->values.begin() + to);
    if (low)
      std::copy_n(a.low_values.begin() + from, count, local->low_values.begin() + to);
  }
  for (std::int32_t const row : result.rim) {
    for (std::int64_t e = first_ghost(row); e < a.row_ptr[row + 1]; ++e) {
      couplings->columns.push_back(static_cast<std::int32_t>(a.columns[e] - n));
      couplings->values.push_back(a.values[e]);
      if (low)
        couplings->low_values.push_back(a.low_values[e]);
    }
    couplings->row_ptr.push_back(static_cast<std::int64_t>(couplings->columns.size()));
  }
  result.local = std::move(local);
  result.couplings = std::move(couplings);
  return result;
}

CsrMatrix rows_of_rim(CsrMatrix const& local, std::span<std::int32_t const> rim, CsrMatrix const& couplings) {
  CsrMatrix rows;
  rows.n_rows = couplings.n_rows;
  rows.n_columns = local.n_rows + couplings.n_columns;
  rows.row_ptr.push_back(0);
  for (std::size_t i = 0; i < rim.size(); ++i) {
    for (std::int64_t e = local.row_ptr[rim[i]]; e < local.row_ptr[rim[i] + 1]; ++e) {
      rows.columns.push_back(local.columns[e]);
      rows.values.push_back(local.values[e]);
    }
    for (std::int64_t e = couplings.row_ptr[i]; e < couplings.row_ptr[i + 1]; ++e) {
      rows.columns.push_back(static_cast<std::int32_t>(local.n_rows + couplings.columns[e]));
      rows.values.push_back(couplings.values[e]);
    }
    rows.row_ptr.push_back(rows.nnz());
  }
  return rows;
}

CsrMatrix join_rows(CsrMatrix const& local, std::span<std::int32_t const> rim, CsrMatrix const& rim_rows, std::int64_t n_ghosts) {
  CsrMatrix matrix;
  matrix.n_rows = local.n_rows;
  matrix.n_columns = local.n_rows + n_ghosts;
  matrix.row_ptr.push_back(0);
  std::size_t in_rim = 0;
  for (std::int64_t row = 0; row < local.n_rows; ++row) {
    bool const on_rim = in_rim < rim.size() && rim[in_rim] == row;
    CsrMatrix const& from = on_rim ? rim_rows : local;
    auto const at = on_rim ? static_cast<std::int64_t>(in_rim++) : row, begin = from.row_ptr[at], end = from.row_ptr[at + 1];
    matrix.columns.insert(matrix.columns.end(), from.columns.begin() + begin, from.columns.begin() + end);
    matrix.values.insert(matrix.values.end(), from.values.begin() + begin, from.values.begin() + end);
    matrix.row_ptr.push_back(std::ssize(matrix.columns));
  }
  return matrix;
}

std::vector<std::int64_t> share_out_rows(CsrMatrix const& matrix, int ranks) {
  std::vector<std::int64_t> first{0};
  for (int rank = 1; rank < ranks; ++rank) {
    auto const entries = static_cast<std::int64_t>(static_cast<double>(matrix.nnz()) * rank / ranks);
    auto const row = std::lower_bound(matrix.row_ptr.begin(), matrix.row_ptr.end() - 1, entries) - matrix.row_ptr.begin();
    first.push_back(std::max<std::int64_t>(first.back(), row));
  }
  first.push_back(matrix.n_rows);
  return first;
}

RankRows rows_of_rank(CsrMatrix const& matrix, std::vector<std::int64_t> const& first_rows, int rank) {
  std::int64_t const begin = first_rows[rank], end = first_rows[rank + 1], n = end - begin;
  auto const is_own = [&](std::int64_t column) { return begin <= column && column < end; };
  auto const owner = [&](std::int64_t row) {
    return static_cast<int>(std::upper_bound(first_rows.begin(), first_rows.end(), row) - first_rows.begin()) - 1;
  };
  std::map<int, std::set<std::int32_t>> ghosts, sent;  // by rank, ascending
  for (std::int64_t row = begin; row < end; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      if (std::int32_t const column = matrix.columns[e]; !is_own(column))
        ghosts[owner(column)].insert(column);
  for (std::size_t other = 0; other + 1 < first_rows.size(); ++other)
    if (static_cast<int>(other) != rank)
      for (std::int64_t e = matrix.row_ptr[first_rows[other]]; e < matrix.row_ptr[first_rows[other + 1]]; ++e)
        if (std::int32_t const column = matrix.columns[e]; is_own(column))
          sent[static_cast<int>(other)].insert(static_cast<std::int32_t>(column - begin));
  RankRows result;
  std::map<std::int32_t, std::int32_t> place;
  for (std::size_t other = 0; other + 1 < first_rows.size(); ++other) {
    auto const& from = ghosts[static_cast<int>(other)];
    auto const& to = sent[static_cast<int>(other)];
    for (std::int32_t const ghost : from) {
      auto const number = static_cast<std::int32_t>(n + std::ssize(place));
      place[ghost] = number;
    }
    if (!from.empty() || !to.empty())
      result.neighbors.push_back({static_cast<int>(other), {to.begin(), to.end()}, std::ssize(from)});
  }
  auto own = std::make_shared<CsrMatrix>();
  own->n_rows = n;
  own->n_columns = n + std::ssize(place);
  own->row_ptr.push_back(0);
  struct Entry {
    std::int32_t column;
    std::int64_t place;
  };
  std::vector<Entry> entries;
  for (std::int64_t row = begin; row < end; ++row) {
    entries.clear();
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      entries.push_back(
          {is_own(matrix.columns[e]) ? static_cast<std::int32_t>(matrix.columns[e] - begin) : place[matrix.columns[e]], e});
    std::sort(entries.begin(), entries.end(), [](Entry const& a, Entry const& b) { return a.column < b.column; });
    for (Entry const& entry : entries) {
      own->columns.push_back(entry.column);
      own->values.push_back(matrix.values[entry.place]);
      if (!matrix.low_values.empty())
        own->low_values.push_back(matrix.low_values[entry.place]);
    }
    own->row_ptr.push_back(static_cast<std::int64_t>(own->columns.size()));
  }
  result.matrix = std::move(own);
  return result;
}

}  // namespace poisson
