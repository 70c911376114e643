#pragma once

#include "assembly/dealii/scanner.hpp"
#include "assembly/mesh/counts.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deal.II/base/point.h>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The mesh of a file before deal.II checks and orders it. Shared by files.cpp, mesh_groups.cpp and the readers (one per format)
/// only.
namespace poisson::assembly {

struct RawMesh {
  struct Cell {
    std::array<int, 8> vertices{};  ///< in deal.II's order: x runs fastest, then y, then z
    std::int64_t material = 0;      ///< the plain number that the format has for a cell; 0 as well where it has none
    std::int64_t line = 0;          ///< line of the file, from 1
  };
  struct Quad {
    std::array<int, 4> vertices{};  ///< in cyclic order around the face
    std::int64_t boundary = 0;      ///< the plain number that the format has for a face; 0 as well where it has none
    std::int64_t line = 0;
  };
  /// A named or numbered group of cells, faces or nodes. A cell or a face belongs to all groups that list it, and to that of its
  /// plain number unless this is 0. Two entries with the same name and the same id are one group.
  struct Group {
    std::string name;                  ///< empty: it has none
    std::int64_t id = -1;              ///< the file's own; -1: it gets a free one, from 1 on. Never one made from its name
    std::vector<std::size_t> members;  ///< indices of `cells`, `quads` or `vertices`; one may be there several times
  };
  std::vector<dealii::Point<3>> vertices;
  /// One may be listed several times, with other numbers: it belongs to the groups of all of these. Quads may lie on the boundary,
  /// or between two cells (a surface inside the mesh).
  std::vector<Cell> cells;
  std::vector<Quad> quads;
  std::vector<Group> cell_groups, quad_groups;
  /// Every boundary face whose four corners are in such a group belongs to it. A name that quads have too counts for these only.
  std::vector<Group> node_groups;
  /// The order p of the shape of curved cells. shape_nodes has for every cell its (p + 1)^3 equidistant nodes, in the cell's frame,
  /// x fastest.
  int order = 1;
  std::vector<dealii::Point<3>> shape_nodes;                           ///< empty when p = 1
  std::map<std::int64_t, std::string> boundary_names, material_names;  ///< of plain numbers, where the file has names
  std::vector<PeriodicPair> periodic;                                  ///< by plain numbers
  std::optional<SurfaceFit> surface;                                   ///< that the cells are the inside of
  std::vector<std::string> notes;  ///< what was passed over, by name and count, changed or chosen; without the name of the file
};

/// How a format lists the nodes of a hexahedron of order p: the place of each among the (p + 1)^3 nodes, x fastest. The corners
/// come first, around the bottom, then around the top. Where only corners and edges are listed (20 nodes, p = 2), the others
/// follow.
struct HexahedronNodes {
  int order = 1;
  std::vector<int> places;
};
/// Gmsh's order: edges, faces, then the inside, each as an element of its own of order p - 2.
[[nodiscard]] HexahedronNodes gmsh_hexahedron(int order);
/// VTK's Lagrange cell, and for p = 2 its triquadratic one.
[[nodiscard]] HexahedronNodes vtk_hexahedron(int order);
/// The 20 nodes of Gmsh (edges as in its complete element), VTK and Abaqus (bottom, top, upright), Exodus (bottom, upright, top).
[[nodiscard]] HexahedronNodes gmsh_hexahedron_20();
[[nodiscard]] HexahedronNodes vtk_hexahedron_20();
[[nodiscard]] HexahedronNodes exodus_hexahedron_20();
[[nodiscard]] HexahedronNodes exodus_hexahedron_27();
/// C3D27: the 20 nodes, the centre, then bottom, top, and the sides in turn.
[[nodiscard]] HexahedronNodes abaqus_hexahedron_27();

/// Collects vertices and elements, which a file refers to by arbitrary numbers.
class RawMeshBuilder {
public:
  explicit RawMeshBuilder(MeshText const& text) : text_(text) {}

  void add_vertex(std::int64_t number, double x, double y, double z);
  /// Vertices in the order of nearly all formats: around the bottom, then around the top.
  void add_hexahedron(std::array<std::int64_t, 8> const& numbers, std::int64_t material);
  /// One of the order `nodes.order`; `numbers` has as many entries as nodes.places. All hexahedra of a file must be listed alike.
  void add_hexahedron(std::span<std::int64_t const> numbers, HexahedronNodes const& nodes, std::int64_t material);
  void add_quad(std::array<std::int64_t, 4> const& numbers, std::int64_t boundary);
  /// Notes an element of an unsupported type, whose name says its shape (tetrahedron, prism or wedge, pyramid, ...); finish()
  /// reports those of dimension 3 in its error, and how to get hexahedra in their place. Faces beside hexahedra become a note.
  void add_unsupported(std::string const& name, int dimension);

  /// The index in RawMesh::vertices of the node with this number, for node groups.
  [[nodiscard]] std::size_t vertex_of(std::int64_t number) const { return static_cast<std::size_t>(vertex(number)); }

  [[nodiscard]] bool has_unsupported() const noexcept { return !unsupported_.empty(); }

  [[nodiscard]] RawMesh& mesh() noexcept { return mesh_; }
  /// The mesh. Throws InputError when it has unsupported elements.
  [[nodiscard]] RawMesh finish();

private:
  int vertex(std::int64_t number) const;

  MeshText const& text_;
  RawMesh mesh_;
  std::unordered_map<std::int64_t, int> vertex_of_number_;
  std::size_t nodes_of_hexahedra_ = 0;  ///< of each; 0 before the first
  struct Unsupported {
    std::string name;
    int dimension = -1;
    std::int64_t count = 0, line = 0;
  };
  std::vector<Unsupported> unsupported_;
};

/// The number at the end of a name such as "Material-2" or "EB1"; -1 without one.
[[nodiscard]] std::int64_t trailing_number(std::string_view name);

/// Readers. They throw InputError, with the line, for anything wrong in the text. deal.II's readers are not used: in a release
/// build they read beyond the end of truncated or damaged files, and report no line. Tests compare both on the meshes that both
/// read.
[[nodiscard]] RawMesh read_gmsh(MeshText& text);
[[nodiscard]] RawMesh read_abaqus(MeshText& text);
[[nodiscard]] RawMesh read_ucd(MeshText& text);
[[nodiscard]] RawMesh read_medit(MeshText& text);
[[nodiscard]] RawMesh read_mfem(MeshText& text);
[[nodiscard]] RawMesh read_unv(MeshText& text);
/// A closed surface of triangles, as text or binary: the voxels whose centre is inside, of spec.size, or spec.cells in the box
/// around it. The material is 0, and so is the boundary.
[[nodiscard]] RawMesh read_stl(MeshText& text, MeshSpec const& spec);
/// These read with libraries, and read_in_other_process calls them: VTK's legacy files, VTU and VTKHDF by VTK, Exodus II by netCDF.
[[nodiscard]] RawMesh read_vtk(MeshText& text, MeshSpec const& spec);
[[nodiscard]] RawMesh read_vtu(MeshText& text, MeshSpec const& spec);
/// `file` is what VTK reads: that of the text, or one with a step of it.
[[nodiscard]] RawMesh read_vtkhdf(MeshText& text, MeshSpec const& spec, std::string const& file);
[[nodiscard]] RawMesh read_exodus(MeshText& text);

}  // namespace poisson::assembly
