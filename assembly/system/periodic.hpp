#pragma once

#include "assembly/space/constraints.hpp"
#include "assembly/space/reference_element.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"

namespace poisson::assembly {

/// The constraints of periodic boundaries: each node of the second boundary of a condition is the image of one of the first, and u
/// there is u at that node plus the condition's value. Of all nodes that are tied to each other one stays free, or has the
/// Dirichlet value of one of them. Size 0 without periodic conditions. Throws InputError where the boundaries do not match, and
/// where values contradict each other around an edge.
[[nodiscard]] Constraints periodic_constraints(Space const& space, ReferenceElement const& element, ProblemData const& data);

}  // namespace poisson::assembly
