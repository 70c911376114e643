#pragma once

#include <array>
#include <deal.II/base/point.h>
#include <span>
#include <vector>

/// Cells whose shape a mesh file gives by the nodes of a polynomial. Internal to assembly/dealii.
namespace poisson::assembly {

/// Every cell is the image of [0, 1]^3 under polynomials of order p in each direction, which its nodes define.
struct CurvedCells {
  int order = 1;
  std::vector<dealii::Point<3>> nodes;  ///< (p + 1)^3 equidistant ones of each cell in its frame, x fastest

  [[nodiscard]] std::span<dealii::Point<3> const> of_cell(std::size_t cell) const {
    auto const n = static_cast<std::size_t>(order + 1);
    return std::span(nodes).subspan(cell * n * n * n, n * n * n);
  }
};

/// Values at t in [0, 1] of the p + 1 polynomials of order p that are 1 at one of the equidistant nodes and 0 at the others. At a
/// node they are exact.
void lagrange_values(int order, double t, std::span<double> values);
/// Writes the derivatives of these polynomials at t.
void lagrange_derivatives(int order, double t, std::span<double> derivatives);

/// The images of places in curved cells, which outlive it.
class CurvedImages {
public:
  explicit CurvedImages(CurvedCells const& cells);
  /// Of a place in [0, 1]^3.
  [[nodiscard]] dealii::Point<3> operator()(std::size_t cell, std::array<double, 3> const& place);

private:
  CurvedCells const& cells_;
  std::array<std::vector<double>, 3> values_;
};

/// Whether the nodes are those of the trilinear cell of the same vertices, up to rounding.
[[nodiscard]] bool is_trilinear(int order, std::span<dealii::Point<3> const> nodes);

/// The nodes of the same cell in a frame whose vertex v (x fastest) is vertex corners[v] of the old one.
void turn_frame(int order, std::array<int, 8> const& corners, std::span<dealii::Point<3>> nodes);

/// Replaces values at the tensor product of `points` in [0, 1], p + 1 of them in each direction, by those of the same polynomials
/// at equidistant nodes.
void to_equidistant(std::span<double const> points, std::span<dealii::Point<3>> nodes);

}  // namespace poisson::assembly
