#include "app/domain/ties.hpp"

#include "app/domain/domain.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/row_map.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

namespace poisson::app {

namespace {

/// A row of any rank.
struct RankRow {
  int rank = 0;
  std::int32_t row = 0;

  friend bool operator<(RankRow const& a, RankRow const& b) { return std::tie(a.rank, a.row) < std::tie(b.rank, b.row); }
  friend bool operator==(RankRow const&, RankRow const&) = default;
};

/// The rows of the unknowns around, on the ranks that have them. Collective.
std::vector<RankRow> rows_around(Domain const& mesh, Team& team) {
  std::vector<std::int32_t> own(static_cast<std::size_t>(mesh.n_rows));
  std::iota(own.begin(), own.end(), 0);
  auto const ghosts = values_of_ghosts<std::int32_t>(team.communicator(), mesh.neighbors, own);
  std::vector<int> rank_of_ghost;
  for (RankNeighbor const& neighbor : mesh.neighbors)
    rank_of_ghost.insert(rank_of_ghost.end(), static_cast<std::size_t>(neighbor.n_ghosts), neighbor.rank);
  std::vector<RankRow> rows;
  rows.reserve(mesh.places.size());
  for (std::size_t i = 0; i < mesh.places.size(); ++i) {
    std::int32_t const place = mesh.places[i];
    auto const ghost = static_cast<std::size_t>(std::max<std::int64_t>(place - mesh.n_rows, 0));
    rows.push_back(place < mesh.n_rows ? RankRow{team.rank(), place} : RankRow{rank_of_ghost[ghost], ghosts[ghost]});
  }
  return rows;
}

/// The same, with tied unknowns where they are tied to.
std::vector<RankRow> tied_rows_around(Domain const& mesh, Team& team) {
  auto rows = rows_around(mesh, team);
  for (RankTie const& tie : mesh.ties)
    rows[static_cast<std::size_t>(tie.unknown)] = {tie.rank, tie.row};
  return rows;
}

/// An entry for a row of another rank, or a value of a vector there.
struct RowEntry {
  std::int32_t row = 0, column = 0;  ///< the column is of column_rank
  int column_rank = 0;
  double value = 0;
};
struct RowValue {
  std::int32_t row = 0;
  double value = 0;
};

}  // namespace

void tie_unknowns(Domain& mesh, Team& team) {
  struct OwnNode {
    assembly::PeriodicNode node;
    RankRow at;
    double value = 0;  ///< of Dirichlet
  };
  std::vector<OwnNode> own;
  std::vector<double> values;  // of Dirichlet
  team.together([&] {
    if (!mesh.around)
      return;
    values = mesh.around->dirichlet_values();
    for (assembly::PeriodicNode node : mesh.around->periodic_nodes()) {
      auto const i = static_cast<std::size_t>(node.number);
      if (mesh.places[i] >= mesh.n_rows)
        continue;
      node.number = mesh.around_of_whole(node.number);
      own.push_back({node, {team.rank(), mesh.places[i]}, values[i]});
    }
  });
  auto const all = gather_lists(team.communicator(), own);
  team.together([&] {
    if (!mesh.around)
      return;
    std::vector<assembly::PeriodicNode> nodes;
    std::map<std::int64_t, OwnNode const*> by_number;
    for (OwnNode const& of_rank : all) {
      nodes.push_back(of_rank.node);
      by_number[of_rank.node.number] = &of_rank;
    }
    std::map<std::int64_t, assembly::PeriodicTie> ties;
    for (assembly::PeriodicTie const& tie : mesh.around->periodic_ties(nodes))
      ties[tie.number] = tie;
    for (std::size_t i = 0; i < mesh.places.size(); ++i) {
      auto const found = ties.find(mesh.around_of_whole(static_cast<std::int64_t>(i)));
      if (found == ties.end())
        continue;
      OwnNode const& to = *by_number.at(found->second.to);
      if (std::isnan(to.value))
        mesh.ties.push_back({static_cast<std::int32_t>(i), to.at.row, to.at.rank, found->second.offset});
      else
        values[i] = to.value + found->second.offset;
    }
    mesh.around->set_dirichlet_values(values);
  });
}

TiedRows tie_rows(Domain const& mesh, Team& team, CsrMatrix const& assembled, HostVector<double> const& rhs) {
  Communicator& ranks = team.communicator();
  int const me = team.rank();
  auto const n = static_cast<std::size_t>(mesh.n_rows);
  TiedRows result;
  auto const rows = tied_rows_around(mesh, team);

  // Rows of tied unknowns go to those that they are tied to.
  RankLists<RowEntry> entries;
  RankLists<RowValue> loads;
  std::vector<std::int32_t> around_of_row(n);
  std::vector<std::uint8_t> is_tied(n, 0);
  team.together([&] {
    result.offsets.resize(mesh.places.size(), 0.0);
    for (RankTie const& tie : mesh.ties)
      result.offsets[static_cast<std::size_t>(tie.unknown)] = tie.offset;
    for (std::size_t i = 0; i < mesh.places.size(); ++i)
      if (mesh.places[i] < mesh.n_rows)
        around_of_row[static_cast<std::size_t>(mesh.places[i])] = static_cast<std::int32_t>(i);
    for (RankTie const& tie : mesh.ties) {
      auto const i = static_cast<std::size_t>(tie.unknown);
      if (mesh.places[i] >= mesh.n_rows)
        continue;
      is_tied[static_cast<std::size_t>(mesh.places[i])] = 1;
      double load = rhs[i];
      for (auto e = assembled.row_ptr[i]; e < assembled.row_ptr[i + 1]; ++e) {
        auto const column = static_cast<std::size_t>(assembled.columns[e]);
        entries[tie.rank].push_back({tie.row, rows[column].row, rows[column].rank, assembled.values[e]});
        load -= assembled.values[e] * result.offsets[column];
      }
      loads[tie.rank].push_back({tie.row, load});
    }
  });
  std::vector<RowEntry> added = swap_lists(ranks, entries).joined();
  std::vector<RowValue> const loads_here = swap_lists(ranks, loads).joined();

  // Whose entries are needed now.
  std::vector<RankRow> ghosts;
  RankLists<std::int32_t> wanted;
  team.together([&] {
    std::stable_sort(added.begin(), added.end(), [](RowEntry const& a, RowEntry const& b) { return a.row < b.row; });
    for (RankRow const& row : rows)
      if (row.rank != me)
        ghosts.push_back(row);
    for (RowEntry const& entry : added)
      if (entry.column_rank != me)
        ghosts.push_back({entry.column_rank, entry.column});
    std::sort(ghosts.begin(), ghosts.end());
    ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
    for (RankRow const& ghost : ghosts)
      wanted[ghost.rank].push_back(ghost.row);
  });
  result.rows.neighbors = neighbors_of(ranks, wanted);

  team.together([&] {
    auto const place_of = [&](RankRow const& row) {
      return row.rank == me
                 ? row.row
                 : static_cast<std::int32_t>(mesh.n_rows + (std::lower_bound(ghosts.begin(), ghosts.end(), row) - ghosts.begin()));
    };
    for (RankRow const& row : rows)
      result.places.push_back(place_of(row));
    auto matrix = std::make_shared<CsrMatrix>();
    matrix->n_rows = mesh.n_rows;
    matrix->n_columns = mesh.n_rows + std::ssize(ghosts);
    matrix->row_ptr.reserve(n + 1);
    matrix->columns.reserve(assembled.columns.size());
    matrix->values.reserve(assembled.values.size());
    matrix->row_ptr.push_back(0);
    result.rhs.resize(n, 0.0);
    std::vector<std::pair<std::int32_t, double>> of_row;
    auto next = added.begin();
    for (std::size_t row = 0; row < n; ++row) {
      auto const i = static_cast<std::size_t>(around_of_row[row]);
      of_row.clear();
      for (auto e = assembled.row_ptr[i]; e < assembled.row_ptr[i + 1]; ++e) {
        auto const column = static_cast<std::size_t>(assembled.columns[e]);
        if (is_tied[row] == 0)
          of_row.emplace_back(result.places[column], assembled.values[e]);
        else if (column == i)
          of_row.emplace_back(static_cast<std::int32_t>(row), assembled.values[e]);
        if (is_tied[row] == 0)
          result.rhs[row] -= assembled.values[e] * result.offsets[column];
      }
      if (is_tied[row] == 0)
        result.rhs[row] += rhs[i];
      for (; next != added.end() && next->row == static_cast<std::int32_t>(row); ++next)
        of_row.emplace_back(place_of({next->column_rank, next->column}), next->value);
      std::stable_sort(of_row.begin(), of_row.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
      for (auto const& [column, value] : of_row)
        if (std::ssize(matrix->columns) > matrix->row_ptr.back() && matrix->columns.back() == column) {
          matrix->values.back() += value;
        } else {
          matrix->columns.push_back(column);
          matrix->values.push_back(value);
        }
      matrix->row_ptr.push_back(std::ssize(matrix->columns));
    }
    for (RowValue const& load : loads_here)
      result.rhs[static_cast<std::size_t>(load.row)] += load.value;
    result.rows.matrix = std::move(matrix);
  });
  return result;
}

void restrict_to_free(Domain const& mesh, Team& team, HostVector<double>& f) {
  RankLists<RowValue> to;
  for (RankTie const& tie : mesh.ties)
    if (std::int32_t const row = mesh.places[static_cast<std::size_t>(tie.unknown)]; row < mesh.n_rows) {
      to[tie.rank].push_back({tie.row, f[static_cast<std::size_t>(row)]});
      f[static_cast<std::size_t>(row)] = 0;
    }
  for (RowValue const& value : swap_lists(team.communicator(), to).joined())
    f[static_cast<std::size_t>(value.row)] += value.value;
}

void hold_first_unknown(Domain const& mesh, Team& team, RankRows& rows, Field& rhs) {
  // It has no Dirichlet value, and of unknowns that are tied to each other the lowest stays.
  RankRow mine{-1, 0};  // where it is here
  for (std::size_t i = 0; i < mesh.places.size(); ++i)
    if (mesh.places[i] < mesh.n_rows && mesh.around_of_whole(static_cast<std::int64_t>(i)) == 0)
      mine = {team.rank(), mesh.places[i]};
  std::vector<std::uint8_t> is_held(static_cast<std::size_t>(mesh.n_rows), 0);
  if (mine.rank >= 0)
    is_held[static_cast<std::size_t>(mine.row)] = 1;
  auto const of_ghosts = values_of_ghosts<std::uint8_t>(team.communicator(), rows.neighbors, is_held);
  team.together([&] {
    is_held.insert(is_held.end(), of_ghosts.begin(), of_ghosts.end());
    auto matrix = std::make_shared<CsrMatrix>(*rows.matrix);
    for (std::int64_t row = 0; row < matrix->n_rows; ++row)
      for (auto e = matrix->row_ptr[row]; e < matrix->row_ptr[row + 1]; ++e) {
        std::int32_t const column = matrix->columns[e];
        if (column != row && (is_held[static_cast<std::size_t>(row)] != 0 || is_held[static_cast<std::size_t>(column)] != 0))
          matrix->values[e] = 0;
      }
    rows.matrix = std::move(matrix);
    if (mine.rank >= 0)
      rhs.change_on_host()[static_cast<std::size_t>(mine.row)] = 0;
  });
}

}  // namespace poisson::app
