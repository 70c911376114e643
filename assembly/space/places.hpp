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
  /// Entry i of `boundaries` gets the id after the largest of the mesh, plus i; so does entry i of `regions`. Throws InputError for
  /// names that the mesh has already, or that are given twice.
  PlaceNames(MeshCounts const& counts, MeshSpec const& spec);
  /// Ids without names.
  PlaceNames(std::set<unsigned> boundaries, std::set<unsigned> materials)
      : boundary_ids(std::move(boundaries)), material_ids(std::move(materials)) {}

  std::set<unsigned> boundary_ids, material_ids;
  IdNames boundary_names, material_names;
  unsigned first_boundary = 0, first_material = 0;  ///< ids of the first entries
};

/// Names faces and cells by their places. Returns notes on faces and cells that a place cuts: more than a quarter of them
/// is not on the side of their centre. Errors: InputError for a wrong expression, and for a place that holds no face or cell.
[[nodiscard]] std::vector<std::string> name_places(Space& space, ReferenceElement const& element, ProblemSpec const& spec,
                                                   PlaceNames const& names);

}  // namespace poisson::assembly
