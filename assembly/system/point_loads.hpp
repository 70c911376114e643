#pragma once

#include "assembly/problem.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/linear_system.hpp"

#include <vector>

namespace poisson::assembly {

/// The loads of spec.point_sources and spec.line_sources: values of basis functions at points, and integrals along lines, which are
/// cut where they go from one cell to another. The loads add up to the integrals of the sources. Errors: InputError for a point
/// outside the mesh, a line that leaves it, and a value that is not finite.
/// Of a part of a mesh only the points in it have loads, those outside are no error, and the integrals are those of the whole.
/// `cuts`: of every line, where it is known where it is cut.
[[nodiscard]] PointLoads point_loads(Space const& space, ReferenceElement const& element, ProblemSpec const& spec,
                                     std::vector<std::vector<double>> const& cuts = {});

/// Throws the InputError for a place outside the mesh, to which `nearest` is the nearest node.
[[noreturn]] void refuse_place(PointLoads::Place const& place, std::array<double, 3> const& nearest);

}  // namespace poisson::assembly
