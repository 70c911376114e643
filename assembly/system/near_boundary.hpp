#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <cstdint>
#include <span>

namespace poisson::assembly {

/// The result of boundary_fluxes from u near boundaries and surfaces inside alone: in the cells of their faces, and in all cells
/// around nodes where u is prescribed or tied and whose residuals count. `u` is called once; `u_low` gives low parts, or is empty.
/// `counted`: as for boundary_fluxes; where it is null, as for a whole mesh, periodic fluxes are added. Memory: that of these
/// cells, of which lattices are asked on their rims only. The same bits for any number of threads. Precondition: the space is no
/// box. Errors: those of boundary_fluxes.
[[nodiscard]] BoundaryFluxes fluxes_near_boundary(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                                  ValuesOfUnknowns const& u, ValuesOfUnknowns const& u_low = {},
                                                  CountedUnknowns const& counted = {});

/// The result of boundary_surface, with the unknowns of `space`, from u in the cells at the boundary alone. `u` is called once. On
/// a box its cells are taken as any others, whose coordinates differ by rounding. Errors: those of boundary_surface.
[[nodiscard]] BoundarySurface surface_near_boundary(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                                    ValuesOfUnknowns const& u);

}  // namespace poisson::assembly
