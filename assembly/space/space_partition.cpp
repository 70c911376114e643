#include "assembly/space/space_partition.hpp"

#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/parallel.hpp"
#include "assembly/space/space.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <numeric>

namespace poisson::assembly {

namespace {

Graph cells_with_common_faces(Space const& space) {
  auto const n = static_cast<std::size_t>(space.n_local);
  int const p = space.order;
  std::array<std::int32_t, 8> vertices{};
  for (int v = 0; v < 8; ++v)
    vertices[static_cast<std::size_t>(v)] = p * ((v & 1) + (p + 1) * ((v >> 1 & 1) + (p + 1) * (v >> 2)));
  std::vector<std::int32_t> dofs(n), others;
  DofCells const around = space.cells_around_dofs();
  Graph graph{{0}, {}};
  for (std::int64_t cell = 0; cell < space.n_cells; ++cell) {
    space.dofs(cell, dofs.data());
    others.clear();
    for (std::int32_t const vertex : vertices) {
      std::int32_t const dof = dofs[static_cast<std::size_t>(vertex)];
      for (auto a = around.offsets[dof]; a < around.offsets[dof + 1]; ++a)
        others.push_back(around.cells[a]);
    }
    std::sort(others.begin(), others.end());
    for (std::size_t i = 0; i + 3 < others.size(); ++i)  // a common face: four common vertices
      if (others[i] == others[i + 3] && others[i] != cell && (i == 0 || others[i - 1] != others[i]))
        graph.neighbors.push_back(others[i]);
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  return graph;
}

constexpr std::int64_t cells_at_once = 1 << 12;

/// What cells around own unknowns have, with repetition.
struct FoundInCells {
  std::vector<std::int32_t> around_cells, own_cells, unknowns, dofs_of_own;
  std::map<int, std::vector<std::int32_t>> sent, ghosts;  ///< by the other rank

  template <class LookAt>
  void look_at(std::int32_t cell, int n_local, int rank, LookAt const& unknowns_and_owners) {
    auto const n = static_cast<std::size_t>(n_local);
    std::vector<std::int32_t> dofs(n), owners(n), others;
    unknowns_and_owners(dofs.data(), owners.data());
    if (std::find(owners.begin(), owners.end(), rank) == owners.end())
      return;
    around_cells.push_back(cell);
    if (owners[0] == rank) {
      own_cells.push_back(cell);
      dofs_of_own.insert(dofs_of_own.end(), dofs.begin(), dofs.end());
    }
    for (std::size_t i = 0; i < n; ++i)
      if (owners[i] == rank)
        unknowns.push_back(dofs[i]);
      else
        ghosts[owners[i]].push_back(dofs[i]);
    // Who has an unknown of this cell needs all others of it.
    for (std::int32_t const owner : owners)
      if (owner != rank)
        others.push_back(owner);
    sort_and_merge(others);
    for (std::int32_t const other : others)
      for (std::size_t i = 0; i < n; ++i)
        if (owners[i] == rank)
          sent[other].push_back(dofs[i]);
  }

  void append(FoundInCells const& other) {
    auto const add = [](std::vector<std::int32_t>& to, std::vector<std::int32_t> const& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    add(around_cells, other.around_cells);
    add(own_cells, other.own_cells);
    add(unknowns, other.unknowns);
    add(dofs_of_own, other.dofs_of_own);
    for (auto const& [to, list] : other.sent)
      add(sent[to], list);
    for (auto const& [from, list] : other.ghosts)
      add(ghosts[from], list);
  }
};

/// Makes the part of a rank for any division of the cells. `candidates` are cells, among them all that have unknowns of this rank.
/// look_at(i, unknowns, ranks) writes the n_local unknowns of candidate i, and the ranks that have them.
template <class LookAt>
PartOfSpace part_of(std::span<std::int32_t const> candidates, int n_local, int rank, LookAt const& look_at) {
  std::int64_t const n_candidates = std::ssize(candidates);
  std::vector<FoundInCells> blocks(static_cast<std::size_t>(n_parts(n_candidates, cells_at_once)));
  parallel_for(std::ssize(blocks), [&](std::int64_t block) {
    auto const [begin, end] = assembly::part(n_candidates, cells_at_once, block);
    FoundInCells& found = blocks[static_cast<std::size_t>(block)];
    for (std::int64_t c = begin; c < end; ++c)
      found.look_at(candidates[static_cast<std::size_t>(c)], n_local, rank,
                    [&](std::int32_t* dofs, std::int32_t* owners) { look_at(c, dofs, owners); });
  });
  FoundInCells all;
  for (FoundInCells& found : blocks) {
    all.append(found);
    found = {};
  }
  auto& [around_cells, own_cells, unknowns, dofs_of_own, sent, ghosts] = all;
  PartOfSpace part;
  part.around_cells = std::move(around_cells);
  part.own_cells = std::move(own_cells);
  part.unknowns = std::move(unknowns);
  for (auto* const list : {&part.around_cells, &part.own_cells, &part.unknowns})
    sort_and_merge(*list);
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
  sort_and_merge(dofs_of_own);
  // Own ones ascend as the list does; few are of others.
  auto const first_ghost = part.unknowns.begin() + part.n_rows;
  PlaceInList const ghost(std::span<std::int32_t const>(first_ghost, part.unknowns.end()));
  std::vector<std::int32_t> others_of_own;
  auto at = part.unknowns.begin();
  for (std::int32_t const dof : dofs_of_own) {
    while (at != first_ghost && *at < dof)
      ++at;
    if (at != first_ghost && *at == dof)
      part.in_own_cells.push_back(static_cast<std::int32_t>(at - part.unknowns.begin()));
    else
      others_of_own.push_back(static_cast<std::int32_t>(part.n_rows) + ghost(dof));
  }
  std::sort(others_of_own.begin(), others_of_own.end());
  part.in_own_cells.insert(part.in_own_cells.end(), others_of_own.begin(), others_of_own.end());
  return part;
}

}  // namespace

PlaceInList::PlaceInList(std::span<std::int32_t const> list)
    : list_(list), places_(std::bit_ceil(2 * list.size() + 1), -1), mask_(places_.size() - 1) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::size_t at = slot(list[i]);
    while (places_[at] >= 0)
      at = (at + 1) & mask_;
    places_[at] = static_cast<std::int32_t>(i);
  }
}

std::vector<std::int32_t> places_in(std::vector<std::int32_t> const& list, std::vector<std::int32_t> const& some) {
  std::vector<std::int32_t> places;
  places.reserve(some.size());
  auto at = list.begin();
  for (std::int32_t const entry : some) {
    at = std::lower_bound(at, list.end(), entry);
    places.push_back(static_cast<std::int32_t>(at - list.begin()));
  }
  return places;
}

void sort_and_merge(std::vector<std::int32_t>& list) {
  constexpr std::size_t few = 1000;
  if (list.size() > few) {
    auto const [lowest, highest] = std::minmax_element(list.begin(), list.end());
    std::int64_t const first = *lowest;
    auto const span = static_cast<std::size_t>(*highest - first + 1);
    if (span / 32 <= list.size()) {
      std::vector<std::uint64_t> bits(span / 64 + 1, 0);
      for (std::int32_t const number : list)
        bits[static_cast<std::size_t>(number - first) / 64] |= std::uint64_t{1} << ((number - first) % 64);
      list.clear();
      for (std::size_t word = 0; word < bits.size(); ++word)
        for (std::uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
          list.push_back(static_cast<std::int32_t>(first + static_cast<std::int64_t>(64 * word) + std::countr_zero(rest)));
      return;
    }
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

DividedSpace::DividedSpace(Space const& space, int ranks) : space_(space), owner_(space.owners()) {
  std::vector<std::int32_t> const rank_of = divide(cells_with_common_faces(space), ranks);  // all cells are as much work
  for (std::int32_t& of_unknown : owner_)
    of_unknown = rank_of[static_cast<std::size_t>(of_unknown)];
}

PartOfSpace DividedSpace::part(int rank) const {
  std::vector<std::int32_t> cells(static_cast<std::size_t>(space_.n_cells));
  std::iota(cells.begin(), cells.end(), 0);
  return part_of(cells, space_.n_local, rank, [&](std::int64_t cell, std::int32_t* dofs, std::int32_t* owners) {
    space_.dofs(cell, dofs);
    for (int i = 0; i < space_.n_local; ++i)
      owners[i] = owner_[dofs[i]];
  });
}

}  // namespace poisson::assembly
