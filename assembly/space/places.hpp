#pragma once

#include "assembly/problem.hpp"
#include "assembly/space/space.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {

/// Ids and names of the boundaries and materials of a mesh, those of `boundaries` and `regions` included.
struct PlaceNames {
  /// Entry i of `boundaries` gets the id after the largest of the mesh and its groups, plus i; so does entry i of `regions`. Throws
  /// InputError for names that the mesh has already, or that are given twice.
  PlaceNames(MeshCounts const& counts, MeshSpec const& spec);
  /// Ids without names.
  PlaceNames(std::set<unsigned> boundaries, std::set<unsigned> materials)
      : boundary_ids(std::move(boundaries)), material_ids(std::move(materials)) {}

  std::set<unsigned> boundary_ids, material_ids;
  IdGroups boundary_groups, material_groups;
  std::set<unsigned> inner_ids;  ///< of surfaces inside the mesh
  IdGroups inner_groups;
  std::set<unsigned> insulated;     ///< boundaries that need no condition
  std::set<unsigned> left_out_ids;  ///< as MeshCounts, and so is:
  std::set<std::string> left_out_names;
  unsigned first_boundary = 0, first_material = 0;  ///< ids of the first entries
};

/// Names faces and cells by their places, and counts them. A place cuts one where more than a quarter of it is not on the side of
/// its centre. Errors: InputError for a wrong expression.
[[nodiscard]] PlaceCounts name_places(Space& space, ReferenceElement const& element, ProblemSpec const& spec,
                                      PlaceNames const& names);

/// Notes on faces and cells that places cut. Throws InputError for a place that holds no face or cell; low and high are the corners
/// of the mesh, of which parts may be left out (LeftOut).
[[nodiscard]] std::vector<std::string> check_places(MeshSpec const& spec, PlaceCounts const& counts, Point3 const& low,
                                                    Point3 const& high, bool some_left_out);

}  // namespace poisson::assembly
