#pragma once

#include "assembly/dealii/raw.hpp"

#include <cstdint>
#include <vector>

namespace poisson::assembly {

struct JoinedNodes {
  std::int64_t joined = 0;  ///< nodes that are gone
  std::int64_t kept = 0;    ///< nodes that coincide with others and stay, as a cell would have the same node twice
};

/// Makes one node of those that lie at the same place: within 1e-9 of the smallest edge of a cell, or the rounding of their
/// coordinates. Pieces of a VTU file, or cells that a program wrote with points of their own, then belong together. Cells and
/// quadrilaterals refer to the first of the nodes; `vertices` and the shapes of curved cells stay as they are. O(n).
[[nodiscard]] JoinedNodes join_nodes(RawMesh& mesh);

/// The numbers of cells in the parts of the mesh that have no node in common, the largest first.
[[nodiscard]] std::vector<std::int64_t> separate_parts(RawMesh const& mesh);

}  // namespace poisson::assembly
