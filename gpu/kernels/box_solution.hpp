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
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t step_y() const { return nodes[0]; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t step_z() const { return nodes[0] * nodes[1]; }
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

class BoxSolutionKernels {
public:
  virtual ~BoxSolutionKernels() = default;

  /// Waits. 8 bytes a node. Precondition: n > 0.
  [[nodiscard]] virtual ValueRange range(Context& context, std::int64_t n, double const* u) const = 0;

  /// The first node with u <= low, and the first one with u >= high. Waits. 8 bytes a node.
  [[nodiscard]] virtual ExtremeNodes first_places(Context& context, std::int64_t n, double const* u, double low,
                                                  double high) const = 0;

  /// Adds to sums[0] the integral of u and to sums[1] that of grad u . k grad u over the planes first_plane <= z < end_plane of
  /// cells, by two Gauss points per direction. 8 bytes a cell; where the host has evaluated k, 64 more for each component.
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

  /// values = u at count[0] x count[1] x count[2] nodes from u on, in lines and planes `step_y` and `step_z` apart, x fastest. 16
  /// bytes a node.
  virtual void pack(Context& context, std::array<std::int64_t, 3> const& count, std::int64_t step_y, std::int64_t step_z,
                    double const* u, double* values) const = 0;

  static BoxSolutionKernels const& cpu();
  static BoxSolutionKernels const& cuda();
};

}  // namespace poisson
