#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"

namespace poisson::assembly {

/// Sizes and places of the boundaries and materials of the mesh, by the quadrature of the assembly. Threaded; the same bits for any
/// number of threads. Throws InputError for a cell whose map has no positive determinant.
[[nodiscard]] MeshParts mesh_parts(Space const& space, ReferenceElement const& element);

}  // namespace poisson::assembly
