#pragma once

#include "assembly/mesh/cell_origins.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/space/constraints.hpp"
#include "assembly/space/lattice_nodes.hpp"
#include "assembly/space/lattice_numbering.hpp"
#include "assembly/space/reference_element.hpp"
#include "gpu/core/host_vector.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace poisson::assembly {

struct BoxCells;
struct Mesh;
class LatticeMesh;

/// A face of one cell on the boundary of the mesh.
struct BoundaryFace {
  std::int32_t cell;
  std::uint32_t boundary_id;
  int face;  ///< 0..5 in the cell's own frame: -x +x -y +y -z +z
};

/// A face of two cells that is part of a surface inside the mesh. Its normal leads out of the first cell: to larger x, or y where
/// it has no part along x, or z. In a part of a mesh one of the cells may be missing: -1.
struct InnerFace {
  std::array<std::int32_t, 2> cells;
  std::array<int, 2> faces;  ///< as BoundaryFace::face
  std::uint32_t id;
};

/// A face between two cells. Where they differ in level the first one is the smaller one, and its face is a quarter of the other's.
struct FaceOfTwoCells {
  std::array<std::int32_t, 2> cells;
  std::array<int, 2> faces;  ///< as BoundaryFace::face
};

/// What is known of the cells of a mesh that is refined locally, by cell; empty on other meshes, and on parts.
struct LocalCells {
  std::vector<std::int32_t> active;   ///< their numbers among deal.II's active cells, as LocalRefinement has them
  std::vector<std::uint8_t> levels;   ///< 0: a cell of the mesh before all refinements
  std::vector<FaceOfTwoCells> faces;  ///< all inside the mesh, by the first of their cells, then its face; then those at `images`
  CellOrigins origins;                ///< by number among the active cells
  /// Of the last of `faces`, which periodic conditions join: where the corners of the first cell's face are on the second's.
  std::vector<std::array<std::int32_t, 4>> images{};
  /// Those faces.
  [[nodiscard]] std::span<FaceOfTwoCells const> periodic_faces() const { return std::span(faces).last(images.size()); }
  /// What the polynomials of a face of the boundary miss of the surface that a generator means.
  struct SurfaceGap {
    double volume = 0;  ///< between them, positive outside of the face
    double area = 0;    ///< by how much that surface is larger
  };
  std::vector<SurfaceGap> gaps{};  ///< by Space::boundary_faces; empty where no surface is known beyond the mesh
  /// Of a face by its number; null: it is inside the mesh.
  [[nodiscard]] std::array<std::int32_t, 4> const* images_of(std::size_t face) const {
    std::size_t const inside = faces.size() - images.size();
    return face < inside ? nullptr : &images[face - inside];
  }
};

/// The cells that contain unknown i: cells[offsets[i]] ... cells[offsets[i + 1] - 1], ascending.
struct DofCells {
  HostVector<std::int64_t> offsets;
  HostVector<std::int32_t> cells;
};

/// What Space keeps of a part of a mesh.
struct SpaceArrays {
  HostVector<std::int32_t> cell_dofs;             ///< (p + 1)^3 of every cell
  HostVector<double> points;                      ///< 3 of every unknown; those of ghosts may come later (Space::set_points)
  HostVector<unsigned> materials;                 ///< of every cell
  std::vector<BoundaryFace> boundary_faces;       ///< by cell, then face
  std::vector<InnerFace> inner_faces;             ///< with one or both of their cells here
  std::set<unsigned> boundary_ids, material_ids;  ///< of the whole mesh
  std::int64_t n_cells_of_whole = 0;
  bool isoparametric = false;
  int map_order = 0;               ///< as Space::map_order
  HostVector<double> map_nodes{};  ///< of every cell, as Space::map_nodes
  Constraints hanging{};           ///< as Space::hanging
};

/// What Space keeps of the lattices that one of several processes has, and of other cells around its unknowns.
struct SpaceOfPieces {
  LatticeLayout layout;  ///< of the lattices: own unknowns come first, then those of others; some of these are in other cells only
  std::shared_ptr<LatticeNodes> nodes;            ///< of the lattices
  std::int64_t n_own = 0;                         ///< unknowns; the others' nodes come later (Space::set_points)
  HostVector<std::int32_t> cell_dofs;             ///< (p + 1)^3 of every other cell
  HostVector<unsigned> materials;                 ///< of every lattice, then of every other cell
  std::vector<BoundaryFace> boundary_faces;       ///< of the lattices' cells, then of others; by cell, then face
  std::set<unsigned> boundary_ids, material_ids;  ///< of the whole mesh
  std::int64_t n_cells_of_whole = 0;
  bool isoparametric = false;
  /// Numbers in the whole mesh of the first cell of every lattice, and of every other cell; and how many cells on those of the next
  /// line and plane of a lattice are.
  std::vector<std::int64_t> first_cells;
  std::vector<std::int32_t> other_cells;
  std::int64_t to_next_line = 0, to_next_plane = 0;
};

