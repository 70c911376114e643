#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/expression_code.hpp"
#include "gpu/kernels/box_elements.hpp"

#include <array>
#include <cstdint>

/// What is asked of a solution u of trilinear elements on a box, from its values at the nodes. These are numbered
/// lexicographically, x fastest. Pointers are in the backend's memory. Sums are added in a fixed order.
namespace poisson {

/// Cells of a box over which is integrated: `cells` of them per direction, whose lowest node a pointer to values of u leads to.
struct BoxCells {
  std::array<std::int64_t, 3> cells{};
  std::array<std::int64_t, 3> nodes{};   ///< of the whole box
  std::array<double const*, 3> edges{};  ///< of the cells, per direction
  /// Numbers of the materials of all cells of the box, x fastest, from the lowest of these cells on: only those of `material` count
  /// in integrals. Null: all count.
  std::uint8_t const* materials = nullptr;
  std::int32_t material = 0;
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t step_y() const { return nodes[0]; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t step_z() const { return nodes[0] * nodes[1]; }
  [[nodiscard]] POISSON_HOST_DEVICE bool counts(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return materials == nullptr || materials[(z * (nodes[1] - 1) + y) * (nodes[0] - 1) + x] == material;
  }
};

/// An expression on a tensor product of places, or a constant.
struct BoxFunction {
  ExpressionView code;     ///< without instructions: it is `constant`
  std::int32_t depth = 0;  ///< stack_depth of the code
  double constant = 0;
  std::array<double const*, 3> at{};  ///< what x, y and z of the code are at the places of each direction
  [[nodiscard]] POISSON_HOST_DEVICE bool is_constant() const { return code.size == 0; }
};

/// k at two Gauss points per direction: point q of cell c is place 2 c + q.
struct BoxCoefficient {
  std::int32_t components = 1;  ///< 1, or 3: kx, ky, kz
  std::array<BoxFunction, 3> functions{};
  /// Values where the host evaluates k, in place of the functions: x fastest, beginning with the lowest point of the planes that
  /// are integrated over. Null: the functions count.
  std::array<double const*, 3> values{};
  std::int64_t step_y = 0, step_z = 0;  ///< from a value to the next one in y and z
};

/// k in the cells of some planes: one number, by label, or at two Gauss points per direction.
struct BoxCellCoefficient {
  std::int32_t components = 1;  ///< 1, or 3: kx, ky, kz
  std::array<double, 3> constant{};
  /// Labels of all cells of the box, x fastest, and k by label. Null: it is constant.
  std::uint8_t const* labels = nullptr;
  std::array<double const*, 3> table{};
  /// Values at the points of the planes, x fastest: point q of cell c is place 2 c + q. Null: labels or the constant count.
  std::array<double const*, 3> points{};
};

/// Most Gauss points per direction of BoxQuadrature.
inline constexpr int most_box_points = 14;

/// Gauss points of [0, 1], their weights, and the derivatives of their Lagrange functions: [q][i] of function i at point q.
struct BoxQuadrature {
  std::int32_t n = 0;
  std::array<double, most_box_points> point{}, weight{};
  std::array<std::array<double, most_box_points>, most_box_points> derivative{};
};

/// The least and the largest of the values that are no NaN, and whether all are finite.
struct ValueRange {
  double min = 0, max = 0;
  bool finite = true;
};

/// The first place with a low value, and the first one with a high value; -1: there is none.
struct ExtremeNodes {
  std::int64_t low = -1, high = -1;
};

/// A part of a side of a box. Directions 0 and 1 are along the side, direction 2 leads inside; functions have their places in this
/// order. Cell (i, j) of the layer of cells at the side has the nodes (i, j) to (i + 1, j + 1) of the side, and those behind them.
struct BoxSide {
  /// Cells from `first` to before `end`, or nodes.
  struct Range {
    std::array<std::int64_t, 2> first{}, end{};
    [[nodiscard]] POISSON_HOST_DEVICE bool holds(std::int64_t i, std::int64_t j) const {
      return first[0] <= i && i < end[0] && first[1] <= j && j < end[1];
    }
  };
  std::array<std::int64_t, 2> cells{};   ///< of the layer; cell (0, 0) is the first one
  Range faces, nodes;                    ///< those that count; all nodes are nodes of `cells`
  std::array<std::int64_t, 3> steps{};   ///< from a node to the next one
  std::array<double const*, 2> edges{};  ///< of the cells
  double depth = 0;                      ///< of the layer
  bool fixed = false;                    ///< u is prescribed
  std::int32_t components = 1;           ///< of k: 1, or 3, one for each direction
  /// At two Gauss points per direction of the layer: point q of cell c is place 2 c + q. Needed where u is prescribed.
  std::array<BoxFunction, 3> k{};
  /// Cell (i, j) has the label labels[i label_steps[0] + j label_steps[1]], and k of label m is table[3 m] to table[3 m + 2], one
  /// for each direction. Null: the functions count.
  std::uint8_t const* labels = nullptr;
  std::array<std::int64_t, 2> label_steps{};
  double const* table = nullptr;
  [[nodiscard]] POISSON_HOST_DEVICE double const* of_label(std::int64_t i, std::int64_t j) const {
    return labels == nullptr ? nullptr : table + 3 * std::int64_t{labels[i * label_steps[0] + j * label_steps[1]]};
  }
  BoxFunction f;
  /// k du/dn + alpha u, at two Gauss points per direction of the faces. Needed elsewhere.
  BoxFunction value, alpha;
};

/// What a cell of the layer at a side has of the integrals over the side.
struct SideCell {
  double u[8];      ///< at its nodes
  double count[4];  ///< 1 where a node on the side counts, else 0
  double edge[3];

