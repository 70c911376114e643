#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/expression_code.hpp"
#include "gpu/core/field_data.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/tensor_entries.hpp"

#include <array>
#include <cstdint>

/// Trilinear elements on a box that is cut in cells, equal or graded: what assembling needs, row by row. Nodes and cells are
/// numbered lexicographically, x fastest. A row gathers from its eight cells, always in the same order: no two threads write to one
/// place, sums have the same bits every time, and a(i, j) and a(j, i) have the same bits.
namespace poisson {

/// Numbers at the points of a tensor product of coordinates, x fastest. The coordinates are in the backend's memory.
struct TensorGrid {
  std::array<std::int64_t, 3> n{};
  std::array<double const*, 3> coordinates{};
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t size() const { return n[0] * n[1] * n[2]; }
};

/// What values of an expression must be, besides finite.
enum class ValueCheck { finite, positive, not_negative };

/// Whether a value passes.
[[nodiscard]] inline POISSON_HOST_DEVICE bool passes(ValueCheck check, double value) {
  bool const finite = value - value == 0;
  return finite && (check == ValueCheck::finite || (check == ValueCheck::positive ? value > 0 : value >= 0));
}

/// The condition on a face of the box, with its data on that face: at the nodes (Dirichlet), or at two Gauss points per direction
/// of its cells (others), the lower of the two directions of the face fastest.
struct BoxFace {
  enum class Type : std::int32_t { dirichlet, neumann, robin };
  Type type{};
  std::int32_t rank = 0;          ///< at an edge the Dirichlet face of the lowest rank counts
  double const* value = nullptr;  ///< u; k du/dn; k du/dn + alpha u; null: 0
  double const* alpha = nullptr;  ///< robin only; null: 0, where others fill in the rows of that face
};

/// A box and its conditions. k and f are given at two Gauss points per direction of every cell, as a grid of 2 cells[0] x 2
/// cells[1] x planes points, or as constants.
struct BoxElements {
  std::array<std::int64_t, 3> nodes{};
  std::array<double, 3> cell{};  ///< its edges; of graded cells those of the cell that the tables are of, 1
  std::array<BoxFace, 6> faces{};
  /// `edges` and `inverse_edges` are the edges of graded cells in each direction, and 1 / edge, in the backend's memory. Null:
  /// cells are not graded.
  std::array<double const*, 3> edges{}, inverse_edges{};

  [[nodiscard]] POISSON_HOST_DEVICE bool is_graded() const { return edges[0] != nullptr; }

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_rows() const { return nodes[0] * nodes[1] * nodes[2]; }
};

/// Values of k or f in some planes of cells: `points[c]` of component c, or where that is null, constant[c]; less `shift`.
struct BoxField {
  std::array<double const*, tensor_entries> points{};
  std::array<double, tensor_entries> constant{};
  double shift = 0;              ///< of f only
  std::int64_t first_plane = 0;  ///< of cells, in z, that the points begin with
};

/// Integrals of products of derivatives of trilinear functions, from which rows are made:
/// stiffness[c][q][a][b] = w_q sum_d d_d phi_a(q) d_d phi_b(q), the sum over all directions d with one component, over d = c with
/// three; with the six of a tensor w_q d_d phi_a d_e phi_b for its entry c, where d = e, and that plus w_q d_e phi_a d_d phi_b for
/// others; load[q][a] = w_q phi_a(q). Weights include the volume of the cell, derivatives are those in space.
template <int components>
struct BoxTables {
  double stiffness[components][8][8][8];
  double load[8][8];
};
template <int components>
[[nodiscard]] BoxTables<components> box_tables(std::array<double, 3> const& cell);

class BoxElementKernels {
public:
  virtual ~BoxElementKernels() = default;

  /// values[i] = code at point i of the grid. *failed becomes the lowest i whose value does not pass, where that is less than what
  /// it holds. `depth` is stack_depth of the code, whose instructions are in the backend's memory.
  virtual void evaluate(Context& context, ExpressionView code, int depth, TensorGrid const& grid, ValueCheck check, double* values,
                        std::int64_t* failed) const = 0;

  /// The sum of n values and of their absolute values, added in a fixed order. Waits.
  [[nodiscard]] virtual FieldSums sums(Context& context, std::int64_t n, double const* values) const = 0;

  /// *failed becomes the lowest i < n where the tensor with the entries k, of whose points the first n count, is not positive
  /// definite, where that is less than what it holds. 48 bytes a point.
  virtual void check_definite(Context& context, std::int64_t n, BoxField const& k, std::int64_t* failed) const = 0;

  /// values = table[label] at the eight Gauss points of every cell, in planes of cells[0] x cells[1] of them that are laid out as
  /// those of BoxField.
  virtual void spread(Context& context, std::array<std::int64_t, 3> const& cells, std::uint8_t const* labels, double const* table,
                      double* values) const = 0;

  /// weighted[i] = values[i] times the numbers of the three directions at point i of the grid.
  virtual void weigh(Context& context, TensorGrid const& weights, double const* values, double* weighted) const = 0;

  /// values[i] += factor times the numbers of the three directions at point i of the grid. 16 bytes a point.
  virtual void add_products(Context& context, TensorGrid const& numbers, double factor, double* values) const = 0;

  /// Finds, for every line of cells in x, the largest sum of |values| at the eight points of one of its cells. `values` is a grid
  /// of 2 cells[0] x 2 cells[1] x 2 cells[2] points, `largest` has cells[1] cells[2] entries, y fastest.
  virtual void largest_of_lines(Context& context, std::array<std::int64_t, 3> const& cells, double const* values,
                                double* largest) const = 0;

  /// Finds, for every line of cells in x, the largest |value| at the points of its cells that is finite, or 0. `values` is a grid
  /// of steps cells[d] + 1 points per direction, which begins and ends with vertices of cells; `largest` is as above.
  virtual void largest_of_lattice(Context& context, std::array<std::int64_t, 3> const& cells, int steps, double const* values,
                                  double* largest) const = 0;

  /// Rows of the system in the planes first_plane <= z < end_plane of nodes. `values` are the diagonals of half_cds, n_rows values
  /// each, or null where only the right-hand side is wanted: values[s n + i] = a(i, i - offset s), with offsets in ascending order:
  /// 14 where every direction has at least three nodes. Rows and columns of Dirichlet nodes keep their diagonal entry only; what is
  /// not there is -0.0. rhs_i = the load, less what Dirichlet values contribute; 0 in rows of Dirichlet nodes. Precondition: at
  /// least three nodes per direction; `k` and `f` hold the planes of cells on both sides of those of the nodes; three or six
  /// components where cells are graded.
  virtual void rows(Context& context, BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane, int components,
                    BoxField const& k, BoxField const& f, double* values, double* rhs) const = 0;

  /// x_i = the Dirichlet value at every node that has one.
  virtual void set_dirichlet(Context& context, BoxElements const& box, double* x) const = 0;

  static BoxElementKernels const& cpu();
  static BoxElementKernels const& cuda();
};

}  // namespace poisson
