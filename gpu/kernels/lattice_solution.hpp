#pragma once

#include "gpu/core/cofactors.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/expression_code.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/tensor_entries.hpp"
#include "gpu/kernels/box_solution.hpp"
#include "gpu/kernels/lattice_elements.hpp"
#include "gpu/kernels/lattice_places.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

/// What is asked of a solution u of elements of order p on lattices, from its values at the unknowns. Pointers are in the backend's
/// memory. Sums are added in a fixed order. Cells, nodes and coordinates are those of LatticeElements.
namespace poisson {

/// An expression of x, y and z, or a constant.
struct PlaceFunction {
  ExpressionView code;     ///< without instructions: it is `constant`
  std::int32_t depth = 0;  ///< stack_depth of the code
  double constant = 0;
  [[nodiscard]] POISSON_HOST_DEVICE bool is_constant() const { return code.size == 0; }
};

/// n Gauss points of [0, 1]: their weights, and one-dimensional functions at these points, one table after the other. Those of the
/// element are of order p, those of the cells' maps of order g.
struct LatticeQuadrature {
  std::int32_t n = 0, order = 1, map_order = 1;  ///< n > p
  double const* tables = nullptr;

  [[nodiscard]] POISSON_HOST_DEVICE int size() const { return map_derivative() + n * (map_order + 1); }
  // Where a table begins; those of functions have entry [q functions + a] of function a at point q.
  [[nodiscard]] POISSON_HOST_DEVICE int weight() const { return 0; }
  [[nodiscard]] POISSON_HOST_DEVICE int derivative() const { return n; }  ///< of the functions that are 1 at one of the points
  [[nodiscard]] POISSON_HOST_DEVICE int value() const { return n + n * n; }
  [[nodiscard]] POISSON_HOST_DEVICE int map_value() const { return value() + n * (order + 1); }
  [[nodiscard]] POISSON_HOST_DEVICE int map_derivative() const { return map_value() + n * (map_order + 1); }
};

/// Some lattices: the `count` ones that are listed, or all where the list is null. Their cells are counted in this order; those
/// with another label do not belong to it, where there are labels of all cells of the mesh.
struct LatticeList {
  std::int32_t const* numbers = nullptr;
  std::int64_t count = 0;
  std::int32_t const* labels = nullptr;
  std::int32_t label = 0;
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t operator()(std::int64_t i) const { return numbers != nullptr ? numbers[i] : i; }
  /// Whether it has this cell, of lattices of so many.
  [[nodiscard]] POISSON_HOST_DEVICE bool has(std::int64_t cell, std::int64_t cells_of_lattice) const {
    return labels == nullptr || labels[(*this)(cell / cells_of_lattice) * cells_of_lattice + cell % cells_of_lattice] == label;
  }
};

/// v = u - (exact - shift). k has one component, its diagonal, or the entries of a tensor.
struct LatticeIntegrand {
  double const* u = nullptr;  ///< at the unknowns; null: 0
  PlaceFunction exact;
  double shift = 0;
  std::int32_t components = 1;
  std::array<PlaceFunction, tensor_entries> k{};
};

/// Keeps the lowest of the numbers found; a negative one is none.
inline void keep_lower(std::int64_t& lowest, std::int64_t found) {
  if (found >= 0 && (lowest < 0 || found < lowest))
    lowest = found;
}

/// Integrals over cells, and extremes in them.
struct LatticeSums {
  double volume = 0, values = 0, squares = 0, gradients = 0;          ///< of 1, v, v^2 and grad v . k grad v
  double largest = 0;                                                 ///< |v| at the Gauss points
  double low = std::numeric_limits<double>::infinity(), high = -low;  ///< of u at the nodes
  /// The lowest Q cell + q, of Q = n^3 points a cell, where det(J) is not positive, and the lowest one where `exact` is not finite;
  /// -1: there is none.
  std::int64_t inverted = -1, not_finite = -1;

