#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/elements/box_system.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace poisson {

/// The rows of a rank of a box that several share.
struct BlockSystem {
  std::unique_ptr<Matrix> local;  ///< couplings of own nodes with each other: half_cds or matrix_free, where the box was assembled
  SplitRows rows;                 ///< the rim's, without `local`
  CsrMatrix rim_rows;             ///< the whole rows of the rim; columns are own rows, then ghosts
  HostVector<double> rhs;
};

/// From the system of a box of the cells around the rank's nodes, whose matrix is in half_cds or matrix_free; `around_nodes` are
/// its nodes. What bounds it inside of the whole is BoxProblem::Face::Type::cut. `places`: of every one of its nodes, x fastest,
/// the row or the number of rows plus that of the ghost. Preconditions: own nodes are three or more in x and in y, where it is
/// matrix_free in z, too. Takes the right-hand side and the matrix of `around`. Throws OutOfMemoryError.
[[nodiscard]] BlockSystem take_block(BoxSystem& around, NodeBox const& around_nodes, NodeBox const& own,
                                     std::span<std::int32_t const> places, Context& context);

}  // namespace poisson
