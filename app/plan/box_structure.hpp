#pragma once

#include "gpu/core/csr_matrix.hpp"

#include <array>
#include <cstdint>

namespace poisson::app {

/// The nodes per direction of the box that a matrix is of: its unknowns are the nodes, x fastest, and each is coupled with its 26
/// neighbours or some of them, as `poisson run --matrix-out` writes trilinear elements on a box. {0, 0, 0}: it is none, or one of
/// fewer than three nodes in a direction. Multigrid makes its levels from that. Precondition: the matrix is square.
[[nodiscard]] std::array<std::int64_t, 3> box_nodes_of(CsrMatrix const& matrix);

}  // namespace poisson::app
