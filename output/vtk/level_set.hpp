#pragma once

#include "output/grid.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace poisson::output {

/// Triangles where a function on a mesh has a value.
struct LevelSet {
  /// A point on the line from one node to another: values there are (1 - share) v(first) + share v(second).
  struct Point {
    std::int64_t first, second;
    double share;
    [[nodiscard]] double interpolate(double of_first, double of_second) const { return of_first + share * (of_second - of_first); }
  };
  std::vector<Point> points;
  std::vector<std::int64_t> triangles;  ///< three points each, counterclockwise where the function is larger
  std::vector<std::int64_t> cells;      ///< that a triangle is from
};

/// Writes the values of a function at these nodes. Called by several threads at once.
using ValuesOfNodes = std::function<void(std::span<std::int64_t const> nodes, double* out)>;

/// The set where the function with these values at the nodes is `level`. A cell of order p counts as p x p x p hexahedra, each as
/// six tetrahedra, in which the function is linear; neighbours agree about their common face, so that the surface has no gaps. A
/// node where it is exactly `level` belongs to the larger values, unless nothing is smaller. Threaded; the result does not depend
/// on the number of threads. Throws what `values` throws, here and below.
[[nodiscard]] LevelSet level_set(Mesh const& mesh, ValuesOfNodes const& values, double level);
/// Finds the set where the function is `level`. `equal_is_larger` says whether a node where it is exactly `level` belongs to the
/// larger values. Parts of a mesh must agree about that, and about the order of nodes, by which cells are divided: `number_of`
/// tells their numbers in the whole mesh; where it is empty, they have their own.
[[nodiscard]] LevelSet level_set(Mesh const& mesh, ValuesOfNodes const& values, double level, bool equal_is_larger,
                                 std::function<std::int64_t(std::int64_t)> const& number_of = {});

}  // namespace poisson::output
