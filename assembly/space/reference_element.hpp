#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace poisson::assembly {

using Point3 = std::array<double, 3>;

/// Values and derivatives of a one-dimensional Lagrange basis at points of [0, 1]: n_points x n_functions matrices, row-major.
struct Basis1D {
  int n_points = 0;
  int n_functions = 0;
  std::vector<double> values, derivatives;
};

/// The Lagrange basis of `nodes` (function i is 1 at node i and 0 at the others), evaluated at `points`.
[[nodiscard]] Basis1D lagrange_basis(std::vector<double> const& nodes, std::vector<double> const& points);

/// Applies a matrix in each direction to a lexicographic (x fastest) array: out = (Z (x) Y (x) X) in, a Kronecker product. The
/// matrices are m x n, row-major; `in` has n^3 values, `out` m^3. `work` is scratch that is resized as needed.
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
  /// `points`: Gauss points in each direction; 0: order + 1.
  explicit ReferenceElement(int order, int points = 0);

  int order, n_nodes;
  std::vector<double> nodes;                 ///< order + 1 Gauss-Lobatto points of [0, 1]
  std::vector<double> gauss, gauss_weights;  ///< the rule of `points` points on [0, 1]
  /// Gauss points in each direction.
  [[nodiscard]] int n_gauss() const { return static_cast<int>(gauss.size()); }
  /// Reference coordinates of node i.
  [[nodiscard]] Point3 node(int i) const;
  /// Nodes whose reference coordinate is 0 (even face) or 1 (odd face) in direction face / 2, ascending.
  [[nodiscard]] std::vector<int> face_nodes(int face) const;

  std::vector<Point3> volume_points;  ///< points^3 Gauss points, x fastest
  std::vector<double> weights;
  std::array<std::vector<Point3>, 6> face_points;  ///< points^2 Gauss points of each face
  std::vector<double> face_weights;
};

/// The tensor-product Lagrange functions with these one-dimensional nodes, at arbitrary points of the reference cell.
[[nodiscard]] PointTables tabulate(std::vector<double> const& nodes, std::vector<Point3> const& points);

/// The n-point Gauss-Legendre rule on [0, 1].
void gauss_rule(int n, std::vector<double>& points, std::vector<double>& weights);
/// The n >= 2 Gauss-Lobatto points on [0, 1].
[[nodiscard]] std::vector<double> gauss_lobatto_points(int n);

}  // namespace poisson::assembly
