#include "assembly/dealii/cell_shapes.hpp"

#include "assembly/dealii/curved_cells.hpp"
#include "assembly/dealii/sources.hpp"

#include <algorithm>
#include <array>
#include <deal.II/base/tensor.h>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

dealii::Point<3> centre_of(RawMesh const& mesh, RawMesh::Cell const& cell) {
  dealii::Point<3> centre;
  for (int const v : cell.vertices)
    centre += mesh.vertices[static_cast<std::size_t>(v)] / 8.;
  return centre;
}

/// det J over the product of the lengths of the columns of J; 0 where one has no length.
double scaled_jacobian(std::array<dealii::Tensor<1, 3>, 3> columns) {
  for (auto& column : columns) {  // one by one: no product of lengths can vanish or overflow
    double const length = column.norm();
    if (!(length > 0))
      return 0;
    column /= length;
  }
  return dealii::cross_product_3d(columns[0], columns[1]) * columns[2];
}

/// The least one at the corners.
double scaled_jacobian(std::span<dealii::Point<3> const, 8> corners) {
  double least = std::numeric_limits<double>::infinity();
  for (unsigned v = 0; v < 8; ++v) {
    std::array<dealii::Tensor<1, 3>, 3> columns;
    for (unsigned d = 0; d < 3; ++d)
      columns[d] = corners[v | (1U << d)] - corners[v & ~(1U << d)];
    least = std::min(least, scaled_jacobian(columns));
  }
  return least;
}

struct Shape {
  CellShape kind = CellShape::good;
  double quality = 1;  ///< the least scaled Jacobian that was seen
};

/// The shape of a cell whose vertices are given in deal.II's order and, where it is curved, whose nodes are.
class Shapes {
public:
  explicit Shapes(int order) : order_(order), points_(order == 1 ? 0 : order + 2) {
    auto const n = static_cast<std::size_t>(order + 1);
    values_.resize(points_ * n);
    derivatives_.resize(points_ * n);
    for (std::size_t i = 0; i < points_; ++i) {
      double const t = static_cast<double>(i) / static_cast<double>(points_ - 1);
      lagrange_values(order, t, std::span(values_).subspan(i * n, n));
      lagrange_derivatives(order, t, std::span(derivatives_).subspan(i * n, n));
    }
  }

  [[nodiscard]] Shape operator()(std::span<dealii::Point<3> const, 8> corners, std::span<dealii::Point<3> const> nodes) const {
    if (order_ == 1 || is_trilinear(order_, nodes))
      return {cell_shape(corners), scaled_jacobian(corners)};
    // The sign of a polynomial's Jacobian is seen at points only, those on edges and faces among them.
    auto const n = static_cast<std::size_t>(order_ + 1);
    bool positive = false;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < points_; ++k)
      for (std::size_t j = 0; j < points_; ++j)
        for (std::size_t i = 0; i < points_; ++i) {
          std::array<dealii::Tensor<1, 3>, 3> tangent;
          for (std::size_t c = 0; c < n; ++c)
            for (std::size_t b = 0; b < n; ++b) {
              double const z = values_[k * n + c], y = values_[j * n + b];
              for (std::size_t a = 0; a < n; ++a) {
                dealii::Point<3> const& node = nodes[(c * n + b) * n + a];
                double const x = values_[i * n + a];
                for (unsigned d = 0; d < 3; ++d) {
                  tangent[0][d] += derivatives_[i * n + a] * y * z * node[d];
                  tangent[1][d] += x * derivatives_[j * n + b] * z * node[d];
                  tangent[2][d] += x * y * derivatives_[k * n + c] * node[d];
                }
              }
            }
          double const quality = scaled_jacobian(tangent);
          least = std::min(least, quality);
          positive = positive || quality > 1e-12;
        }
    return {!(least >= -1e-10) ? CellShape::inverted : positive ? CellShape::good : CellShape::degenerate, least};
  }

private:
  int order_;
  std::size_t points_;  ///< per direction
  std::vector<double> values_, derivatives_;
};

}  // namespace

void CellShapes::Bad::add(RawMesh const& mesh, RawMesh::Cell const& cell) {
  if (count++ == 0)
    line = cell.line;
  if (count <= 5)
    places += (places.empty() ? "" : ", ") + to_text(centre_of(mesh, cell)) +
              (cell.line > 0 && count > 1 ? " (line " + std::to_string(cell.line) + ")" : "");
}

std::string CellShapes::Bad::text() const {
  return (count == 1 ? "; its centre is at " : "; their centres are at ") + places +
         (count > 5 ? " and " + std::to_string(count - 5) + " other places" : "");
}

CellShapes examine_shapes(RawMesh& mesh) {
  static constexpr std::array<int, 8> upside_down{4, 5, 6, 7, 0, 1, 2, 3};
  Shapes const shape_of(mesh.order);
  std::size_t const n_nodes = mesh.cells.empty() ? 0 : mesh.shape_nodes.size() / mesh.cells.size();
  CellShapes found;
  double sum = 0;
  for (std::size_t c = 0; c < mesh.cells.size(); ++c) {
    RawMesh::Cell& cell = mesh.cells[c];
    auto const nodes = std::span(mesh.shape_nodes).subspan(c * n_nodes, n_nodes);
    std::array<dealii::Point<3>, 8> corners;
    auto const shape_now = [&] {
      for (std::size_t v = 0; v < 8; ++v)
        corners[v] = mesh.vertices[static_cast<std::size_t>(cell.vertices[v])];
      return shape_of(corners, nodes);
    };
    Shape shape = shape_now();
    if (shape.kind == CellShape::inverted) {
      std::swap_ranges(cell.vertices.begin(), cell.vertices.begin() + 4, cell.vertices.begin() + 4);
      if (mesh.order > 1)
        turn_frame(mesh.order, upside_down, nodes);
      shape = shape_now();
      found.turned += shape.kind == CellShape::good;
    }
    if (shape.kind == CellShape::inverted)
      found.inverted.add(mesh, cell);
    if (shape.kind == CellShape::degenerate)
      found.degenerate.add(mesh, cell);
    sum += shape.quality;
    if (c == 0 || shape.quality < found.quality.worst) {
      dealii::Point<3> const centre = centre_of(mesh, cell);
      found.quality.worst = shape.quality;
      found.quality.at = {centre[0], centre[1], centre[2]};
    }
  }
  found.quality.mean = sum / static_cast<double>(mesh.cells.size());
  return found;
}

void require_good_shapes(std::string const& path, RawMesh const& mesh, CellShapes const& shapes) {
  std::string const total = " of " + std::to_string(mesh.cells.size()) + " cells ";
  auto const& [inverted, degenerate, turned, quality] = shapes;
  if (degenerate.count > 0)
    fail_in_mesh_file(path, degenerate.line, std::to_string(degenerate.count) + total + "have no volume" + degenerate.text());
  if (inverted.count > 0)
    fail_in_mesh_file(path, inverted.line,
                      std::to_string(inverted.count) + total + "are inverted (their Jacobian changes sign)" + inverted.text() +
                          ". Repair the mesh where it was made");
}

}  // namespace poisson::assembly