/// Where cells and unknowns are in a box of which void left them: their numbers in it, x fastest, which ascend.
struct PlacesInBox {
  BoxGrid box;
  HostVector<std::int32_t> cells, nodes;
};

/// The continuous Q_p space on a mesh, as plain arrays: the unknowns of each cell, the coordinates of their nodes, materials and
/// boundary faces. The mesh is not needed after construction. A box needs no arrays and no triangulation: all follows from indices.
class Space {
public:
  /// A box: unknowns numbered lexicographically (x fastest) over its (p N_x + 1) x (p N_y + 1) x (p N_z + 1) nodes.
  Space(BoxGrid const& box, ReferenceElement const& element);
  /// The part of a box that has `cells` cells per direction from `first` on, with the ids and materials of the whole.
  Space(Space const& box, ReferenceElement const& element, std::array<std::int64_t, 3> const& first,
        std::array<std::int64_t, 3> const& cells);
  /// Cells of a box that void left: they and the unknowns numbered lexicographically (x fastest) in the box. Precondition: their
  /// unknowns can be numbered by 32 bits.
  Space(BoxCells cells, ReferenceElement const& element);
  /// Any mesh: unknowns in Cuthill-McKee order, cells in the order in which that search visits them.
  Space(Mesh const& mesh, ReferenceElement const& element);
  /// A globally refined mesh without a fine triangulation: the same space. Lattices of four cells a side or more have their cells
  /// together, lexicographically (x fastest), and unknowns are numbered as LatticeNumbering says; those of smaller ones as above.
  /// Of the former nothing is stored but tables of rims, and the nodes that the mesh has made. Precondition: the mesh has no
  /// obstacle, and was made for this element. `shape`: the same mesh with the nodes of the cells' maps, where these are not the
  /// element's. `make`: where the mesh has made no nodes, what makes those on faces of its lattices; `fill`: see LatticeNodes.
  Space(LatticeMesh mesh, ReferenceElement const& element, LatticeMesh const* shape = nullptr, MakeLatticeFaces const& make = {},
        FillLattices const& fill = {});

  /// These cells (ascending) of another space that is no box, with their unknowns in this order: the part of a mesh that one of
  /// several processes works on. Unknowns are numbered anew, by their place in the list. Precondition: the list has all unknowns of
  /// the cells, those that hanging nodes among them depend on, and each once.
  Space(Space const& whole, std::span<std::int32_t const> cells, std::span<std::int32_t const> unknowns);
  /// The arrays of such a part.
  [[nodiscard]] SpaceArrays arrays_of(std::span<std::int32_t const> cells, std::span<std::int32_t const> unknowns) const;

  /// A part from its arrays.
  Space(ReferenceElement const& element, SpaceArrays arrays);
  /// A part of lattices. Their cells come first, lexicographically (x fastest), then the others; unknowns are those of the layout.
  /// As of a whole mesh of lattices, their cells and unknowns are not listed.
  Space(ReferenceElement const& element, SpaceOfPieces pieces);
  /// Of such a part the lattices without other cells. Of others' unknowns it has ghosts_of_lattices(), in this order.
  [[nodiscard]] Space lattices_alone() const;
  /// The unknowns of others, of such a part, that its lattices have; ascending.
  [[nodiscard]] std::vector<std::int32_t> ghosts_of_lattices() const;

  /// Lattices of fewer refinements have most of their nodes on rims; their unknowns are numbered as those of any other mesh.
  static constexpr int fewest_refinements_of_lattices = 2;

