#include "assembly/space/lattice_pieces.hpp"

namespace poisson::assembly {

std::int64_t OwnPieces::cell_of_whole(std::int64_t cell) const {
  if (cell >= n_own_cells())
    return other_cells[static_cast<std::size_t>(cell - n_own_cells())];
  std::int64_t const n = pieces->n, in_piece = cell % cells_of_piece();
  return pieces->number_of(
      {own[static_cast<std::size_t>(cell / cells_of_piece())], {in_piece % n, in_piece / n % n, in_piece / (n * n)}});
}

std::int32_t OwnPieces::number_of(LatticeNode const& node) const {
  std::int64_t const m = pieces->m;
  std::int32_t const piece = own[static_cast<std::size_t>(node.lattice)];
  return pieces->unknown(pieces->places[static_cast<std::size_t>(piece)].lattice,
                         pieces->in_lattice(piece, {node.node % m, node.node / m % m, node.node / (m * m)}));
}

LatticeCut OwnPieces::cut() const {
  LatticeCut result;
  result.a_side = 1 << pieces->depth;
  result.n_lattices = static_cast<std::int64_t>(pieces->places.size()) >> (3 * pieces->depth);
  for (std::int32_t const piece : own) {
    LatticePieces::Piece const& at = pieces->places[static_cast<std::size_t>(piece)];
    result.places.push_back({at.lattice, static_cast<std::int32_t>(at.first[0]), static_cast<std::int32_t>(at.first[1]),
                             static_cast<std::int32_t>(at.first[2])});
  }
  return result;
}

}  // namespace poisson::assembly
