#pragma once

#include "gpu/core/block_places.hpp"
#include "gpu/core/field.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/formats/stored_rim.hpp"

#include <memory>

namespace poisson {

/// The rows of a rank of a box or of lattices that several share.
struct BlockSystem {
  /// Couplings of own rows with each other, in half_cds or matrix_free, where they were assembled; of lattices all of own rows.
  std::unique_ptr<Matrix> local;
  StoredRim rim;  ///< of a box: the rim's rows, in the same memory
  Field rhs;      ///< of own rows
};

/// Makes the rows of a rank from `around`, the system of the box of cells around the rank's nodes. The matrix of `around` is in
/// half_cds or matrix_free. It is moved out of `around`. The nodes of that box are places.around(). Where a face of the box lies
/// inside of the whole box, its type is BoxProblem::Face::Type::cut. Preconditions: there are three own nodes or more in x and in
/// y, and in z too where the matrix is matrix_free. Throws OutOfMemoryError.
[[nodiscard]] BlockSystem take_block(BoxSystem& around, BlockPlaces const& places, Context& context);

}  // namespace poisson
