#pragma once

#include "assembly/mesh/counts.hpp"
#include "assembly/space/constraints.hpp"
#include "assembly/space/reference_element.hpp"
#include "gpu/core/host_vector.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace poisson::assembly {

struct Mesh;

struct BoundaryFace {
  std::int32_t cell;
  std::uint32_t boundary_id;
  int face;  ///< 0..5 in the cell's own frame: -x +x -y +y -z +z
};

/// The cells around unknown i: cells[offsets[i]] ... cells[offsets[i + 1] - 1], ascending.
struct DofCells {
  HostVector<std::int64_t> offsets;
  HostVector<std::int32_t> cells;
};

/// The continuous Q_p space on a mesh as plain arrays: unknowns of every cell, where they lie, which cells exist. The mesh itself
/// is not needed any more once this is made. Boxes need no arrays and no triangulation: everything follows from the indices.
class Space {
public:
  /// A box: unknowns numbered lexicographically (x fastest) over its (p N_x + 1) x (p N_y + 1) x (p N_z + 1) nodes.
  Space(BoxGrid const& box, ReferenceElement const& element);
  /// Anything else: unknowns in Cuthill-McKee order, cells in the order in which that visits them.
  Space(Mesh const& mesh, ReferenceElement const& element);

  int order;
  int n_local;  ///< unknowns of a cell
  std::int64_t n_cells = 0, n_dofs = 0, n_vertices = 0;
  bool isoparametric = false;  ///< cells are images under Q_p maps; otherwise trilinear
  std::optional<BoxGrid> box;
  std::array<std::int64_t, 3> box_nodes{};  ///< nodes of the box per direction
  std::set<unsigned> boundary_ids, material_ids;
  std::vector<BoundaryFace> boundary_faces;
  std::vector<std::int64_t> components;  ///< first unknown of every connected part of the mesh, and n_dofs
  std::int64_t cells_per_part;           ///< of the parts that threads work on; depends on the mesh alone

  /// Unknowns of a cell, lexicographic in its own frame.
  void dofs(std::int64_t cell, std::int32_t* out) const;
  [[nodiscard]] Point3 point(std::int64_t dof) const;
  [[nodiscard]] unsigned material(std::int64_t cell) const { return box ? 0U : material_[cell]; }
  [[nodiscard]] std::array<std::int64_t, 3> box_cell(std::int64_t cell) const {
    auto const [nx, ny, nz] = box->cells;
    return {cell % nx, cell / nx % ny, cell / (nx * ny)};
  }
  [[nodiscard]] double box_coordinate(int direction, std::int64_t node) const { return box_coordinates_[direction][node]; }
  [[nodiscard]] Point3 box_cell_size() const;

  /// Parts of consecutive cells, grouped so that two parts of one group share no unknown: groups are worked on one after the
  /// other, the parts of a group by any thread in any order, and every sum is formed in the same order. A cell has its unknowns,
  /// and those that its constrained ones are tied to.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> colour_parts(Constraints const& constraints = Constraints()) const;
  /// A cell may be listed twice when constraints have entries.
  [[nodiscard]] DofCells cells_around_dofs(Constraints const& constraints = Constraints()) const;
  /// For every unknown the lowest-numbered cell that has it.
  [[nodiscard]] HostVector<std::int32_t> owners() const;

private:
  void number_and_sort_cells();
  /// Calls action(unknown) for all unknowns that a cell writes to. `own` is scratch of n_local entries.
  template <class Action>
  void for_written(std::int64_t cell, Constraints const& constraints, std::int32_t* own, Action const& action) const;

  HostVector<std::int32_t> cell_dofs_;
  HostVector<double> points_;
  HostVector<unsigned> material_;
  std::array<std::vector<double>, 3> box_coordinates_;
};

/// The map from the reference cell to one cell: its nodes (8 vertices, or the n_local nodes of an isoparametric cell).
class CellGeometry {
public:
  explicit CellGeometry(Space const& space);
  /// `dofs` as Space::dofs gives them.
  void reset(std::int64_t cell, std::int32_t const* dofs);
  [[nodiscard]] int n_nodes() const { return n_nodes_; }
  [[nodiscard]] double const* nodes(int direction) const { return nodes_.data() + direction * n_nodes_; }
  /// Where the point is whose values of the geometry's own functions (trilinear, or Q_p) are given.
  [[nodiscard]] Point3 point(double const* values) const;
  /// d x_i / d xi_j at [3 * i + j], from the gradients of those functions: three rows of n_nodes() numbers.
  [[nodiscard]] std::array<double, 9> jacobian(double const* gradients) const;
  /// The map is affine to rounding.
  [[nodiscard]] bool affine() const;

private:
  Space const& space_;
  int n_nodes_;
  std::vector<double> nodes_;
};

/// The functions of the geometry's map at points where the element's functions were tabulated too.
[[nodiscard]] std::vector<double> const& geometry_nodes_1d(Space const& space, ReferenceElement const& element);

[[nodiscard]] double determinant(std::array<double, 9> const& m);
/// Transposed inverse times determinant.
[[nodiscard]] std::array<double, 9> cofactors(std::array<double, 9> const& m);

}  // namespace poisson::assembly
