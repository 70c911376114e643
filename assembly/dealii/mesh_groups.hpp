#pragma once

#include "assembly/dealii/raw.hpp"
#include "assembly/mesh/id_groups.hpp"

#include <array>
#include <cstddef>
#include <deal.II/grid/tria_description.h>
#include <string>
#include <vector>

/// How the groups of a mesh file become ids and names. For files.cpp only.
namespace poisson::assembly {

/// A face of a cell.
struct RawFace {
  std::array<int, 4> key{};       ///< vertices in ascending order
  std::array<int, 4> vertices{};  ///< around the face, seen from outside of its cell
  std::size_t cell = 0;
};

/// Merges cells that are listed several times, with the same nodes, gives every cell as its material the id of its groups, and
/// returns these. Throws InputError for an id that is out of range.
[[nodiscard]] IdGroups resolve_cell_groups(std::string const& path, RawMesh& mesh, std::vector<std::string>& notes);

struct FaceGroups {
  dealii::SubCellData boundary;  ///< the faces of the boundary whose id is not 0, as deal.II wants them
  struct Inner {
    std::size_t cell = 0;          ///< the lower one
    std::array<int, 4> corners{};  ///< of the face: their places in the cell's list of vertices
    unsigned id = 0;
  };
  std::vector<Inner> inner;  ///< between two cells; ascending by cell
  IdGroups boundary_groups;  ///< groups that hold no face of the boundary are there as well
  IdGroups inner_groups;     ///< those of `inner`
};
/// `faces` are all faces of all cells, ascending by key. Throws InputError for a quadrilateral that is no face of a cell, and for
/// an id that is out of range.
[[nodiscard]] FaceGroups resolve_face_groups(std::string const& path, RawMesh const& mesh, std::vector<RawFace> const& faces,
                                             std::vector<std::string>& notes);

}  // namespace poisson::assembly
