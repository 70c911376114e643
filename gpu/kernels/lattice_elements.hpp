#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/expression_code.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/core/tensor_entries.hpp"
#include "gpu/kernels/box_elements.hpp"
#include "gpu/kernels/element_tables.hpp"

#include <array>
#include <cstdint>

/// Elements of order p on the cells of lattices: what assembling needs. A lattice of n cells a side has n layers of cells in z and
/// m = p n + 1 planes of nodes; layer k of lattice l has the number l n + k, plane k the number l m + k. Cells are numbered layer
/// by layer, x fastest. Element integrals by p + 1 Gauss points per direction, Q = (p + 1)^3 in all, numbered like nodes of a cell.
/// Rows exist for p = 1. A row gathers from the cells of its own lattice, always in the same order, so that sums have the same bits
/// every time; copies of a node in other lattices have rows of their own, and the row of the unknown is the sum of all.
namespace poisson {

/// The conditions on what bounds the mesh, and the places of the nodes.
struct LatticeElements {
  LatticeView lattices;                     ///< with three nodes a side or more
  bool isoparametric = false;               ///< cells are images of all their nodes, and not of their vertices alone
  double const* coordinates = nullptr;      ///< of the nodes: [(3 lattice + direction) m^3 + node], x fastest
  double const* node_points = nullptr;      ///< where there are no such: the same by unknown, [3 unknown + direction]
  double const* lines[3] = {};              ///< of a box: coordinates of its nodes, direction by direction
  std::uint8_t const* fixed = nullptr;      ///< of the unknowns on rims: 1 where there is a Dirichlet value
  double const* fixed_value = nullptr;      ///< that value
  double const* rim_load = nullptr;         ///< of the unknowns on rims: what Neumann and Robin values contribute
  std::int32_t const* mass_face = nullptr;  ///< [6 lattice + face]: number of a face with a Robin condition, or -1
  double const* face_mass = nullptr;  ///< weight times alpha at the Gauss points of the cells at a face: [(p + 1)^2 (number n^2 +
                                      ///< n v + u) + q], u and v being the directions that follow that of the face cyclically