  int order;
  int n_local;  ///< unknowns of a cell: (order + 1)^3
  std::int64_t n_cells = 0, n_dofs = 0, n_vertices = 0;
  bool isoparametric = false;  ///< cells are images under maps of a higher degree; otherwise trilinear
  /// The degree of these maps, where a mesh file gives cells shapes of a higher one than the element's; 0: they are Q_p, and go
  /// through the nodes of the unknowns.
  int map_order = 0;
  std::optional<BoxGrid> box;
  std::array<std::int64_t, 3> box_nodes{};      ///< nodes of the box per direction
  bool sides_have_ids = true;                   ///< of a box: its side f has the boundary id f
  std::shared_ptr<PlacesInBox const> in_box{};  ///< of a whole mesh that void left of a box, with order 1; else null
  std::set<unsigned> boundary_ids, material_ids;
  std::vector<BoundaryFace> boundary_faces;
  std::vector<InnerFace> inner_faces;
  /// Of a mesh that is refined locally: u at hanging nodes, those of a smaller cell on a face or an edge of a larger one, from u at
  /// nodes of the larger ones, so that u is continuous; closed. Size 0 on other meshes.
  Constraints hanging;
  LocalCells local;
  std::optional<LatticeNumbering> lattices;  ///< where unknowns are numbered by lattices
  std::int32_t n_components = 1;             ///< connected components of the mesh; of a part of a mesh 1
  std::int64_t n_cells_of_whole = 0;         ///< of the mesh that this is a part of; 0: it is all of it
  std::int64_t cells_per_part;               ///< size of the parts that threads work on; depends on the mesh only

  /// Writes the n_local unknowns of a cell, lexicographic (x fastest) in its own frame.
  void dofs(std::int64_t cell, std::int32_t* out) const;
  /// Where map_order > 0: coordinates of the (map_order + 1)^3 Gauss-Lobatto nodes of a cell's map, direction by direction.
  [[nodiscard]] double const* map_nodes(std::int64_t cell) const { return map_nodes_.data() + cell * map_size(); }
  [[nodiscard]] std::int64_t map_size() const { return std::int64_t{3} * (map_order + 1) * (map_order + 1) * (map_order + 1); }
  [[nodiscard]] std::vector<double> const& map_nodes_1d() const { return map_nodes_1d_; }
  /// Calls action(unknown, weight) for the unknowns that u at an unknown follows from: itself, unless it is at a hanging node.
  template <class Action>
  void for_free(std::int32_t unknown, Action const& action) const {
    if (hanging.size() == 0 || !hanging.constrained(unknown)) {
      action(unknown, 1.0);
      return;
    }
    for (auto const& [free, weight] : hanging.row(unknown))
      action(free, weight);
  }
  /// The unknowns at the vertices of a face of a cell, ascending: the same from both of its cells.
  [[nodiscard]] std::array<std::int32_t, 4> face_vertices(std::int64_t cell, int face) const;
  /// Coordinates of the node of an unknown.
  [[nodiscard]] Point3 point(std::int64_t dof) const;
  /// Where the unknowns are numbered by lattices, here and below: the nodes of the lattices.
  [[nodiscard]] std::shared_ptr<LatticeNodes const> nodes_of_lattices() const { return nodes_of_lattices_; }
  /// The first node of a cell of a lattice in them.
  [[nodiscard]] LatticeNodes::FirstNode first_node(std::int64_t cell) const;
  /// The nodes of the last unknowns, 3 coordinates each, that are in memory as such: of all where no lattices number them.
  [[nodiscard]] std::span<double const> listed_points() const { return points_; }
  /// Places the nodes of unknowns from `first` on, of a part from its arrays; 3 coordinates each.
  void set_points(std::int64_t first, std::span<double const> coordinates);
  /// Of a part: the number of a cell in the whole mesh, where that has another order; else its own number.
  [[nodiscard]] std::int64_t order_of(std::int64_t cell) const {
    if (first_cells_.empty())
      return cell;
    if (cell >= n_in_lattices_)
      return other_cells_[cell - n_in_lattices_];
    auto const [lattice, x, y, z] = lattices->cell(cell);
    return first_cells_[lattice] + z * to_next_plane_ + y * to_next_line_ + x;
  }
  /// Of a part of lattices: how many unknowns are its own, the first ones.
  [[nodiscard]] std::int64_t n_own() const { return first_listed_; }
  /// How many cells are those of lattices, the first ones.
  [[nodiscard]] std::int64_t n_in_lattices() const { return n_in_lattices_; }
  /// The connected component in which a cell lies.
  [[nodiscard]] std::int32_t component(std::int64_t cell) const;
  /// A cell of a component.
  [[nodiscard]] std::int64_t cell_of_component(std::int32_t component) const;
  [[nodiscard]] unsigned material(std::int64_t cell) const {
    if (material_.empty())
      return 0U;
    return material_[cell < n_in_lattices_ ? cell >> material_shift_ : cell - not_in_materials_];
  }
  /// Whether each lattice has one material, because cells have none of their own.
  [[nodiscard]] bool has_materials_of_lattices() const { return lattices && material_shift_ > 0; }
  /// Boundary face, or cell, i gets the id first + entries[i]; -1 leaves what there is. boundary_ids and material_ids are then
  /// those that occur.
  void set_boundary_ids(std::span<std::int32_t const> entries, unsigned first);
  void set_materials(std::span<std::int32_t const> entries, unsigned first);
  /// Gives the cells of a box, or of a part of it, the labels of an image as materials; every voxel was refined so many times.
  /// material_ids are then all labels of the image.
  void set_labels(LabelImage const& image, int refinements);
  /// Boxes only, here and below: the indices (i, j, k) of a cell.
  [[nodiscard]] std::array<std::int64_t, 3> box_cell(std::int64_t cell) const {
    auto const [nx, ny, nz] = box->cells;
    return {cell % nx, cell / nx % ny, cell / (nx * ny)};
  }
  [[nodiscard]] double box_coordinate(int direction, std::int64_t node) const { return box_coordinates_[direction][node]; }
  /// The edges of a cell.
  [[nodiscard]] Point3 box_cell_size(std::array<std::int64_t, 3> const& cell) const {
    return {box_width(0, cell[0]), box_width(1, cell[1]), box_width(2, cell[2])};
  }
  /// The edge of the i-th cell in a direction.
  [[nodiscard]] double box_width(int direction, std::int64_t i) const {
    auto const& widths = box_widths_[direction];
    return widths[widths.size() == 1 ? 0 : i];
  }

