#include "assembly/space/lattice_pieces.hpp"

#include "assembly/parallel.hpp"

#include <algorithm>

namespace poisson::assembly {

OwnPieces::OwnPieces(std::shared_ptr<LatticePieces const> of_ranks, int rank, std::int64_t n_unknowns, std::int64_t own_rows,
                     HostVector<std::int32_t> own_nodes, std::vector<std::int32_t> around_cells)
    : pieces(std::move(of_ranks)), n_rows(own_rows), nodes(std::move(own_nodes)), cells(std::move(around_cells)) {
  for (std::size_t piece = 0; piece < pieces->rank_of.size(); ++piece)
    if (pieces->rank_of[piece] == rank)
      own.push_back(static_cast<std::int32_t>(piece));
  LatticeLayout const layout = shape();
  LatticeView const view = layout.view();
  std::int32_t const m = view.m;
  number.assign(static_cast<std::size_t>(n_unknowns), -1);
  parallel_for(layout.n_lattices, [&](std::int64_t i) {
    for (std::int32_t z = 1; z < m - 1; ++z)
      for (std::int32_t y = 1; y < m - 1; ++y)
        for (std::int32_t x = 1; x < m - 1; ++x)
          number[nodes[((i * m + z) * m + y) * m + x]] = static_cast<std::int32_t>(view.inner_unknown(i, x, y, z));
  });
  auto next = static_cast<std::int32_t>(layout.n_inner());
  for (std::int32_t& of_place : number)
    if (of_place < 0)
      of_place = next++;
}

LatticeLayout OwnPieces::shape() const {
  std::int32_t const p = pieces->order;
  LatticeLayout result;
  result.n_lattices = static_cast<std::int64_t>(own.size());
  result.order = p;
  result.cells = static_cast<std::int32_t>(pieces->n);
  result.kind_first.resize(static_cast<std::size_t>(p * p * p));
  NodeKinds<3> const kinds(p, pieces->n);
  for (NodeKinds<3>::Kind const& kind : kinds.kinds())
    result.kind_first[static_cast<std::size_t>((kind.residue[2] * p + kind.residue[1]) * p + kind.residue[0])] =
        static_cast<std::int32_t>(kind.first);
  return result;
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
