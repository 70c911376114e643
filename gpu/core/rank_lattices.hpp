#pragma once

#include "gpu/core/csr_entries.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <vector>

namespace poisson {

/// What one rank has of a mesh of lattices of order 1 that several share: some of the lattices, with all of their nodes. Their
/// unknowns are numbered as LatticeLayout says: first own ones, the rows, then those of other ranks, the ghosts of `neighbors`.
/// Ghosts that no lattice here has, but whose cells have own unknowns, have no copies.
struct RankLattices {
  LatticeLayout layout;
  std::int64_t n_rows = 0;
  std::vector<RankNeighbor> neighbors;
  std::vector<MatrixEntry> added{};  ///< what other ranks' lattices add to own rows of the matrix; columns are unknowns here
};

}  // namespace poisson
