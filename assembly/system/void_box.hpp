#pragma once

#include "assembly/space/constraints.hpp"
#include "assembly/space/reference_element.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/box_problem.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <set>
#include <span>

namespace poisson::assembly {

/// A problem on the cells of a box that are left where others are void, for gpu/elements: on the whole box, with void as a material
/// whose k is 0.
struct VoidBoxProblem {
  BoxProblem box;                       ///< values of Neumann conditions are not in it
  std::span<std::int32_t const> nodes;  ///< of the unknowns, in the box; the space has them
  HostVector<double> loads;             ///< of Neumann values, for every unknown; empty: nothing is given but that no flux passes
  Constraints constraints;              ///< Dirichlet values
};

/// Whether gpu/elements takes a problem on what void left of a box, as far as its data tell: trilinear elements on equal cells, k
/// constant in each of 254 materials or less, Dirichlet values on sides of the box alone, no Robin or periodic conditions, no
/// conditions on surfaces inside.
[[nodiscard]] bool is_for_void_box(MeshSpec const& mesh, int order, ProblemData const& data, std::set<unsigned> const& materials);

/// Returns that problem. Preconditions: is_for_void_box; space.in_box. The space and the data outlive it. Errors: those of
/// assemble_system for values on the boundary.
[[nodiscard]] VoidBoxProblem void_box_problem(Space const& space, ReferenceElement const& element, ProblemData const& data);

}  // namespace poisson::assembly
