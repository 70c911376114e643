#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace poisson::assembly {

using Point3 = std::array<double, 3>;

/// Values and derivatives of a one-dimensional Lagrange basis at points of [0, 1]: entry (point, basis function), row-major.
struct Basis1D {
  int n_points = 0;
  int n_functions = 0;
  std::vector<double> values, derivatives;
};

/// The basis that is 1 at one of `nodes` and 0 at the others, evaluated at `points`.
[[nodiscard]] Basis1D lagrange_basis(std::vector<double> const& nodes, std::vector<double> const& points);

/// Applies one matrix per direction to a lexicographic (x fastest) array of size n^3: out = (Z x Y x X) in. All matrices are
/// m x n, row-major; `work` is scratch.
void apply_tensor(int m, int n, double const* x, double const* y, double const* z, double const* in, double* out,
                  std::vector<double>& work);

/// Three-dimensional Lagrange functions at a list of points, as dense tables for element matrices.
struct PointTables {
  int n_points = 0;
  int n_functions = 0;
  std::vector<double> values;     ///< (point, function)
  std::vector<double> gradients;  ///< (3 * point + direction, function), with respect to reference coordinates
};

/// Q_p on the reference cell [0, 1]^3 with Gauss-Lobatto nodes, lexicographic (x fastest).
struct ReferenceElement {
  explicit ReferenceElement(int order);

  int order, n_nodes;
  std::vector<double> nodes;                 ///< in one direction
  std::vector<double> gauss, gauss_weights;  ///< order + 1 points in one direction
  [[nodiscard]] Point3 node(int i) const;
  /// Nodes whose reference coordinate is 0 (even face) or 1 (odd face) in direction face / 2, ascending.
  [[nodiscard]] std::vector<int> face_nodes(int face) const;

  std::vector<Point3> volume_points;  ///< (order + 1)^3 Gauss points
  std::vector<double> weights;
  std::array<std::vector<Point3>, 6> face_points;  ///< (order + 1)^2 Gauss points of each face
  std::vector<double> face_weights;
};

/// Q_p functions with the given one-dimensional nodes at arbitrary points.
[[nodiscard]] PointTables tabulate(std::vector<double> const& nodes, std::vector<Point3> const& points);

/// Gauss points and weights on [0, 1].
void gauss_rule(int n, std::vector<double>& points, std::vector<double>& weights);
/// The n >= 2 Gauss-Lobatto points on [0, 1].
[[nodiscard]] std::vector<double> gauss_lobatto_points(int n);

}  // namespace poisson::assembly
