#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <map>
#include <optional>

namespace poisson::assembly {

/// Gives values at nodes of a box from those of its unknowns. The arguments outlive it.
[[nodiscard]] NodesOfBox nodes_among(Space const& space, ValuesOfUnknowns const& u);

/// The fluxes of boundary_fluxes through the sides of a box, from u in the layers of cells at these sides alone: the layers are cut
/// into tiles, which threads work on. `u` is called by one thread, side by side; `u_low` gives its low parts, or is empty. Memory:
/// that of u in one layer; of small ones, in all. The same bits for any number of threads. `own`: what a part of a box counts, its
/// own cells and the lower nodes of these (with the upper ones at the boundary of the mesh); the sums over parts are then those of
/// the whole. Without it all count. `inside`: asked for faces and nodes of order 1 that are on one side only and no others are near
/// them: of such a side only the strips around them are looked at then. Without it tiles have all. Preconditions: all cells around
/// nodes that count are here; the box has no surfaces inside; where it has periodic boundaries, opposite sides of it are tied to
/// each other, and all count. Errors: those of boundary_fluxes.
[[nodiscard]] std::map<unsigned, BoundaryFlux> box_boundary_fluxes(Space const& space, ReferenceElement const& element,
                                                                   ProblemData const& data, NodesOfBox const& u,
                                                                   NodesOfBox const& u_low = {},
                                                                   std::optional<BoxPart> const& own = {},
                                                                   InsideOfSide const& inside = {});

}  // namespace poisson::assembly