  POISSON_HOST_DEVICE SideCell(BoxSide const& side, std::int64_t i, std::int64_t j, double const* of_side)
      : edge{side.edges[0][i], side.edges[1][j], side.depth} {
    double const* const lowest = of_side + i * side.steps[0] + j * side.steps[1];
    for (int c = 0; c < 8; ++c)
      u[c] = lowest[(c & 1) * side.steps[0] + (c >> 1 & 1) * side.steps[1] + (c >> 2) * side.steps[2]];
    for (int c = 0; c < 4; ++c)
      count[c] = side.nodes.holds(i + (c & 1), j + (c >> 1)) ? 1 : 0;
  }
  [[nodiscard]] POISSON_HOST_DEVICE double area() const { return edge[0] * edge[1]; }
  /// The first or the second Gauss point of [0, 1].
  [[nodiscard]] POISSON_HOST_DEVICE static double gauss(int q) { return q == 0 ? 0.21132486540518711775 : 0.78867513459481288225; }
  /// v[0] to v[3] at a place of the unit square.
  [[nodiscard]] POISSON_HOST_DEVICE static double mix(double r, double s, double const* v) {
    double const low = v[0] + r * (v[1] - v[0]), high = v[2] + r * (v[3] - v[2]);
    return low + s * (high - low);
  }
  /// k grad u . grad phi - f phi at a Gauss point, times its weight. phi is the sum of the basis functions of the nodes that count.
  [[nodiscard]] POISSON_HOST_DEVICE double residual(int qa, int qb, int qn, double const (&k)[3], double f) const {
    double const r = gauss(qa), s = gauss(qb), t = gauss(qn);
    auto const along = [](double at, double v, double w) { return v + at * (w - v); };
    double const u_a = along(t, along(s, u[1] - u[0], u[3] - u[2]), along(s, u[5] - u[4], u[7] - u[6])),
                 u_b = along(t, along(r, u[2] - u[0], u[3] - u[1]), along(r, u[6] - u[4], u[7] - u[5])),
                 u_n = along(s, along(r, u[4] - u[0], u[5] - u[1]), along(r, u[6] - u[2], u[7] - u[3]));
    double const phi = mix(r, s, count), phi_a = along(s, count[1] - count[0], count[3] - count[2]),
                 phi_b = along(r, count[2] - count[0], count[3] - count[1]);
    double const of_gradients = (1 - t) * (k[0] * u_a * phi_a / (edge[0] * edge[0]) + k[1] * u_b * phi_b / (edge[1] * edge[1])) -
                                k[2] * u_n * phi / (edge[2] * edge[2]);
    return area() * edge[2] / 8 * (of_gradients - (1 - t) * f * phi);
  }
  /// k du/dn at a Gauss point of the face, by its condition, times the weight.
  [[nodiscard]] POISSON_HOST_DEVICE double load(int qa, int qb, double value, double alpha) const {
    return area() / 4 * (value - alpha * mix(gauss(qa), gauss(qb), u));
  }
  [[nodiscard]] POISSON_HOST_DEVICE double integral() const { return area() * ((u[0] + u[1]) + (u[2] + u[3])) / 4; }
};

/// What faces and nodes of a side have: the integral of u over the faces, the least and the largest value at their nodes, and the
/// flux -k du/dn: of faces by their condition, or where u is prescribed the residuals of the nodes.
struct SideSums {
  double u = 0, flux = 0, min = 0, max = 0;
};

class BoxSolutionKernels {
public:
  virtual ~BoxSolutionKernels() = default;

