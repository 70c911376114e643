#pragma once

#include "gpu/core/host_vector.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace poisson::output {

/// Writes the values first ... first + n - 1. Called by several threads at once; must not throw.
template <class T>
using Fill = std::function<void(std::int64_t first, std::int64_t n, T* out)>;

struct BoundaryFace {
  std::int64_t cell = 0;
  int face = 0;  ///< 2 * axis + (0 at the cell's start, 1 at its end)
  friend bool operator==(BoundaryFace const&, BoundaryFace const&) = default;
};

/// A hexahedral mesh of one polynomial order whose cells share nodes. Points and cells are arrays, which the caller owns, or
/// functions make them: either in one of both ways.
struct Grid {
  int order = 1;
  std::span<double const> points;  ///< 3 per node: x, y, z
  /// (order + 1)^3 nodes per cell, lexicographic (x fastest) and equidistant in the reference cell.
  std::span<std::int64_t const> cells;
  Fill<double> make_points = {};
  Fill<std::int64_t> make_cells = {};
  std::int64_t n_made_points = 0, n_made_cells = 0;  ///< values of these functions
  /// The faces of cells on the boundary, ordered by cell and face, of whoever knows them; empty: boundary_faces() searches.
  std::span<BoundaryFace const> boundary = {};

  [[nodiscard]] std::int64_t n_points() const { return (std::ssize(points) + n_made_points) / 3; }
  [[nodiscard]] int nodes_per_cell() const { return (order + 1) * (order + 1) * (order + 1); }
  [[nodiscard]] std::int64_t n_cells() const { return (std::ssize(cells) + n_made_cells) / nodes_per_cell(); }
  [[nodiscard]] std::array<double, 3> point(std::int64_t node) const {
    std::array<double, 3> x{};
    if (make_points)
      make_points(3 * node, 3, x.data());
    else
      std::copy_n(points.data() + 3 * node, 3, x.data());
    return x;
  }
  /// Writes 3 numbers for each of these nodes. Those that follow each other are made at once.
  void points_of(std::span<std::int64_t const> nodes, double* out) const {
    for (std::size_t i = 0, end = 0; i < nodes.size(); out += 3 * (end - i), i = end) {
      end = i + 1;
      while (end < nodes.size() && nodes[end] == nodes[end - 1] + 1)
        ++end;
      auto const n = static_cast<std::int64_t>(3 * (end - i));
      if (make_points)
        make_points(3 * nodes[i], n, out);
      else
        std::copy_n(points.data() + 3 * nodes[i], n, out);
    }
  }
  /// Writes the nodes of n cells from `first` on.
  void nodes(std::int64_t first, std::int64_t n, std::int64_t* out) const {
    int const of_cell = nodes_per_cell();
    if (make_cells)
      make_cells(first * of_cell, n * of_cell, out);
    else
      std::copy_n(cells.data() + first * of_cell, n * of_cell, out);
  }
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

/// An axis-aligned lattice with any distances: points (x_i, y_j, z_k), numbered x fastest. Its cells, numbered x fastest, are of
/// order p and take p intervals in every direction, with the same relative distances of nodes in all cells. A view: the caller owns
/// the coordinates, which ascend.
struct RectilinearGrid {
  int order = 1;
  std::array<std::span<double const>, 3> coordinates;  ///< a multiple of the order, and one, in each direction

  [[nodiscard]] std::int64_t n(std::size_t direction) const { return static_cast<std::int64_t>(coordinates[direction].size()); }
  [[nodiscard]] std::int64_t n_points() const { return n(0) * n(1) * n(2); }
  /// Cells in one direction.
  [[nodiscard]] std::int64_t cells(std::size_t direction) const { return (n(direction) - 1) / order; }
  [[nodiscard]] std::int64_t n_cells() const { return cells(0) * cells(1) * cells(2); }
  [[nodiscard]] int nodes_per_cell() const { return (order + 1) * (order + 1) * (order + 1); }
  [[nodiscard]] std::array<double, 3> point(std::int64_t node) const {
    return {coordinates[0][static_cast<std::size_t>(node % n(0))], coordinates[1][static_cast<std::size_t>(node / n(0) % n(1))],
            coordinates[2][static_cast<std::size_t>(node / (n(0) * n(1)))]};
  }
  /// Node i of a cell, lexicographic as in a Grid.
  [[nodiscard]] std::int64_t node(std::int64_t cell, int i) const {
    int const m = order + 1;
    std::int64_t const x = cell % cells(0) * order + i % m, y = cell / cells(0) % cells(1) * order + i / m % m,
                       z = cell / (cells(0) * cells(1)) * order + i / (m * m);
    return (z * n(1) + y) * n(0) + x;
  }
};

/// A hexahedral mesh: arrays, or a lattice, which needs none. Precondition of all functions: it was made from one of them.
class Mesh {
public:
  Mesh() = default;
  Mesh(Grid const& grid) : kind_(grid) {}
  Mesh(ImageGrid const& image) : kind_(image) {}
  Mesh(RectilinearGrid const& rectilinear) : kind_(rectilinear) {}

