#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <span>
#include <vector>

namespace poisson::assembly {

/// The axis-aligned bounding box of all nodes.
[[nodiscard]] Extent extent_of(Space const& space);

/// u (n_dofs values) at the points of a lattice: lattice.size() values, NaN at points outside all cells. A point that several cells
/// contain is evaluated in the one with the lowest number; `cells_of_points`, unless null, gets that number, or -1. Threaded; the
/// same bits for any number of threads.
[[nodiscard]] HostVector<double> sample(Space const& space, ReferenceElement const& element, std::span<double const> u,
                                        Lattice const& lattice, HostVector<std::int64_t>* cells_of_points = nullptr);

/// Points outside of the mesh by this share of a cell at most are taken for points on its surface.
inline constexpr double near_mesh = 0.01;

/// Finds the cells of points, all that hold them. A point in no cell, but within `near` times its size from one, is moved onto the
/// nearest such cell. Threaded; the same result for any number of threads.
[[nodiscard]] std::vector<LocatedPoint> locate(Space const& space, ReferenceElement const& element, std::span<Point3 const> points,
                                               double near = 0);

/// The t in [0, 1], ascending, at which the line from + t (to - from) goes from one cell to another or into or out of the mesh, and
/// both ends. A cell that it passes through for a small part of the size of a cell only may be missed.
[[nodiscard]] std::vector<double> cell_crossings(Space const& space, ReferenceElement const& element, Point3 const& from,
                                                 Point3 const& to);

/// The node that is nearest to a point; of several the one with the lowest number.
[[nodiscard]] Point3 nearest_node(Space const& space, Point3 const& x);

/// The cells on whose surfaces located points lie, and k in them; `point` is the place in `points`. Nothing where k can jump
/// nowhere. Errors: InputError where k has no admissible value.
[[nodiscard]] std::vector<PointSide> sides_of(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                              std::span<LocatedPoint const> points);
/// Moves a point to another cell that holds it.
void move_to_cell(Space const& space, ReferenceElement const& element, LocatedPoint& point, std::int64_t cell);

/// u and what follows from it at points, evaluated in the polynomials of their cells, from u at the unknowns of these cells: `u` is
/// called once. `shift` is that of solution_fields. Precondition: the points are inside. Errors: InputError where k or `exact` has
/// no admissible value.
[[nodiscard]] std::vector<PointValues> values_at(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                                 ValuesOfUnknowns const& u, double shift, std::span<LocatedPoint const> points);

}  // namespace poisson::assembly