  /// Waits. 8 bytes a node. Precondition: n > 0.
  [[nodiscard]] virtual ValueRange range(Context& context, std::int64_t n, double const* u) const = 0;

  /// The first node with u <= low, and the first one with u >= high. Waits. 8 bytes a node.
  [[nodiscard]] virtual ExtremeNodes first_places(Context& context, std::int64_t n, double const* u, double low,
                                                  double high) const = 0;

  /// The least and the largest value at the nodes of the cells that count; infinity and -infinity where there are none. Waits. 8
  /// bytes a cell. Precondition: u is finite.
  [[nodiscard]] virtual ValueRange range_of_material(Context& context, BoxCells const& box, double const* u) const = 0;

  /// Adds to sums[0] the integral of u, to sums[1] that of grad u . k grad u, and to sums[2] that of 1 over the planes first_plane
  /// <= z < end_plane of cells, by two Gauss points per direction. 8 bytes a cell; where the host has evaluated k, 64 more for each
  /// component.
  virtual void integrals(Context& context, BoxCells const& box, BoxCoefficient const& k, std::int64_t first_plane,
                         std::int64_t end_plane, double const* u, double* sums) const = 0;

  /// With e = u - (exact - shift): adds to sums[0] the integral of e^2 and to sums[1] that of |grad e|^2 over planes of cells,
  /// where e is interpolated at the Gauss points of a cell, and makes sums[2] the largest |e| at these points where that is more
  /// than what it holds. Point q of cell c is place q cells + c of `exact`. If `exact` is not finite, *failed becomes the lowest
  /// number of such a point, where that is less than what it holds: points are numbered by point and cell in x, then point in y,
  /// point in z, cell in y, cell in z. 8 bytes a cell.
  virtual void errors(Context& context, BoxCells const& box, BoxQuadrature const& quadrature, BoxFunction const& exact,
                      double shift, std::int64_t first_plane, std::int64_t end_plane, double const* u, double* sums,
                      std::int64_t* failed) const = 0;

  /// Makes *largest the largest |u - (exact - shift)| at the nodes of the cells in the planes first_plane <= z < end_plane of
  /// nodes, where that is more than what it holds. Nodes are the places of `exact`, and *failed becomes the lowest number among
  /// them. 8 bytes a node.
  virtual void errors_at_nodes(Context& context, BoxCells const& box, BoxFunction const& exact, double shift,
                               std::int64_t first_plane, std::int64_t end_plane, double const* u, double* largest,
                               std::int64_t* failed) const = 0;

  /// Adds the integral of `exact` over planes of cells to *sum; the rest is as for errors. No bytes.
  virtual void integral_of_exact(Context& context, BoxCells const& box, BoxQuadrature const& quadrature, BoxFunction const& exact,
                                 std::int64_t first_plane, std::int64_t end_plane, double* sum, std::int64_t* failed) const = 0;

  /// `u` leads to node (0, 0) of the side. Waits. 64 bytes a cell of the layer, 65 with labels. Precondition: there are cells.
  [[nodiscard]] virtual SideSums of_side(Context& context, BoxSide const& side, double const* u) const = 0;

  /// r_i -= the integral of k grad (u + u_low) . grad phi_i over the cells in the planes first_plane <= z < end_plane, for all
  /// nodes i: of a box without conditions on its sides. Only differences of u in a cell count, so that rounding is relative to what
  /// flows there. `u_low` may be null. Precondition: `box` is all cells of a box. Bytes of a cell, without k: 24, and 8 for u_low;
  /// where k is given at points 64 more for each component.
  virtual void subtract_product(Context& context, BoxCells const& box, BoxCellCoefficient const& k, std::int64_t first_plane,
                                std::int64_t end_plane, double const* u, double const* u_low, double* r) const = 0;

  /// values = u at count[0] x count[1] x count[2] nodes from u on, in lines and planes `step_y` and `step_z` apart, x fastest. 16
  /// bytes a node.
  virtual void pack(Context& context, std::array<std::int64_t, 3> const& count, std::int64_t step_y, std::int64_t step_z,
                    double const* u, double* values) const = 0;

  static BoxSolutionKernels const& cpu();
  static BoxSolutionKernels const& cuda();
};

}  // namespace poisson
