#include "gpu/preconditioners/level_rows.hpp"

#include "gpu/core/csr_entries.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace poisson {

namespace {

/// By row: 1 where the unknown is coupled to no other, such as one with a Dirichlet value.
std::vector<std::uint8_t> are_alone(CsrView const& a) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(a.n_rows), 1);
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e)
      if (a.columns[e] != static_cast<std::int32_t>(i) && a.values[e] != 0)
        result[i] = 0;
  return result;
}

/// P without what follows from unknowns that are alone; these go on alone where the smaller space has them. `alone`: of the larger
/// space, afterwards of the smaller one. Collective.
NestedLevel nested_level(Communicator& ranks, RankNestedSpace const& space, std::vector<std::uint8_t>& alone) {
  NestedLevel result;
  RowMap const own(ranks, std::ssize(space.rows));
  std::vector<std::uint8_t> alone_there;
  for (std::int32_t const row : space.rows)
    alone_there.push_back(alone[static_cast<std::size_t>(row)]);
  std::vector<std::int64_t> others;
  for (RankNestedSpace::Place const& place : space.others)
    others.push_back(own.first[static_cast<std::size_t>(place.rank)] + place.row);
  result.of_p = own.with_ghosts(ranks, others);
  auto const n_own = space.rows.size();
  // By column of space.p: that of the result, and whether it is alone.
  std::vector<std::int32_t> columns(n_own);
  for (std::size_t i = 0; i < n_own; ++i)
    columns[i] = static_cast<std::int32_t>(i);
  std::vector<std::uint8_t> alone_by_column = alone_there;
  auto const of_ghosts = values_of_ghosts<std::uint8_t>(ranks, result.of_p.neighbors, alone_there);
  for (std::int64_t const number : others) {
    auto const place = result.of_p.place(number);
    columns.push_back(static_cast<std::int32_t>(place));
    alone_by_column.push_back(of_ghosts[static_cast<std::size_t>(place) - n_own]);
  }
  auto p = std::make_shared<CsrMatrix>();
  p->n_rows = space.p.n_rows;
  p->n_columns = result.of_p.n_here();
  p->row_ptr.reserve(alone.size() + 1);
  p->columns.reserve(space.p.columns.size());
  p->values.reserve(space.p.columns.size());
  p->row_ptr.push_back(0);
  std::vector<std::pair<std::int32_t, double>> row;
  std::size_t next = 0;  // of the smaller space
  for (std::size_t i = 0; i < alone.size(); ++i) {
    bool const stays = next < n_own && space.rows[next] == static_cast<std::int32_t>(i);
    row.clear();
    if (alone[i] == 0) {
      for (auto e = static_cast<std::size_t>(space.p.row_ptr[i]); e < static_cast<std::size_t>(space.p.row_ptr[i + 1]); ++e)
        if (auto const column = static_cast<std::size_t>(space.p.columns[e]); alone_by_column[column] == 0)
          row.emplace_back(columns[column], space.p.values[e]);
      sort_and_add(row);
    } else if (stays) {
      row.emplace_back(static_cast<std::int32_t>(next), 1.0);
    }
    next += stays ? 1 : 0;
    for (auto const& [column, value] : row) {
      p->columns.push_back(column);
      p->values.push_back(value);
    }
    p->row_ptr.push_back(std::ssize(p->columns));
  }
  result.p = std::move(p);
  alone = std::move(alone_there);
  return result;
}

}  // namespace

std::vector<NestedLevel> nested_levels(Communicator& ranks, CsrView const& finest, RankNestedSpaces nested) {
  std::vector<NestedLevel> result;
  std::vector<std::uint8_t> alone = are_alone(finest);
  for (RankNestedSpace& space : nested.spaces) {
    result.push_back(nested_level(ranks, space, alone));
    space = {};
  }
  return result;
}

}  // namespace poisson
