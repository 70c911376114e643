#pragma once

#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

/// Values on the points or on the cells of a Grid; exactly one of `values` and `integers` is set.
struct Field {
  std::string name;
  int components = 1;  ///< interleaved
  std::span<double const> values;
  std::span<int const> integers;
};

}  // namespace poisson::output
