#pragma once

#include "assembly/problem.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/linear_system.hpp"

#include <array>

namespace poisson::assembly {

/// The loads of spec.point_sources and spec.line_sources: values of basis functions at points, and integrals along lines, which are
/// cut where they go from one cell to another. The loads add up to the integrals of the sources. Points that are outside by
/// near_mesh at most are moved onto the mesh. Errors: InputError for a point farther outside, a line that leaves the mesh, and a
/// value that is not finite. Of a part of a mesh only the points in it have loads, those outside are no error, and the integrals
/// are those of the whole.
[[nodiscard]] PointLoads point_loads(Space const& space, ReferenceElement const& element, ProblemSpec const& spec,
                                     SharedPlaces const& shared = {});

/// Throws the InputError for a place outside the mesh, to which `nearest` is the nearest node.
[[noreturn]] void refuse_place(PointLoads::Place const& place, std::array<double, 3> const& nearest);

}  // namespace poisson::assembly