  [[nodiscard]] POISSON_HOST_DEVICE int points_of_direction() const { return lattices.order + 1; }
  [[nodiscard]] POISSON_HOST_DEVICE int points() const {  ///< Q
    return points_of_direction() * points_of_direction() * points_of_direction();
  }
  [[nodiscard]] std::int32_t map_order() const { return isoparametric ? lattices.order : 1; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t cells_of_layer() const { return std::int64_t{lattices.cells} * lattices.cells; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_values() const { return lattices.n_lattices * lattices.nodes_of_lattice(); }
};

/// Layers of cells whose data are in memory: number `first` ... first + count - 1. Data at the Gauss points of a cell lie at
/// [q n_cells + cell], with cells counted from the first layer's.
struct CellLayers {
  std::int64_t first = 0, count = 0;
};

/// The cells in `n_layers` layers whose numbers are listed, all of them in CellLayers; of these those with this label, where there
/// are labels of the cells of CellLayers. Arrays are in the backend's memory.
struct ListedCells {
  std::int64_t const* layers = nullptr;
  std::int64_t n_layers = 0;
  std::int32_t const* labels = nullptr;
  std::int32_t label = 0;

  /// Whether it has cell `number` of CellLayers, which is in a layer listed.
  [[nodiscard]] POISSON_HOST_DEVICE bool has(std::int64_t number) const { return labels == nullptr || labels[number] == label; }
};

/// The values of k or f at Gauss points, in the order of CellLayers; or where that is null, a constant.
struct LatticeField {
  double const* points = nullptr;
  double constant = 0;
};

/// The components of k: one; its diagonal; or the entries of a tensor.
using LatticeCoefficient = std::array<LatticeField, tensor_entries>;

/// Where k of the cells of a box is: that of component c at point q of a cell at c of_component + q of_point + cell of_cell, so
/// many numbers apart. It varies from point to point, or from cell to cell, or not at all.
struct CoefficientPlaces {
  std::int32_t components = 0;  ///< 1, or 3; 0: it is no box, or k is a full tensor
  std::int64_t of_component = 0, of_point = 0, of_cell = 0;

  [[nodiscard]] POISSON_HOST_DEVICE bool varies_in_cells() const { return of_point != 0; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t at(std::int64_t cell, int q, int c) const {
    return c * of_component + q * of_point + cell * of_cell;
  }
};

/// Where tensors at Gauss points go: six numbers for each, entries c = xx, yy, zz, xy, xz, yz.
struct LatticeTensors {
  static constexpr int cells_of_batch = 32;

  double* values = nullptr;
  bool batches = false;   ///< of the cells of the whole mesh; otherwise those of layers, [(Q c + q) n_cells + cell]
  CoefficientPlaces k{};  ///< of a box where k is diagonal: it alone goes to `values`, instead

  /// Place says where entries lie in batches: entry c at point q of a cell is at first + q of_point + c of_entry. A batch, and what
  /// a loop over the same point of its cells reads, lie together.
  struct Place {
    std::int64_t first, of_point, of_entry;
  };
  [[nodiscard]] static POISSON_HOST_DEVICE Place in_batch(int points, std::int64_t cell) {
    std::int64_t const batch = cell / cells_of_batch, of_point = 6 * cells_of_batch;
    return {batch * points * of_point + cell % cells_of_batch, of_point, cells_of_batch};
  }
  [[nodiscard]] static POISSON_HOST_DEVICE std::int64_t padded(std::int64_t n_cells) {
    return (n_cells + cells_of_batch - 1) / cells_of_batch * cells_of_batch;
  }
};

/// Values and derivatives of the trilinear functions at the Gauss points of the reference cell.
struct LatticeTables {
  double value[8][8];        ///< [q][b]
  double gradient[8][8][3];  ///< [q][b][d]
};
[[nodiscard]] LatticeTables lattice_tables();

class LatticeElementKernels {
public:
  virtual ~LatticeElementKernels() = default;

  /// values = code at the Gauss points of the cells listed. *failed becomes the lowest Q cell + q, with cells counted from the
  /// mesh's first, whose value does not pass, where that is less than what it holds. `depth` is stack_depth of the code.
  virtual void evaluate(Context& context, LatticeElements const& elements, CellLayers const& layers, ListedCells const& listed,
                        ExpressionView code, int depth, ValueCheck check, double* values, std::int64_t* failed) const = 0;

  /// Computes, for the cells listed, the tensors w det(J) J^-1 k J^-T, unless there is no array for them, and load[q
  /// n_cells + cell] = w det(J) (f - shift). k has `components` fields. *inverted becomes the lowest Q cell + q of a plane of
  /// points with a det(J) that is not positive, where q is the plane's first point; *not_definite that of a point where a full
  /// tensor is not positive definite. Written: 56 bytes a point.
  virtual void tensors(Context& context, LatticeElements const& elements, CellLayers const& layers, ListedCells const& listed,
                       int components, LatticeCoefficient const& k, LatticeField const& f, double shift,
                       LatticeTensors const& tensors, double* load, std::int64_t* inverted, std::int64_t* not_definite) const = 0;

  /// Finds, for every line of cells in x of the layers, the largest sum of |load| over a cell's points.
  virtual void largest_of_lines(Context& context, LatticeElements const& elements, CellLayers const& layers, double const* load,
                                double* largest) const = 0;

  /// vectors[a stride + cell] = the integral of what was loaded times function a, for the nodes a of the cells in `layers`, with
  /// cells counted from the mesh's first.
  virtual void element_loads(Context& context, LatticeElements const& elements, CellLayers const& layers, double const* load,
                             std::int64_t stride, double* vectors) const = 0;

  /// rhs_i = 0 where unknown i has a Dirichlet value; of others on rims rhs_i += rim_load.
  virtual void add_rim_loads(Context& context, LatticeElements const& elements, double* rhs) const = 0;

  /// Assembles rows of elements of order 1: those of the nodes in planes first_plane <= number < end_plane, whose cells are in
  /// `layers`. values[s n_values + i] are the diagonals of half_cds of all lattices one on top of another, i.e. of a box of m x m x
  /// (n_lattices m) nodes. Rows and columns of nodes with Dirichlet values keep their diagonal entry only; what is not there is
  /// -0.0. The loads, less what Dirichlet values contribute, of inner nodes go to rhs, by unknown. Those on rims, which are yet to
  /// be summed, go to rim_rhs[lattice rim.size() + place].
  virtual void rows(Context& context, LatticeElements const& elements, CellLayers const& layers, std::int64_t first_plane,
                    std::int64_t end_plane, double const* tensor, double const* load, double* values, double* rhs,
                    double* rim_rhs) const = 0;

  /// out[n_inner + i] = rim_load plus the sum of the copies of unknown i on rims, 0 where it has a Dirichlet value.
  virtual void sum_copies(Context& context, LatticeElements const& elements, double const* rim_values, double* out) const = 0;

  /// The coordinates of the vertices of cells among those of all nodes of the lattices, both in the order of LatticeProblem. 16
  /// bytes a vertex and direction, less where nodes between are in the same lines of memory.
  virtual void vertices(Context& context, LatticeView const& lattices, double const* nodes, double* vertices) const = 0;

  static LatticeElementKernels const& cpu();
  static LatticeElementKernels const& cuda();
};

/// The place, among the coordinates of all nodes, of vertex coordinate `i`: of lattices with n cells of order p a side.
[[nodiscard]] POISSON_HOST_DEVICE inline std::int64_t place_of_vertex(LatticeView const& lattices, std::int64_t i) {
  std::int64_t const p = lattices.order, m = lattices.m, n = lattices.cells + 1, of_part = i / (n * n * n);
  auto const in_part = static_cast<std::int32_t>(i - of_part * n * n * n), side = static_cast<std::int32_t>(n);
  std::int64_t const x = in_part % side, y = in_part / side % side, z = in_part / (side * side);
  return of_part * m * m * m + p * ((z * m + y) * m + x);
}
[[nodiscard]] inline std::int64_t n_vertex_coordinates(LatticeView const& lattices) {
  std::int64_t const n = lattices.cells + 1;
  return 3 * lattices.n_lattices * n * n * n;
}

}  // namespace poisson
