#pragma once

#include "assembly/space/space_partition.hpp"
#include "gpu/core/lattice_interior.hpp"

#include <optional>

namespace poisson::assembly {

struct Mesh;
struct ReferenceElement;

/// What one rank of several has of a coarse mesh that is refined so often, made without the rest of it. Where there are few
/// lattices they are cut into 8, 64, ... pieces; pieces are shared out by METIS. The rank makes the nodes of its own pieces; cells
/// and unknowns of these follow by formulas, and only the layer of cells around them is looked at. An unknown belongs to the rank
/// of the first piece that has it. Numbers in the whole are those of Space there; nodes lie where they do there, up to rounding,
/// and, once ghosts have theirs (Space::set_points), have the same bits on all ranks. Refines `mesh` by the cuts. None: the mesh is
/// not one of connected lattices, or deal.II cannot place the nodes. Lattices of curved cells of files are not cut. `leave_nodes`
/// and `fill`: see CoarseMesh; the former needs a mesh that is made easily (LatticeMesh).
[[nodiscard]] std::optional<ShareOfLattices> share_of_lattices(Mesh& mesh, int refinements, ReferenceElement const& element,
                                                               int rank, int ranks, bool leave_nodes, FillLattices const& fill);

}  // namespace poisson::assembly
