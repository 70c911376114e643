#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"

#include <vector>

namespace poisson::assembly {

/// Sizes and places of the boundaries and materials of the mesh, by the quadrature of the assembly. Threaded; the same bits for any
/// number of threads. Throws InputError for a cell whose map has no positive determinant.
[[nodiscard]] MeshParts mesh_parts(Space const& space, ReferenceElement const& element);

/// Cells and volumes of the connected components of the mesh. Not for parts of a mesh.
[[nodiscard]] std::vector<MeshPart> component_sizes(Space const& space, ReferenceElement const& element);

}  // namespace poisson::assembly
