#include "assembly/space/lattice_pieces.hpp"

#include "assembly/parallel.hpp"

#include <algorithm>
#include <cassert>

namespace poisson::assembly {

OwnPieces::OwnPieces(std::shared_ptr<LatticePieces const> of_ranks, int rank, std::int64_t n_unknowns, std::int64_t own_rows,
                     HostVector<std::int32_t> own_nodes, std::vector<std::int32_t> around_cells)
    : pieces(std::move(of_ranks)), n_rows(own_rows), nodes(std::move(own_nodes)), cells(std::move(around_cells)) {
  assert(pieces->order == 1);
  for (std::size_t piece = 0; piece < pieces->rank_of.size(); ++piece)
    if (pieces->rank_of[piece] == rank)
      own.push_back(static_cast<std::int32_t>(piece));
  std::int64_t const m = pieces->m, n_inner = (m - 2) * (m - 2) * (m - 2);
  auto const n_own = static_cast<std::int64_t>(own.size());
  number.assign(static_cast<std::size_t>(n_unknowns), -1);
  parallel_for(n_own, [&](std::int64_t i) {
    auto inner = static_cast<std::int32_t>(i * n_inner);
    for (std::int64_t z = 1; z < m - 1; ++z)
      for (std::int64_t y = 1; y < m - 1; ++y)
        for (std::int64_t x = 1; x < m - 1; ++x)
          number[nodes[((i * m + z) * m + y) * m + x]] = inner++;
  });
  auto next = static_cast<std::int32_t>(n_own * n_inner);
  for (std::int32_t& of_place : number)
    if (of_place < 0)
      of_place = next++;
}

LatticeCut OwnPieces::cut() const {
  LatticeCut result;
  result.a_side = 1 << pieces->depth;
  result.n_lattices = static_cast<std::int64_t>(pieces->places.size()) >> (3 * pieces->depth);
  for (std::int32_t const piece : own) {
    LatticePieces::Piece const& at = pieces->places[piece];
    result.places.push_back({at.lattice, static_cast<std::int32_t>(at.first[0]), static_cast<std::int32_t>(at.first[1]),
                             static_cast<std::int32_t>(at.first[2])});
  }
  return result;
}

std::int32_t OwnPieces::cell_of(std::int64_t i) const {
  auto const found =
      std::find_if(cells.begin(), cells.end(), [&](std::int32_t cell) { return pieces->cell(cell).piece == own[i]; });
  return static_cast<std::int32_t>(found - cells.begin());
}

}  // namespace poisson::assembly
