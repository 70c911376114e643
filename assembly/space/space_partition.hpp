#pragma once

#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <vector>

namespace poisson::assembly {

class Space;

/// What one rank of several has of a mesh. Cells are cut into as many runs of equal length; an unknown belongs to the rank with the
/// first of its cells, and a cell to the rank that has its first unknown.
struct PartOfSpace {
  std::vector<std::int32_t> own_cells;     ///< of which every cell of the mesh has one owner
  std::vector<std::int32_t> around_cells;  ///< all cells with unknowns of this rank, own ones among them
  std::vector<std::int32_t> unknowns;      ///< of around_cells: n_rows own ones, ascending, then those of others, by their rank
  std::vector<std::int32_t> in_own_cells;  ///< places in `unknowns` of those of own cells
  std::int64_t n_rows = 0;
  std::vector<RankNeighbor> neighbors;  ///< whose ghosts are the unknowns from n_rows on
};

/// Looks at all cells. Preconditions: 0 <= rank < ranks. The first rank has cells; others may have none where there are few.
[[nodiscard]] PartOfSpace part_of(Space const& space, int rank, int ranks);

}  // namespace poisson::assembly
