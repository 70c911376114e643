#pragma once

#include "assembly/space/constraints.hpp"
#include "assembly/space/reference_element.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/periodic_nodes.hpp"
#include "assembly/system/problem_data.hpp"

#include <span>
#include <vector>

namespace poisson::assembly {

/// The nodes on all periodic boundaries of a space, each once for every boundary that it is on; by boundary, then number.
[[nodiscard]] std::vector<PeriodicNode> periodic_nodes(Space const& space, ReferenceElement const& element,
                                                       ProblemData const& data);
/// Tells which nodes periodic conditions join, from those of the whole mesh in any order; by condition, then the number of the
/// first. Errors: those of periodic_constraints, but for values that contradict each other.
[[nodiscard]] std::vector<PeriodicNodePair> periodic_pairs(std::span<PeriodicNode const> nodes, ProblemData const& data);
/// Tells what ties periodic nodes, from those of the whole mesh in any order; by number. `to` is tied to no other. Errors: those of
/// periodic_constraints.
[[nodiscard]] std::vector<PeriodicTie> periodic_ties(std::span<PeriodicNode const> nodes, ProblemData const& data);

/// Adds the faces that periodic conditions join to those of space.local, with where their corners are on the other side.
/// Precondition: the space is refined locally, and the same on both sides. Throws InputError where boundaries do not match, and for
/// conditions that turn one into the other.
void join_periodic_faces(Space& space, ReferenceElement const& element, ProblemData const& data);

/// The constraints of periodic boundaries: each node of the second boundary of a condition is the image of one of the first, and u
/// there is u at that node plus the condition's value. Of all nodes that are tied to each other one stays free, or has the
/// Dirichlet value of one of them. Nodes that hang follow their larger cells on both sides. Size 0 without periodic conditions.
/// Throws InputError where the boundaries do not match, and where values contradict each other around an edge.
[[nodiscard]] Constraints periodic_constraints(Space const& space, ReferenceElement const& element, ProblemData const& data);

}  // namespace poisson::assembly
