#pragma once

#include "gpu/core/block_places.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/elements/box_system.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poisson {

/// The rows of a rank of a box that several share.
struct BlockSystem {
  std::unique_ptr<Matrix> local;  ///< couplings of own nodes with each other: half_cds or matrix_free, where the box was assembled
  SplitRows rows;                 ///< the rim's, without `local`
  CsrMatrix rim_rows;             ///< the whole rows of the rim; columns are own rows, then ghosts
  Field rhs;                      ///< of own rows
};

/// Own nodes that have neighbours which are not, by their places in `around`, the box of all these.
[[nodiscard]] std::vector<std::int32_t> nodes_on_rim(NodeBox const& around, NodeBox const& own);

/// The rows of nodes on a rim, by entries: [13 + 9 dz + 3 dy + dx] couples each with the node at that distance. What is not stored
/// is -0.0.
using RimEntries = std::array<HostVector<double>, 27>;

/// Sets `rows` and `rim_rows` of a block from the entries of nodes_on_rim.
[[nodiscard]] BlockSystem rows_of_rim(BlockPlaces const& places, std::span<std::int32_t const> rim, RimEntries const& entries);

/// Makes the rows of a rank from `around`, the system of the box of cells around the rank's nodes. The matrix of `around` is in
/// half_cds or matrix_free. It is moved out of `around`, as is the right-hand side. The nodes of that box are places.around().
/// Where a face of the box lies inside of the whole box, its type is BoxProblem::Face::Type::cut. Preconditions: there are three
/// own nodes or more in x and in y, and in z too where the matrix is matrix_free. Throws OutOfMemoryError.
[[nodiscard]] BlockSystem take_block(BoxSystem& around, BlockPlaces const& places, Context& context);

}  // namespace poisson
