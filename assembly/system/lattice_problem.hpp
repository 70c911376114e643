#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/lattice_problem.hpp"

namespace poisson::assembly {

/// The problem as gpu/elements assembles it, but for the number of couplings. Where the space is not numbered by lattices, every
/// cell is one, with all its nodes in the tables. Errors: InputError for values on the boundary that must not be, where the
/// solution is not unique, and where the tables would exceed 32-bit indices.
[[nodiscard]] LatticeProblem lattice_problem(Space const& space, ReferenceElement const& element, ProblemData const& data);

}  // namespace poisson::assembly
