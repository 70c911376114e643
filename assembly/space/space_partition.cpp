#include "assembly/space/space_partition.hpp"

#include "assembly/space/space.hpp"

#include <algorithm>
#include <map>

namespace poisson::assembly {

namespace {

void sort_and_merge(std::vector<std::int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

PartOfSpace part_of(Space const& space, int rank, int ranks) {
  PartOfSpace part;
  auto const rank_of_cell = [&](std::int64_t cell) {
    // Cells from ceil(n r / ranks) on belong to rank r.
    return static_cast<int>(cell * ranks / space.n_cells);
  };
  HostVector<std::int32_t> owner = space.owners();
  for (std::int32_t& of_unknown : owner)
    of_unknown = rank_of_cell(of_unknown);
  std::map<int, std::vector<std::int32_t>> sent, ghosts;
  std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local)), others;
  for (std::int64_t cell = 0; cell < space.n_cells; ++cell) {
    space.dofs(cell, dofs.data());
    if (std::none_of(dofs.begin(), dofs.end(), [&](std::int32_t dof) { return owner[dof] == rank; }))
      continue;
    part.around_cells.push_back(static_cast<std::int32_t>(cell));
    if (owner[dofs[0]] == rank)
      part.own_cells.push_back(static_cast<std::int32_t>(cell));
    for (std::int32_t const dof : dofs) {
      if (owner[dof] == rank)
        part.unknowns.push_back(dof);
      else
        ghosts[owner[dof]].push_back(dof);
    }
    // Who has an unknown of this cell needs all others of it.
    others.clear();
    for (std::int32_t const dof : dofs)
      if (owner[dof] != rank)
        others.push_back(owner[dof]);
    sort_and_merge(others);
    for (std::int32_t const other : others)
      for (std::int32_t const dof : dofs)
        if (owner[dof] == rank)
          sent[other].push_back(dof);
  }
  sort_and_merge(part.unknowns);
  part.n_rows = static_cast<std::int64_t>(part.unknowns.size());
  for (auto& [from, list] : ghosts) {
    sort_and_merge(list);
    RankNeighbor neighbor;
    neighbor.rank = from;
    neighbor.n_ghosts = static_cast<std::int64_t>(list.size());
    sort_and_merge(sent[from]);
    for (std::int32_t const dof : sent[from])
      neighbor.sent.push_back(static_cast<std::int32_t>(
          std::lower_bound(part.unknowns.begin(), part.unknowns.begin() + part.n_rows, dof) - part.unknowns.begin()));
    part.neighbors.push_back(std::move(neighbor));
    part.unknowns.insert(part.unknowns.end(), list.begin(), list.end());
  }

  HostVector<std::int32_t> place;
  place.resize(static_cast<std::size_t>(space.n_dofs), -1);
  for (std::size_t i = 0; i < part.unknowns.size(); ++i)
    place[part.unknowns[i]] = static_cast<std::int32_t>(i);
  for (std::int32_t const cell : part.own_cells) {
    space.dofs(cell, dofs.data());
    for (std::int32_t const dof : dofs)
      part.in_own_cells.push_back(place[dof]);
  }
  sort_and_merge(part.in_own_cells);
  return part;
}

}  // namespace poisson::assembly
