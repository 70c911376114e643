#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "assembly/system/tensor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

/// What estimates of errors have in common: u, k and the map of one cell after the other at points, the points that two cells have
/// together on a face, and small dense systems.
namespace poisson::assembly {

[[nodiscard]] inline double dot_product(Point3 const& a, Point3 const& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// The directions in a face, i = 0 the lower one.
[[nodiscard]] constexpr std::size_t face_direction(int face, int i) {
  int const d = face / 2;
  return static_cast<std::size_t>(i == 0 ? (d == 0 ? 1 : 0) : (d == 2 ? 1 : 2));
}

/// A face has four quarters, which a smaller cell may touch: bit i says in which half of face_direction(face, i).
inline constexpr int whole_face = 4;
/// The points of a rule on a face, or on a quarter of it.
[[nodiscard]] std::vector<Point3> points_on_face(ReferenceElement const& rule, int face, int quarter);

/// The functions of an element and of its map at points.
struct TablesAt {
  TablesAt(std::vector<Point3> of, Space const& space, ReferenceElement const& element)
      : points(std::move(of)), shape(tabulate(element.nodes, points)), map(tabulate(geometry_nodes_1d(space, element), points)) {}
  std::vector<Point3> points;
  PointTables shape, map;
};

/// One cell after the other, with what a thread needs of its own.
class EstimateCell {
public:
  EstimateCell(Space const& space, ProblemData const& problem)
      : data(problem), dofs(static_cast<std::size_t>(space.n_local)), space_(space), geometry_(space) {}

  void reset(std::int64_t cell) {
    space_.dofs(cell, dofs.data());
    geometry_.reset(cell, dofs.data());
    material = space_.material(cell);
    coefficient = &data.coefficient(material);
    has_constant_k_ = coefficient->is_constant();
    if (has_constant_k_)
      constant_k_ = (*coefficient)({}, material);
    is_affine_ = geometry_.affine();
    if (is_affine_) {
      for (int d = 0; d < 3; ++d) {
        double const* const x = geometry_.nodes(d);
        std::array<double, 3> const edges{x[1] - x[0], x[2] - x[0], x[4] - x[0]};
        std::copy(edges.begin(), edges.end(), affine_.jacobian.begin() + std::ptrdiff_t{3} * d);
      }
      set_cofactors(affine_);
    }
  }
  /// Whether the map is affine, up to rounding; then it has one Jacobian matrix.
  [[nodiscard]] bool is_affine() const { return is_affine_; }
  [[nodiscard]] bool has_constant_k() const { return has_constant_k_; }
  struct Place {
    Point3 x;
    std::array<double, 9> cofactors;  ///< of the Jacobian matrix
    double determinant;
    std::array<double, 9> jacobian;
  };
  [[nodiscard]] Place place(TablesAt const& tables, int q) const {
    auto const n = static_cast<std::size_t>(geometry_.n_nodes()), at = static_cast<std::size_t>(q);
    Place result = affine_;
    if (!is_affine_) {
      result.jacobian = geometry_.jacobian(tables.map.gradients.data() + 3 * at * n);
      set_cofactors(result);
    }
    result.x = geometry_.point(tables.map.values.data() + at * n);
    return result;
  }
  [[nodiscard]] Point3 gradient(TablesAt const& tables, int q, Place const& at, std::span<double const> u) const {
    std::size_t const n = dofs.size();
    Point3 g{};
    double const base = u[static_cast<std::size_t>(dofs[0])];
    for (std::size_t d = 0; d < 3; ++d) {
      double const* const row = tables.shape.gradients.data() + (3 * static_cast<std::size_t>(q) + d) * n;
      for (std::size_t i = 0; i < n; ++i)
        g[d] += row[i] * (u[static_cast<std::size_t>(dofs[i])] - base);
    }
    return real(at, g);
  }
  /// A gradient in x, y and z from one in reference coordinates.
  [[nodiscard]] static Point3 real(Place const& at, Point3 const& g) {
    Point3 result{};
    for (std::size_t d = 0; d < 3; ++d)
      result[d] = (at.cofactors[3 * d] * g[0] + at.cofactors[3 * d + 1] * g[1] + at.cofactors[3 * d + 2] * g[2]) / at.determinant;
    return result;
  }
  [[nodiscard]] double value(TablesAt const& tables, int q, std::span<double const> u) const {
    double sum = 0;
    for (std::size_t i = 0; i < dofs.size(); ++i)
      sum += tables.shape.values[static_cast<std::size_t>(q) * dofs.size() + i] * u[static_cast<std::size_t>(dofs[i])];
    return sum;
  }
  /// The outward normal of a face times dS over the reference face.
  [[nodiscard]] static Point3 normal(Place const& at, int face) {
    double const sign = face % 2 == 0 ? -1 : 1;
    auto const d = static_cast<std::size_t>(face / 2);
    return {sign * at.cofactors[d], sign * at.cofactors[3 + d], sign * at.cofactors[6 + d]};
  }
  [[nodiscard]] Tensor k_on_surface(Point3 const& x) const {
    return has_constant_k_ ? constant_k_ : coefficient->seen_from(geometry_.middle(), x, material);
  }
  [[nodiscard]] Tensor k_inside(Point3 const& x) const { return has_constant_k_ ? constant_k_ : (*coefficient)(x, material); }

  ProblemData data;
  std::vector<std::int32_t> dofs;
  unsigned material = 0;
  Coefficient const* coefficient = nullptr;

private:
  static void set_cofactors(Place& at) {
    auto const& j = at.jacobian;
    auto const& c = at.cofactors = cofactors(j);
    at.determinant = j[0] * c[0] + j[1] * c[1] + j[2] * c[2];
  }

  Space const& space_;
  CellGeometry geometry_;
  bool is_affine_ = false, has_constant_k_ = false;
  Place affine_{};  ///< of an affine cell, but for x
  Tensor constant_k_;
};

/// Where the points of a face of the first cell lie on that of the second.
struct Counterpart {
  int quarter = whole_face;
  std::vector<int> point;
  std::array<std::array<double, 2>, 4> corners{};  ///< places of the corners of the first face on the second one
};

/// Two faces that meet: which ones of their cells, a corner that both have, as bits in the coordinates of each, the direction on
/// the second face of direction 0 of the first, and whether both are whole.
struct Meeting {
  std::array<int, 2> faces{};
  std::array<std::size_t, 2> corner{};
  std::size_t first_axis = 0;
  bool is_of_whole = true;
};

/// All ways in which two faces meet.
class Counterparts {
public:
  explicit Counterparts(ReferenceElement const& rule);
  [[nodiscard]] Counterpart const& of(Meeting const& meeting) const { return all_[index(meeting)]; }

private:
  static std::size_t index(Meeting const& of) {
    std::size_t const faces = static_cast<std::size_t>(6 * of.faces[0] + of.faces[1]);
    return ((faces * 4 + of.corner[0]) * 4 + of.corner[1]) * 4 + 2 * of.first_axis + (of.is_of_whole ? 1 : 0);
  }
  std::vector<Counterpart> all_;
};

/// The unknowns at the corners of a face, the lower one of its directions fastest. `dofs` are those of the cell afterwards.
[[nodiscard]] std::array<std::int32_t, 4> face_corners(Space const& space, std::int64_t cell, int face,
                                                       std::vector<std::int32_t>& dofs);

/// Finds how faces meet, by the vertices that both cells have, or that have images at the other.
class FaceMatcher {
public:
  FaceMatcher(Space const& space, Counterparts const& all)
      : space_(space), all_(all), first_(static_cast<std::size_t>(space.n_local)), second_(first_) {}

  /// Of a face of space.local by its number. What it returns lives as long as `all`.
  [[nodiscard]] Counterpart const& operator()(std::size_t number);

  /// The unknowns at the corners of a face, the lower one of its directions fastest.
  [[nodiscard]] std::array<std::int32_t, 4> corners(std::int64_t cell, int face, std::vector<std::int32_t>& dofs) const {
    return face_corners(space_, cell, face, dofs);
  }

private:
  Space const& space_;
  Counterparts const& all_;
  std::vector<std::int32_t> first_, second_;
};

/// Solves A x = b with a symmetric positive definite A (n x n, lower triangle), which becomes its factor.
struct SmallSolver {
  /// `least`: a pivot that is smaller, as a share of its entry of A, belongs to an equation that follows from those before; its
  /// unknown is 0 then.
  static void factor(std::vector<double>& a, std::size_t n, double least = 0) {
    for (std::size_t j = 0; j < n; ++j) {
      double* const row_j = a.data() + j * n;
      double const smallest = std::max(least * row_j[j], std::numeric_limits<double>::min());
      for (std::size_t k = 0; k < j; ++k)
        row_j[j] -= row_j[k] * row_j[k];
      if (least > 0 && row_j[j] <= smallest)
        row_j[j] = std::numeric_limits<double>::infinity();
      else
        row_j[j] = std::sqrt(std::max(row_j[j], smallest));
      for (std::size_t i = j + 1; i < n; ++i) {
        double* const row_i = a.data() + i * n;
        row_i[j] = (row_i[j] - product(row_i, row_j, j)) / row_j[j];
      }
    }
  }
  /// b becomes L^-1 b, so that b^T A^-1 c is the product of two of these.
  static void forward(std::vector<double> const& a, std::size_t n, std::span<double> b) {
    for (std::size_t i = 0; i < n; ++i)
      b[i] = (b[i] - product(a.data() + i * n, b.data(), i)) / a[i * n + i];
  }
  /// b becomes L^-T b.
  static void backward(std::vector<double> const& a, std::size_t n, std::span<double> b) {
    for (std::size_t i = n; i-- > 0;) {
      b[i] /= a[i * n + i];
      for (std::size_t k = 0; k < i; ++k)
        b[k] -= a[i * n + k] * b[i];
    }
  }

private:
  /// In four sums, which do not wait for each other.
  static double product(double const* a, double const* b, std::size_t n) {
    std::array<double, 4> sums{};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4)
      for (std::size_t k = 0; k < 4; ++k)
        sums[k] += a[i + k] * b[i + k];
    for (; i < n; ++i)
      sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
};

[[nodiscard]] inline double ordered_product(std::vector<double> const& a, std::vector<double> const& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

}  // namespace poisson::assembly
