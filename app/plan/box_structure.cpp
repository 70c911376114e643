#include "app/plan/box_structure.hpp"

#include <cstdlib>
#include <set>

namespace poisson::app {

std::array<std::int64_t, 3> box_nodes_of(CsrMatrix const& matrix) {
  constexpr std::array<std::int64_t, 3> none{};
  // 13 distances to neighbours behind a node: 1, n_x - 1, n_x, n_x + 1, n_x n_y - n_x - 1, ..., n_x n_y + n_x + 1.
  constexpr std::size_t count = 13, of_row = 2, of_plane = 8;
  std::set<std::int64_t> distances;
  for (std::int64_t row = 0; row < matrix.n_rows; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      if (std::int64_t const distance = matrix.columns[e] - row; distance > 0) {
        distances.insert(distance);
        if (distances.size() > count)
          return none;
      }
  if (distances.size() != count)
    return none;
  std::int64_t const nx = *std::next(distances.begin(), of_row), plane = *std::next(distances.begin(), of_plane);
  if (nx < 3 || plane % nx != 0 || plane / nx < 3 || matrix.n_rows % plane != 0 || matrix.n_rows / plane < 3)
    return none;
  // With these distances an entry may still reach around the end of a line.
  auto const coordinates = [&](std::int64_t i) { return std::array<std::int64_t, 3>{i % nx, i % plane / nx, i / plane}; };
  for (std::int64_t row = 0; row < matrix.n_rows; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      auto const from = coordinates(row), to = coordinates(matrix.columns[e]);
      for (std::size_t d = 0; d < 3; ++d)
        if (std::abs(to[d] - from[d]) > 1)
          return none;
    }
  return {nx, plane / nx, matrix.n_rows / plane};
}

}  // namespace poisson::app
