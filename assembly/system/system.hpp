#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/linear_system.hpp"
#include "assembly/system/problem_data.hpp"

namespace poisson::assembly {

/// Seconds, for benchmarks.
struct AssemblyTimes {
  double pattern = 0, values = 0;
};

/// The system of a problem on a space. `of_space` are constraints that the space has of its own (hanging nodes, periodic faces),
/// not closed; none when its size is 0. Dirichlet conditions come on top of them. Errors: InputError for values that a coefficient,
/// source or condition must not take, for a mesh whose cells are turned inside out, and for problems without a solution or with
/// several.
[[nodiscard]] LinearSystem assemble_system(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                           Constraints of_space = Constraints(), AssemblyTimes* times = nullptr);

/// Nothing fixes the constant: no Dirichlet condition, and no Robin condition with alpha > 0. Errors: as assemble_system.
[[nodiscard]] bool is_pure_neumann(Space const& space, ReferenceElement const& element, ProblemData const& data);

}  // namespace poisson::assembly