  void add(LatticeSums const& other) {
    volume += other.volume;
    values += other.values;
    squares += other.squares;
    gradients += other.gradients;
    largest = std::max(largest, other.largest);
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    keep_lower(inverted, other.inverted);
    keep_lower(not_finite, other.not_finite);
  }
};

/// What is found at the nodes of the unknowns.
struct NodeErrors {
  double largest = 0;            ///< |u - (exact - shift)|
  std::int64_t not_finite = -1;  ///< the first unknown at whose node `exact` is not finite; -1: there is none
};

class LatticeSolutionKernels {
public:
  virtual ~LatticeSolutionKernels() = default;

  /// Over the cells first <= number < end of this list: v is interpolated at the Gauss points of a cell, and its derivatives
  /// are those of the polynomial through these values. Waits. Bytes of a cell: 8 p^3 of u and 24 g^3 of coordinates.
  [[nodiscard]] virtual LatticeSums sums(Context& context, LatticeElements const& elements, LatticeList const& lattices,
                                         LatticeQuadrature const& quadrature, LatticeIntegrand const& integrand, std::int64_t first,
                                         std::int64_t end) const = 0;

  /// At the unknowns of which is known where their nodes are, here and below. Waits. 32 bytes an unknown.
  [[nodiscard]] virtual NodeErrors errors_at_nodes(Context& context, LatticeElements const& elements, PlaceFunction const& exact,
                                                   double shift, double const* u) const = 0;

  /// Of the unknowns with u <= low the one whose node comes first, by z, then y, then x; and of those with u >= high. Waits. 8
  /// bytes an unknown, and 24 more where u is so low or high.
  [[nodiscard]] virtual ExtremeNodes first_places(Context& context, LatticeElements const& elements, double const* u, double low,
                                                  double high) const = 0;

  /// Where the node of an unknown is. Waits.
  [[nodiscard]] virtual std::array<double, 3> place(Context& context, LatticeElements const& elements,
                                                    std::int64_t unknown) const = 0;

  /// Where the (p + 1)^3 nodes of a cell are, 3 coordinates each, x fastest. Waits.
  [[nodiscard]] virtual std::vector<double> nodes_of_cell(Context& context, LatticeElements const& elements,
                                                          LatticeList const& lattices, std::int64_t cell) const = 0;

  static LatticeSolutionKernels const& cpu();
  static LatticeSolutionKernels const& cuda();
};

/// What both backends do cell by cell and node by node.
namespace lattice_solution {

/// A cell: where its first node is in the coordinates, and what names its unknowns.
struct CellNodes {
  std::int64_t lattice;
  std::int32_t cell_at[3], i[3];  ///< of the cell, and of its first node; of a box among all of its nodes

