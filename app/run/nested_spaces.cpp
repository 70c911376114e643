#include "app/run/nested_spaces.hpp"

#include "assembly/space/nested_spaces.hpp"
#include "assembly/space/reference_element.hpp"
#include "assembly/space/space_partition.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/row_map.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace poisson::app {

RankNestedSpaces nested_lattices(Domain const& mesh, Team& team, int order) {
  std::vector<std::int64_t> const numbers = mesh.row_numbers();
  assembly::NestedLattices const nested(
      mesh.pieces, [&](std::int64_t row) { return mesh.around->first_node(row); }, assembly::gauss_lobatto_points(order + 1));
  RankNestedSpaces result;
  for (assembly::NestedSpace& space : nested.make()) {
    RankNestedSpace& next = result.spaces.emplace_back();
    std::vector<std::int32_t> of_rows;  // the numbers of its own unknowns
    for (std::int32_t const row : space.unknowns)
      of_rows.push_back(static_cast<std::int32_t>(numbers[static_cast<std::size_t>(row)]));
    assembly::PlaceInList const place_of(of_rows);
    RankLists<std::int32_t> wanted, rows;
    for (auto const& unknown : space.others)
      wanted[unknown.rank].push_back(unknown.number);
    for (auto const& [rank, list] : swap_lists(team.communicator(), wanted))
      for (std::int32_t const number : list)
        rows[rank].push_back(place_of(number));
    for (auto const& [rank, list] : swap_lists(team.communicator(), rows))
      for (std::int32_t const row : list)
        next.others.push_back({rank, row});
    // Rows of P are those of the larger space.
    next.p = std::move(space.p);
    next.rows = std::move(space.unknowns);
  }
  // So far `rows` are those of the matrix.
  for (std::size_t l = result.spaces.size(); l-- > 1;)
    result.spaces[l].rows = assembly::places_in(result.spaces[l - 1].rows, result.spaces[l].rows);
  return result;
}

RankNestedSpaces space_of_order_one(Domain const& mesh, Team& team) {
  RankNestedSpace result;
  auto const n = static_cast<std::size_t>(mesh.n_rows);
  CsrMatrix const around = mesh.around ? mesh.around->prolongation_of_order_one() : CsrMatrix{};
  std::vector<std::size_t> unknowns(n);  // of the rows, all of whose cells are around
  for (std::size_t unknown = 0; unknown < mesh.n_around(); ++unknown)
    if (mesh.has_row(unknown))
      unknowns[static_cast<std::size_t>(mesh.place(unknown))] = unknown;
  auto const begin_of = [&](std::size_t row) { return static_cast<std::size_t>(around.row_ptr[unknowns[row]]); };
  auto const end_of = [&](std::size_t row) { return static_cast<std::size_t>(around.row_ptr[unknowns[row] + 1]); };
  // By row: its place among the vertices, or -1; those of ghosts are at their ranks.
  std::vector<std::int32_t> columns(n, -1);  // of P, by place of the matrix
  for (std::size_t row = 0; row < n; ++row)
    if (end_of(row) - begin_of(row) == 1) {
      columns[row] = static_cast<std::int32_t>(result.rows.size());
      result.rows.push_back(static_cast<std::int32_t>(row));
    }
  auto const of_ghosts = values_of_ghosts<std::int32_t>(team.communicator(), mesh.neighbors, columns);
  auto ghost = of_ghosts.begin();
  for (RankNeighbor const& neighbor : mesh.neighbors)
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i, ++ghost) {
      columns.push_back(*ghost < 0 ? -1 : static_cast<std::int32_t>(result.rows.size() + result.others.size()));
      if (*ghost >= 0)
        result.others.push_back({neighbor.rank, *ghost});
    }
  result.p.n_rows = mesh.n_rows;
  result.p.n_columns = static_cast<std::int64_t>(result.rows.size() + result.others.size());
  result.p.row_ptr.push_back(0);
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t e = begin_of(row); e < end_of(row); ++e) {
      auto const place = mesh.place(static_cast<std::size_t>(around.columns[e]));
      result.p.columns.push_back(columns[static_cast<std::size_t>(place)]);
      result.p.values.push_back(around.values[e]);
    }
    result.p.row_ptr.push_back(result.p.nnz());
  }
  RankNestedSpaces spaces;
  spaces.spaces.push_back(std::move(result));
  return spaces;
}

}  // namespace poisson::app
