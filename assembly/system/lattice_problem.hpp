#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/lattice_problem.hpp"

namespace poisson::assembly {

/// The problem as gpu/elements assembles it. Precondition: the space is numbered by lattices. Errors: InputError for
/// values on the boundary that must not be, and where the solution is not unique.
[[nodiscard]] LatticeProblem lattice_problem(Space const& space, ReferenceElement const& element, ProblemData const& data);

}  // namespace poisson::assembly
