#pragma once

#include "assembly/mesh/counts.hpp"
#include "assembly/space/space.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <vector>

namespace poisson::assembly {

/// The cells of a box that are left where others are void. Unknowns, edges and faces follow from indices, without a triangulation.
struct BoxCells {
  BoxGrid box;
  HostVector<std::int32_t> numbers;          ///< in the box, x fastest; ascending
  HostVector<unsigned> materials;            ///< of these cells
  std::vector<BoundaryFace> boundary_faces;  ///< of cells by their place in `numbers`; by cell, then face
};

/// Takes the void cells out of a box before its refinements, and sets the names and ids of what is left; as take_out_void does with
/// a triangulation. `of_expressions`: names of the expressions of regions. Errors: those of find_void_cells; InputError with key
/// "problem.mesh.<origin|extent|cells|refinements>".
[[nodiscard]] BoxCells take_out_of_box(MeshSpec const& spec, ExpressionNames const& of_expressions, MeshNames& names);

/// Sets the numbers of cells, faces, edges and vertices, of faces on the boundary, also by their ids, and the corners.
void count_cells(BoxCells const& cells, MeshCounts& counts);

/// What the space on cells of a box needs beside itself while it is made, with elements of an order.
[[nodiscard]] std::int64_t bytes_to_number(MeshSpec const& spec, int order);

}  // namespace poisson::assembly
