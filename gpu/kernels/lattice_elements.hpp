#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/expression_code.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/kernels/box_elements.hpp"

#include <array>
#include <cstdint>

/// Trilinear elements on the cells of lattices: what assembling needs. A lattice of n cells a side has n layers of cells in z and m
/// = n + 1 planes of nodes; layer k of lattice l has the number l n + k, plane k the number l m + k. A row gathers from the cells
/// of its own lattice, always in the same order, so that sums have the same bits every time; copies of a node in other lattices
/// have rows of their own, and the row of the unknown is the sum of all.
namespace poisson {

/// The conditions on what bounds the mesh, and the places of the nodes.
struct LatticeElements {
  LatticeView lattices;                     ///< of order 1, with three nodes a side or more
  double const* coordinates = nullptr;      ///< of the nodes: [(3 lattice + direction) m^3 + node], x fastest
  std::uint8_t const* fixed = nullptr;      ///< of the unknowns on rims: 1 where there is a Dirichlet value
  double const* fixed_value = nullptr;      ///< that value
  double const* rim_load = nullptr;         ///< of the unknowns on rims: what Neumann and Robin values contribute
  std::int32_t const* mass_face = nullptr;  ///< [6 lattice + face]: number of a face with a Robin condition, or -1
  double const* face_mass = nullptr;  ///< weight times alpha at the Gauss points of the cells at a face: [4 (number n^2 + n v + u)
                                      ///< + q], u and v being the directions that follow that of the face cyclically

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t cells_of_layer() const { return std::int64_t{lattices.cells} * lattices.cells; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_values() const { return lattices.n_lattices * lattices.nodes_of_lattice(); }
};

/// Layers of cells whose data are in memory: number `first` ... first + count - 1. Data at the eight Gauss points of a cell lie at
/// [q n_cells + cell], with cells counted from the first layer's.
struct CellLayers {
  std::int64_t first = 0, count = 0;
};

/// The values of k or f at Gauss points, in the order of CellLayers; or where that is null, a constant.
struct LatticeField {
  double const* points = nullptr;
  double constant = 0;
};

/// Values and derivatives of the trilinear functions at the Gauss points of the reference cell, and the weight of a point.
struct LatticeTables {
  double value[8][8];        ///< [q][b]
  double gradient[8][8][3];  ///< [q][b][d]
  static constexpr double weight = 1. / 8;
};
[[nodiscard]] LatticeTables lattice_tables();

class LatticeElementKernels {
public:
  virtual ~LatticeElementKernels() = default;

  /// values = code at the Gauss points of the cells in the layers listed (`n_listed` numbers in the backend's memory, all of them
  /// in `layers`). *failed becomes the lowest 8 cell + q, with cells counted from the mesh's first, whose value does not pass,
  /// where that is less than what it holds. `depth` is stack_depth of the code.
  virtual void evaluate(Context& context, LatticeElements const& elements, CellLayers const& layers, std::int64_t const* listed,
                        std::int64_t n_listed, ExpressionView code, int depth, ValueCheck check, double* values,
                        std::int64_t* failed) const = 0;

  /// Of the cells in the layers listed: tensor[(8 c + q) n_cells + cell] = w det(J) J^-1 k J^-T, c being xx, yy, zz, xy, xz, yz;
  /// and load[q n_cells + cell] = w det(J) (f - shift). k has `components` fields: one, or its diagonal. `tensor` may be null.
  /// *failed becomes the lowest 8 cell + q where det(J) is not positive. Written: 448 bytes a cell.
  virtual void tensors(Context& context, LatticeElements const& elements, CellLayers const& layers, std::int64_t const* listed,
                       std::int64_t n_listed, int components, std::array<LatticeField, 3> const& k, LatticeField const& f,
                       double shift, double* tensor, double* load, std::int64_t* failed) const = 0;

  /// For every line of cells in x of the layers the largest sum of |load| over a cell's points.
  virtual void largest_of_lines(Context& context, LatticeElements const& elements, CellLayers const& layers, double const* load,
                                double* largest) const = 0;

  /// Rows of the nodes in planes first_plane <= number < end_plane, whose cells are in `layers`. values[s n_values + i]: the
  /// diagonals of half_cds of all lattices one on top of another, i.e. of a box of m x m x (n_lattices m) nodes. Rows and columns
  /// of nodes with Dirichlet values keep their diagonal entry only; what is not there is -0.0. The loads, less what Dirichlet
  /// values contribute, of inner nodes go to rhs, by unknown; those on rims, which are yet to be summed, to rim_rhs[lattice
  /// rim.size() + place].
  virtual void rows(Context& context, LatticeElements const& elements, CellLayers const& layers, std::int64_t first_plane,
                    std::int64_t end_plane, double const* tensor, double const* load, double* values, double* rhs,
                    double* rim_rhs) const = 0;

  /// out[n_inner + i] = rim_load plus the sum of the copies of unknown i on rims, 0 where it has a Dirichlet value.
  virtual void sum_copies(Context& context, LatticeElements const& elements, double const* rim_values, double* out) const = 0;

  static LatticeElementKernels const& cpu();
  static LatticeElementKernels const& cuda();
};

}  // namespace poisson
