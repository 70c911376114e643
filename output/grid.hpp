#pragma once

#include "gpu/core/host_vector.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace poisson::output {

/// A mesh of hexahedra of one polynomial order with shared nodes. Views: the caller owns the arrays.
struct Grid {
  int order = 1;
  std::span<double const> points;  ///< x y z of each node
  std::span<std::int64_t const>
      cells;  ///< (order + 1)^3 nodes of each cell, lexicographic (x fastest), equidistant in the reference cell

  [[nodiscard]] std::int64_t n_points() const { return static_cast<std::int64_t>(points.size() / 3); }
  [[nodiscard]] int nodes_per_cell() const { return (order + 1) * (order + 1) * (order + 1); }
  [[nodiscard]] std::int64_t n_cells() const { return static_cast<std::int64_t>(cells.size()) / nodes_per_cell(); }
};

/// Points of an axis-aligned lattice: low + (i hx, j hy, k hz), x fastest; one point in a direction where n is 1. As a mesh: the
/// hexahedra between them, of order 1, x fastest.
struct ImageGrid {
  std::array<double, 3> low{}, spacing{};
  std::array<std::int64_t, 3> n{1, 1, 1};

  [[nodiscard]] std::int64_t n_points() const { return n[0] * n[1] * n[2]; }
  [[nodiscard]] std::int64_t n_cells() const { return (n[0] - 1) * (n[1] - 1) * (n[2] - 1); }
  [[nodiscard]] std::array<double, 3> point(std::int64_t node) const {
    std::array<std::int64_t, 3> const i{node % n[0], node / n[0] % n[1], node / (n[0] * n[1])};
    return {low[0] + static_cast<double>(i[0]) * spacing[0], low[1] + static_cast<double>(i[1]) * spacing[1],
            low[2] + static_cast<double>(i[2]) * spacing[2]};
  }
  /// Corner i of a cell, as those of a Grid.
  [[nodiscard]] std::int64_t node(std::int64_t cell, int i) const {
    std::int64_t const mx = n[0] - 1, my = n[1] - 1;
    std::int64_t const x = cell % mx + (i & 1), y = cell / mx % my + (i >> 1 & 1), z = cell / (mx * my) + (i >> 2);
    return (z * n[1] + y) * n[0] + x;
  }
};

/// A mesh of hexahedra, as arrays or as a lattice, which needs none.
class Mesh {
public:
  Mesh() = default;
  Mesh(Grid const& grid) : kind_(grid) {}
  Mesh(ImageGrid const& image) : kind_(image) {}

  [[nodiscard]] Grid const* grid() const { return std::get_if<Grid>(&kind_); }
  [[nodiscard]] ImageGrid const* image() const { return std::get_if<ImageGrid>(&kind_); }

  [[nodiscard]] int order() const { return grid() != nullptr ? grid()->order : 1; }
  [[nodiscard]] int nodes_per_cell() const { return grid() != nullptr ? grid()->nodes_per_cell() : 8; }
  [[nodiscard]] std::int64_t n_points() const { return grid() != nullptr ? grid()->n_points() : image()->n_points(); }
  [[nodiscard]] std::int64_t n_cells() const { return grid() != nullptr ? grid()->n_cells() : image()->n_cells(); }
  [[nodiscard]] std::array<double, 3> point(std::int64_t node) const {
    if (Grid const* const g = grid()) {
      double const* const x = g->points.data() + 3 * node;
      return {x[0], x[1], x[2]};
    }
    return image()->point(node);
  }
  /// Node i of a cell.
  [[nodiscard]] std::int64_t node(std::int64_t cell, int i) const {
    if (Grid const* const g = grid())
      return g->cells[static_cast<std::size_t>(cell * g->nodes_per_cell() + i)];
    return image()->node(cell, i);
  }

private:
  std::variant<Grid, ImageGrid> kind_;
};

/// Values on the points or on the cells of a Mesh; exactly one of `values` and `integers` is set.
struct Field {
  std::string name;
  int components = 1;  ///< interleaved
  std::span<double const> values;
  std::span<int const> integers;
};

}  // namespace poisson::output