  POISSON_HOST_DEVICE CellNodes(LatticeElements const& elements, LatticeList const& lattices, std::int64_t cell) {
    std::int64_t const n = elements.lattices.cells, of_lattice = n * n * n;
    auto const in_lattice = static_cast<std::int32_t>(cell % of_lattice), side = elements.lattices.cells;
    std::int32_t const p = elements.lattices.order;
    lattice = lattices(cell / of_lattice);
    cell_at[0] = in_lattice % side;
    cell_at[1] = in_lattice / side % side;
    cell_at[2] = in_lattice / side / side;
    for (int d = 0; d < 3; ++d)
      i[d] = p * cell_at[d];
    if (elements.lattices.is_box()) {
      LatticeView::InBox const at = elements.lattices.box_cell(lattice);
      for (int d = 0; d < 3; ++d)
        i[d] = p * at.i[d];
    }
  }
  /// The unknown of node (a, b, c) of the cell.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t unknown(LatticeElements const& elements, int a, int b, int c) const {
    LatticeView const& lattices = elements.lattices;
    std::int32_t const p = lattices.order, n = lattices.cells;
    if (lattices.is_box())
      return lattices.box_unknown(i[0] + a, i[1] + b, i[2] + c);
    if (p == 1 || lattices.rim().holds(i[0] + a, i[1] + b, i[2] + c))
      return lattices.unknown(lattice, i[0] + a, i[1] + b, i[2] + c);
    // LatticeView::inner_unknown without its divisions: the node's place in the cell is known.
    int const in_cell[3] = {a, b, c};
    std::int32_t residue[3], number[3], size[3];  // indices modulo p, and places among the nodes of this kind
    for (int d = 0; d < 3; ++d) {
      bool const next = in_cell[d] == p;
      residue[d] = next ? 0 : in_cell[d];
      size[d] = residue[d] == 0 ? n - 1 : n;
      number[d] = cell_at[d] + (next ? 1 : 0) - (residue[d] == 0 ? 1 : 0);
    }
    return lattice * lattices.inner_of_lattice() + lattices.kind_first[(residue[2] * p + residue[1]) * p + residue[0]] +
           (std::int64_t{number[2]} * size[1] + number[1]) * size[0] + number[0];
  }
  /// Where that node is.
  POISSON_HOST_DEVICE void place(LatticeElements const& elements, int a, int b, int c, double (&x)[3]) const {
    if (elements.lattices.is_box()) {
      int const in_cell[3] = {a, b, c};
      for (int d = 0; d < 3; ++d)
        x[d] = elements.lines[d][i[d] + in_cell[d]];
      return;
    }
    std::int64_t const m = elements.lattices.m, nodes = elements.lattices.nodes_of_lattice();
    double const* from = elements.node_points;
    if (from != nullptr)
      from += 3 * unknown(elements, a, b, c);
    else
      from = elements.coordinates + 3 * lattice * nodes + ((i[2] + c) * m + i[1] + b) * m + i[0] + a;
    std::int64_t const step = elements.node_points != nullptr ? 1 : nodes;
    for (int d = 0; d < 3; ++d)
      x[d] = from[d * step];
  }
};

/// Whether it is known where the node of an unknown is: ghosts of a rank that no lattice here has are nowhere, unless there are
/// points by unknown.
[[nodiscard]] POISSON_HOST_DEVICE inline bool has_place(LatticeElements const& elements, std::int64_t unknown) {
  std::int64_t const on_rim = unknown - elements.lattices.n_inner();
  return elements.node_points != nullptr || elements.lattices.is_box() || on_rim < 0 ||
         elements.lattices.copy_offsets[on_rim] < elements.lattices.copy_offsets[on_rim + 1];
}

/// Where the node of an unknown is. Precondition: it is a box, or there are points by unknown, or lists of copies; has_place().
struct NodePlace {
  double x[3];
  POISSON_HOST_DEVICE NodePlace(LatticeElements const& elements, std::int64_t unknown) {
    if (elements.node_points != nullptr) {
      for (int d = 0; d < 3; ++d)
        x[d] = elements.node_points[3 * unknown + d];
      return;
    }
    LatticeView const& lattices = elements.lattices;
    if (lattices.is_box()) {
      LatticeView::InBox const at = lattices.box_node(unknown);
      for (int d = 0; d < 3; ++d)
        x[d] = elements.lines[d][at.i[d]];
      return;
    }
    std::int64_t const on_rim = unknown - lattices.n_inner();
    LatticeView::Node node{};
    if (on_rim < 0) {
      node = lattices.inner_node(unknown);
    } else {  // of its copies any will do
      std::int64_t const place = lattices.copies[lattices.copy_offsets[on_rim]], of_lattice = lattices.rim().size();
      LatticeRim::Node const at = lattices.rim().node(place % of_lattice);
      node = {place / of_lattice, at.i, at.j, at.k};
    }
    std::int64_t const m = lattices.m, nodes = lattices.nodes_of_lattice();
    for (int d = 0; d < 3; ++d)
      x[d] = elements.coordinates[(3 * node.lattice + d) * nodes + (node.k * m + node.j) * m + node.i];
  }
};

/// The first of some nodes by z, then y, then x.
struct FirstNode {
  double x[3];
  std::int64_t unknown;  ///< -1: none yet

  POISSON_HOST_DEVICE void add(FirstNode const& other) {
    if (other.unknown < 0)
      return;
    bool before = unknown < 0;
    for (int d = 2, equal = 1; d >= 0 && !before && equal != 0; --d) {
      before = other.x[d] < x[d];
      equal = other.x[d] == x[d] ? 1 : 0;
    }
    if (before)
      *this = other;
  }
  POISSON_HOST_DEVICE void add(LatticeElements const& elements, std::int64_t at) {
    if (!has_place(elements, at))
      return;
    NodePlace const place(elements, at);
    add(FirstNode{{place.x[0], place.x[1], place.x[2]}, at});
  }
};

}  // namespace lattice_solution

}  // namespace poisson
