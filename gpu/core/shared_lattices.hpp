#pragma once

#include "gpu/core/lattice_layout.hpp"
#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <vector>

namespace poisson {

/// Lattices that are cut into `a_side`^3 pieces each. The pieces are lattices themselves.
struct LatticeCut {
  /// Piece (x, y, z) of a lattice.
  struct Place {
    std::int32_t lattice = 0, x = 0, y = 0, z = 0;
  };
  std::int64_t n_lattices = 0;  ///< that are cut
  std::int32_t a_side = 1;
  std::vector<Place> places;  ///< of some pieces
};

/// What one rank has of a mesh of lattices of order 1 that several share: some of the lattices, with all of their nodes. Their
/// unknowns are numbered as LatticeLayout says: first own ones, the rows, then those of other ranks, the ghosts of `neighbors`.
/// Ghosts that no lattice here has, but whose cells have own unknowns, have no copies.
struct SharedLattices {
  LatticeLayout layout;
  std::int64_t n_rows = 0;
  std::vector<RankNeighbor> neighbors;
  LatticeCut cut;  ///< of which lattices these are pieces; on all ranks each piece is there once
};

}  // namespace poisson
