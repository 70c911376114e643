#pragma once

#include "assembly/mesh/id_groups.hpp"
#include "assembly/problem.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// What can be computed about a mesh without building it; free of deal.II.
namespace poisson::assembly {

/// Peak bytes per active cell while deal.II 9.4 builds a triangulation, measured at 64^3 and 128^3 cells: 800 to 813 for a
/// mesh made in one step, 601 to 629 for one made by global refinement (ancestors included).
inline constexpr std::int64_t bytes_per_created_cell = 820;
inline constexpr std::int64_t bytes_per_refined_cell = 640;

/// A box divided into cells. In a direction without coordinates they are equal: cell i of the leaf mesh spans
/// origin + extent * [i / cells, (i + 1) / cells].
struct BoxGrid {
  std::array<double, 3> origin{};
  std::array<double, 3> extent{};
  std::array<std::int64_t, 3> cells{};               ///< per direction, after all refinements
  std::array<std::vector<double>, 3> coordinates{};  ///< of the vertices of a graded direction, ascending; else empty

  [[nodiscard]] bool has_equal_cells() const { return coordinates[0].empty() && coordinates[1].empty() && coordinates[2].empty(); }

  /// Where this box is a part of another one, that one, and the first of its cells that is here. Coordinates and sizes of cells are
  /// then those of the whole, to the last bit.
  struct Whole {
    std::array<double, 3> origin{}, extent{};
    std::array<std::int64_t, 3> cells{}, first{};
    std::array<std::vector<double>, 3> coordinates{};  ///< of the vertices of a graded direction; else empty
  };
  std::optional<Whole> whole{};

  /// Whether side 2 d, or 2 d + 1, in direction d is on the boundary of the mesh, and not inside of the whole.
  [[nodiscard]] bool is_boundary(int side) const {
    auto const d = static_cast<std::size_t>(side / 2);
    return !whole || (side % 2 == 0 ? whole->first[d] == 0 : whole->first[d] + cells[d] == whole->cells[d]);
  }
};

/// The coordinates of the vertices in a direction, ascending.
[[nodiscard]] std::vector<double> vertex_coordinates(BoxGrid::Whole const& box, std::size_t direction);

/// The part of a box that has `cells` cells per direction from `first` on. The box may be a part itself.
[[nodiscard]] BoxGrid part_of(BoxGrid const& box, std::array<std::int64_t, 3> const& first,
                              std::array<std::int64_t, 3> const& cells);

/// Two boundaries that a mesh file joins, by the ids of groups.
struct PeriodicPair {
  unsigned first = 0, second = 0;
  std::optional<std::array<double, 12>> map{};  ///< see BoundaryCondition
};

/// How good the cells of a mesh file are, before refinements. The scaled Jacobian of a cell is the least value of det J over the
/// product of the lengths of the columns of J: at its corners, and where it is curved at points on its faces and inside. It is 1
/// for a brick, and not positive where a cell is turned inside out.
struct CellQuality {
  double worst = 1, mean = 1;  ///< over all cells
  std::array<double, 3> at{};  ///< the centre of the worst one
};

/// A closed surface, and the mesh of voxels that stands for what is inside. Voxels follow a slanted surface in stairs, so that
/// their area does not come near that of the surface.
struct SurfaceFit {
  double volume = 0, area = 0, voxels_volume = 0, voxels_area = 0;
};

/// Parts of a mesh with void that are left out since no condition fixes them.
struct LeftOut {
  std::int64_t parts = 0, cells = 0;
  double volume = 0;
};

/// What the ids of a mesh stand for, and what is told about it. Refinements change nothing of it.
struct MeshNames {
  std::set<unsigned> boundary_ids;
  std::set<unsigned> material_ids;
  IdGroups boundary_groups, material_groups;  ///< those that the mesh file gives
  IdGroups inner_groups;                      ///< named or numbered surfaces inside the mesh; no part of the boundary
  std::vector<PeriodicPair> periodic;         ///< boundaries that the mesh file joins
  std::set<unsigned> void_surfaces;           ///< boundaries of cells that were taken out: insulated unless a condition says more
  std::set<unsigned> void_materials;          ///< materials that were taken out
  LeftOut left_out;
  std::set<unsigned> left_out_ids;  ///< boundaries that only such parts have, and names of these: conditions may speak of them
  std::set<std::string> left_out_names;
  std::optional<CellQuality> quality;  ///< of a mesh file
  std::optional<SurfaceFit> surface;   ///< of a file that is a surface
  std::vector<std::string> notes;      ///< what was changed while the mesh file was read, and cells that void regions cut
};

/// Counts of the refined mesh of a specification. Global refinement maps the numbers of cells, faces, edges and vertices linearly,
/// so the counts are exact for unstructured meshes too.
struct MeshCounts : MeshNames {
  std::int64_t cells = 0;
  std::int64_t faces = 0;
  std::int64_t edges = 0;
  std::int64_t vertices = 0;
  std::int64_t boundary_faces = 0;
  std::optional<BoxGrid> box;
  std::map<unsigned, std::int64_t> faces_with_id;        ///< faces of the boundary by their id
  std::map<unsigned, std::int64_t> inner_faces_with_id;  ///< faces of surfaces inside the mesh by their id
  std::array<double, 3> low{}, high{};                   ///< corners of the box around the vertices of the unrefined mesh
  int shape_order = 1;                                   ///< of the polynomials that give the cells of a mesh file their shapes
  bool curved = false;                                   ///< some cells, by a file or by a generator: see Mesh
  std::int64_t triangulation_bytes = 0;  ///< peak memory expected for deal.II's triangulation, coarser levels included

