#pragma once

#include "assembly/discretization.hpp"
#include "assembly/system/problem_data.hpp"
#include "assembly/space/space.hpp"

namespace poisson::assembly {

/// The integral of `exact` over the mesh divided by its volume.
[[nodiscard]] double mean_of_exact(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// Norms of u - (exact - shift).
[[nodiscard]] ErrorNorms error_norms(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                     std::span<double const> u, double shift);

[[nodiscard]] Quantities solution_quantities(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             std::span<double const> u);

/// Nodes, cells and fields for output, with exact - shift where `exact` is known.
[[nodiscard]] SolutionFields solution_fields(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             std::span<double const> u, double shift);

}  // namespace poisson::assembly