  /// A coloring of the parts of consecutive cells: the parts of one color, listed together, share no unknown. Colors are processed
  /// one after the other, the parts of a color by any threads, and every sum is formed in the same order. The unknowns of a cell
  /// include those that its constrained unknowns depend on.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> color_parts(Constraints const& constraints = Constraints()) const;
  /// The cells of each unknown, as in color_parts. A cell may be listed twice for an unknown when constraints have entries.
  [[nodiscard]] DofCells cells_around_dofs(Constraints const& constraints = Constraints()) const;
  /// Finds for each unknown the cell with the lowest number that contains it.
  [[nodiscard]] HostVector<std::int32_t> owners() const;

  /// Calls visit(cell) for all cells that may hold an unknown that is on a boundary or on a surface inside: of lattices those on
  /// their rims. Parts, 0 to n_parts_on_rims() - 1, are for threads.
  [[nodiscard]] std::int64_t n_parts_on_rims() const { return layers_of_lattices() + n_parts_of_others(); }
  template <class Visit>
  void for_cells_on_rims(std::int64_t part_number, Visit const& visit) const;

private:
  /// Cells from `first` to that of the next run lie in one connected component.
  struct Run {
    std::int64_t first;
    std::int32_t component;
  };

  Space(int order_of_element, int n_nodes, SpaceArrays arrays);
  void take_maps(LatticeMesh const& shape);
  /// Lists the unknowns of all cells and the coordinates of all unknowns in place of formulas.
  void leave_lattices();
  /// Gives every cell an entry of its own in material_.
  void list_materials();
  /// Makes inner_faces of the faces of cells, each of which is there from both sides.
  void set_inner_faces(std::vector<BoundaryFace> const& sides);
  /// Whether the normal out of a cell leads to larger x (y, z).
  [[nodiscard]] bool points_up(BoundaryFace const& face) const;
  void number_and_sort_cells();
  void renumber_local(std::vector<std::int32_t> const& new_dof, std::vector<std::int32_t> const& order_of_cells,
                      std::vector<std::int32_t> const& new_cell);
  /// Places hanging nodes on the faces and edges of the larger cells, so that curved meshes have no gaps there.
  void place_hanging_nodes();
  void find_components(LatticeTopology const& topology, std::int64_t cells_of_lattice);
  /// Calls action(unknown) for all unknowns that a cell writes to. `own` is scratch of n_local entries.
  template <class Action>
  void for_written(std::int64_t cell, Constraints const& constraints, std::int32_t* own, Action const& action) const;

