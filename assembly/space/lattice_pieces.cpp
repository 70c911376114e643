#include "assembly/space/lattice_pieces.hpp"

#include "assembly/parallel.hpp"
#include "assembly/space/space_partition.hpp"

#include <algorithm>
#include <cassert>

namespace poisson::assembly {

OwnPieces::OwnPieces(std::shared_ptr<LatticePieces const> of_ranks, int rank, std::span<std::int32_t const> unknowns,
                     std::int64_t own_rows, std::vector<std::int32_t> around_cells)
    : pieces(std::move(of_ranks)), n_rows(own_rows), cells(std::move(around_cells)) {
  assert(pieces->order == 1);
  for (std::size_t piece = 0; piece < pieces->rank_of.size(); ++piece)
    if (pieces->rank_of[piece] == rank)
      own.push_back(static_cast<std::int32_t>(piece));
  std::int64_t const m = pieces->m, size = m * m * m, n_inner = (m - 2) * (m - 2) * (m - 2);
  auto const n_own = static_cast<std::int64_t>(own.size());
  nodes.resize(static_cast<std::size_t>(n_own * size));
  number.assign(unknowns.size(), -1);
  PlaceInList const place(unknowns);
  parallel_for(n_own, [&](std::int64_t i) {
    std::int32_t const piece = own[i];
    std::int32_t const lattice = pieces->places[piece].lattice;
    std::int32_t* node = nodes.data() + i * size;
    std::int64_t inner = i * n_inner;
    for (std::int64_t z = 0; z < m; ++z)
      for (std::int64_t y = 0; y < m; ++y)
        for (std::int64_t x = 0; x < m; ++x) {
          *node = place(pieces->unknown(lattice, pieces->in_lattice(piece, {x, y, z})));
          if (x > 0 && y > 0 && z > 0 && x < m - 1 && y < m - 1 && z < m - 1)
            number[*node] = static_cast<std::int32_t>(inner++);
          ++node;
        }
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