  /// Continuous Q_p unknowns: one per vertex, p - 1 per edge, (p - 1)^2 per face, (p - 1)^3 per cell. Saturates at 2^62.
  [[nodiscard]] std::int64_t unknowns(int order) const;
  /// Returns the counts after `times` global refinements.
  [[nodiscard]] MeshCounts refined(int times) const;
};

/// Whether it is the generator `box`, all cells of which are there.
[[nodiscard]] bool is_box(MeshSpec const& spec);
/// Whether it is that generator, void cells are taken out, and the others stay as they are.
[[nodiscard]] bool is_box_with_void(MeshSpec const& spec);
/// The ending that says the format of a mesh file, in small letters: that of name.msh.gz as of name.msh.
[[nodiscard]] std::string ending_of_mesh_file(std::string const& path);
/// Whether the file is a drawing, which gmsh makes a mesh of: .step, .stp, .brep, .geo.
[[nodiscard]] bool is_drawing(MeshSpec const& spec);
/// Whether the file is a surface, whose inside becomes voxels: .stl.
[[nodiscard]] bool is_surface(MeshSpec const& spec);
/// Whether VTK reads the file: .vtk, .vtu, .hdf, .vtkhdf.
[[nodiscard]] bool is_read_by_vtk(MeshSpec const& spec);
/// The key that says where the mesh comes from.
[[nodiscard]] char const* source_key(MeshSpec const& spec);
/// Throws InputError when the number of refinements is out of range.
void check_refinements(MeshSpec const& spec);

/// Counts of the refined mesh without building it. A box is never built; a generator's or file's mesh is built unrefined, and
/// checked. `names` are those of the expressions of its regions. Errors: those of open_coarse_mesh.
[[nodiscard]] MeshCounts predict_counts(MeshSpec const& spec, ExpressionNames const& names = {});

/// Throws InputError (key "problem.mesh.cells" or "problem.mesh.refinements") when the unknowns of Q_order exceed 32-bit indices.
void check_index_range(MeshSpec const& spec, MeshCounts const& counts, int order);
/// Throws EnvironmentError when the machine, or the process's cgroup, has less than `bytes` of memory available.
void check_memory(std::int64_t bytes, char const* purpose);
/// Whether there is so much. What was read in the last 50 ms counts where half of it is enough.
[[nodiscard]] bool has_memory(std::int64_t bytes);

/// Names of the generators that `problem.mesh.generator` takes, `box` first.
[[nodiscard]] std::vector<std::string> generator_names();

}  // namespace poisson::assembly
