#pragma once

#include "gpu/core/host_vector.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace poisson::output {

/// A hexahedral mesh of one polynomial order whose cells share nodes. A view: the caller owns the arrays.
struct Grid {
  int order = 1;
  std::span<double const> points;  ///< 3 per node: x, y, z
  /// (order + 1)^3 nodes per cell, lexicographic (x fastest) and equidistant in the reference cell.
  std::span<std::int64_t const> cells;

  [[nodiscard]] std::int64_t n_points() const { return static_cast<std::int64_t>(points.size() / 3); }
  [[nodiscard]] int nodes_per_cell() const { return (order + 1) * (order + 1) * (order + 1); }
  [[nodiscard]] std::int64_t n_cells() const { return static_cast<std::int64_t>(cells.size()) / nodes_per_cell(); }
};

/// An axis-aligned lattice: points low + (i h_x, j h_y, k h_z), numbered x fastest, h the spacing, n >= 1 per direction. As a mesh
/// it has the trilinear hexahedra between neighbouring points as cells, numbered x fastest.
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
  /// Vertex i of a cell, i = 0 ... 7, lexicographic as in a Grid.
  [[nodiscard]] std::int64_t node(std::int64_t cell, int i) const {
    std::int64_t const mx = n[0] - 1, my = n[1] - 1;
    std::int64_t const x = cell % mx + (i & 1), y = cell / mx % my + (i >> 1 & 1), z = cell / (mx * my) + (i >> 2);
    return (z * n[1] + y) * n[0] + x;
  }
};

/// A hexahedral mesh: arrays, or a lattice, which needs none. Precondition of all functions: it was made from one of both.
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
  /// Node i of a cell, i < nodes_per_cell().
  [[nodiscard]] std::int64_t node(std::int64_t cell, int i) const {
    if (Grid const* const g = grid())
      return g->cells[static_cast<std::size_t>(cell * g->nodes_per_cell() + i)];
    return image()->node(cell, i);
  }

private:
  std::variant<Grid, ImageGrid> kind_;
};

/// Values on the points or on the cells of a Mesh: `components` per point or cell. Exactly one of `values` and `integers` is set.
struct Field {
  std::string name;
  int components = 1;  ///< per point or cell; they are adjacent
  std::span<double const> values;
  std::span<int const> integers;
};

}  // namespace poisson::output
