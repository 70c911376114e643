#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <span>

namespace poisson::assembly {

/// The integral of `exact` over the mesh divided by its volume.
[[nodiscard]] double mean_of_exact(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// Norms of u - (exact - shift).
[[nodiscard]] ErrorNorms error_norms(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                     std::span<double const> u, double shift);

[[nodiscard]] Quantities solution_quantities(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             std::span<double const> u);

/// Nodes and cells for output. Orders 1 and 2 have nodes where the unknowns are; beyond, nodes are moved to equidistant places.
[[nodiscard]] OutputMesh output_mesh(Space const& space, ReferenceElement const& element);

/// Fields on these nodes and cells, with exact - shift where `exact` is known.
[[nodiscard]] SolutionFields solution_fields(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             std::span<double const> u, double shift);

}  // namespace poisson::assembly