  [[nodiscard]] Grid const* grid() const { return std::get_if<Grid>(&kind_); }
  [[nodiscard]] ImageGrid const* image() const { return std::get_if<ImageGrid>(&kind_); }
  [[nodiscard]] RectilinearGrid const* rectilinear() const { return std::get_if<RectilinearGrid>(&kind_); }

  [[nodiscard]] int order() const {
    return grid() != nullptr ? grid()->order : rectilinear() != nullptr ? rectilinear()->order : 1;
  }
  [[nodiscard]] int nodes_per_cell() const { return (order() + 1) * (order() + 1) * (order() + 1); }
  [[nodiscard]] std::int64_t n_points() const {
    return std::visit([](auto const& mesh) { return mesh.n_points(); }, kind_);
  }
  [[nodiscard]] std::int64_t n_cells() const {
    return std::visit([](auto const& mesh) { return mesh.n_cells(); }, kind_);
  }
  [[nodiscard]] std::array<double, 3> point(std::int64_t node) const {
    return std::visit([node](auto const& mesh) { return mesh.point(node); }, kind_);
  }
  /// Writes x, y, z of each of these nodes.
  void points_of(std::span<std::int64_t const> nodes, double* out) const {
    if (Grid const* const g = grid()) {
      g->points_of(nodes, out);
      return;
    }
    for (std::int64_t const node : nodes) {
      auto const x = point(node);
      out = std::copy(x.begin(), x.end(), out);
    }
  }
  /// Writes the nodes_per_cell() nodes of a cell; of n cells from `first` on.
  void nodes(std::int64_t cell, std::int64_t* out) const { nodes(cell, 1, out); }
  void nodes(std::int64_t first, std::int64_t n, std::int64_t* out) const {
    if (Grid const* const g = grid()) {
      g->nodes(first, n, out);
      return;
    }
    for (std::int64_t cell = first; cell < first + n; ++cell)
      for (int i = 0; i < nodes_per_cell(); ++i)
        *out++ = rectilinear() != nullptr ? rectilinear()->node(cell, i) : image()->node(cell, i);
  }
  /// The same, first nodes of these cells before the second ones: along a line of cells they follow each other.
  [[nodiscard]] std::vector<std::int64_t> nodes_by_place(std::int64_t first, std::int64_t n) const {
    auto const of_cell = static_cast<std::size_t>(nodes_per_cell()), n_cells = static_cast<std::size_t>(n);
    std::vector<std::int64_t> by_cell(of_cell * n_cells), result(by_cell.size());
    nodes(first, n, by_cell.data());
    for (std::size_t i = 0; i < of_cell; ++i)
      for (std::size_t cell = 0; cell < n_cells; ++cell)
        result[i * n_cells + cell] = by_cell[cell * of_cell + i];
    return result;
  }

private:
  std::variant<Grid, ImageGrid, RectilinearGrid> kind_;
};

/// Values on the points or on the cells of a Mesh: `components` per point or cell. They are an array of numbers or of integers, or
/// a function makes them. Exactly one of these is set.
struct Field {
  std::string name;
  int components = 1;  ///< per point or cell; they are adjacent
  std::span<double const> values;
  std::span<int const> integers;
  Fill<double> make_values = {};
  Fill<int> make_integers = {};
  std::int64_t n_made = 0;  ///< values of such a function, components included

  [[nodiscard]] bool has_integers() const { return !integers.empty() || make_integers; }
  /// Of all components.
  [[nodiscard]] std::int64_t n_values() const { return std::ssize(values) + std::ssize(integers) + n_made; }
};

}  // namespace poisson::output