  /// Layers of the cells of lattices, and parts of cells_per_part of the others.
  [[nodiscard]] std::int64_t layers_of_lattices() const;
  [[nodiscard]] std::int64_t n_parts_of_others() const { return (n_cells - n_in_lattices_ + cells_per_part - 1) / cells_per_part; }

  HostVector<std::int32_t> cell_dofs_;  ///< of cells that are not in lattices, and of no box
  HostVector<double> points_;           ///< of unknowns from first_listed_ on; of no box
  std::int64_t n_in_lattices_ = 0;      ///< cells
  std::int64_t first_listed_ = 0;       ///< of the unknowns; the nodes of those before are in nodes_of_lattices_
  std::shared_ptr<LatticeNodes> nodes_of_lattices_;
  HostVector<unsigned> material_;  ///< of 2^material_shift_ cells of lattices each, then of every other cell
  int material_shift_ = 0;
  std::int64_t not_in_materials_ = 0;      ///< how many more cells there are in lattices than entries for them
  std::vector<std::int64_t> first_cells_;  ///< as in SpaceOfPieces
  std::vector<std::int32_t> other_cells_;
  std::int64_t to_next_line_ = 0, to_next_plane_ = 0;
  HostVector<double> map_nodes_;
  std::vector<double> map_nodes_1d_;
  std::vector<Run> runs_{{0, 0}};  ///< ascending
  std::array<std::vector<double>, 3> box_coordinates_;
  std::array<std::vector<double>, 3> box_widths_;  ///< of cells; one where they are equal
};

template <class Visit>
void Space::for_cells_on_rims(std::int64_t part_number, Visit const& visit) const {
  std::int64_t const layers = layers_of_lattices();
  if (part_number >= layers) {
    std::int64_t const begin = n_in_lattices_ + (part_number - layers) * cells_per_part;
    for (std::int64_t cell = begin; cell < std::min(begin + cells_per_part, n_cells); ++cell)
      visit(cell);
    return;
  }
  std::int64_t const n = lattices->layout.cells, z = part_number % n;
  auto const at_end = [n](std::int64_t i) { return i == 0 || i == n - 1; };
  for (std::int64_t y = 0; y < n; ++y) {
    std::int64_t const step = at_end(y) || at_end(z) ? 1 : std::max<std::int64_t>(n - 1, 1);
    for (std::int64_t x = 0; x < n; x += step)
      visit((part_number * n + y) * n + x);
  }
}

/// The map from the reference cell to one cell: its nodes (8 vertices, the n_local nodes of an isoparametric cell, or
/// those of Space::map_nodes).
class CellGeometry {
public:
  explicit CellGeometry(Space const& space);
  /// `dofs` as Space::dofs gives them.
  void reset(std::int64_t cell, std::int32_t const* dofs);
  [[nodiscard]] int n_nodes() const { return n_nodes_; }
  [[nodiscard]] double const* nodes(int direction) const { return nodes_.data() + direction * n_nodes_; }
  /// The image of a reference point; `values` are those of the n_nodes() geometry functions (trilinear, or Q_p) there.
  [[nodiscard]] Point3 point(double const* values) const;
  /// The Jacobian matrix, dx_i / dxi_j at [3 * i + j], from the reference gradients of these functions: 3 rows of n_nodes() values.
  [[nodiscard]] std::array<double, 9> jacobian(double const* gradients) const;
  /// The mean of the nodes.
  [[nodiscard]] Point3 middle() const;
  /// Whether the map is affine up to rounding.
  [[nodiscard]] bool affine() const;

private:
  Space const& space_;
  int n_nodes_;
  std::vector<double> nodes_;
  /// On lattices: of the nodes, counted from the first one of the cell, by LatticeNodes::FirstNode::steps.
  std::array<std::vector<std::int64_t>, 4> places_;
};

/// One-dimensional nodes of the geometry functions: 0 and 1, or those of the element on isoparametric cells, or of
/// Space::map_nodes.
[[nodiscard]] std::vector<double> const& geometry_nodes_1d(Space const& space, ReferenceElement const& element);

/// The determinant of a 3 x 3 matrix, row-major.
[[nodiscard]] double determinant(std::array<double, 9> const& m);
/// The cofactor matrix det(m) m^-T of a 3 x 3 matrix, row-major.
[[nodiscard]] std::array<double, 9> cofactors(std::array<double, 9> const& m);

}  // namespace poisson::assembly
