#pragma once

#include "assembly/space/space.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace poisson::assembly {

/// Calls action(unknown) for nodes of larger cells that lie on the edges of a face of a cell, between its corners: a boundary that
/// has the face has them, though the cells that they belong to may have no face there. Only straight edges are looked at. `dofs` as
/// Space::dofs gives them for the cell. An unknown may be named more than once.
template <class Action>
void for_nodes_on_edges(Space const& space, std::span<std::int32_t const> dofs, int face, Action const& action) {
  if (space.hanging.size() == 0)
    return;
  int const order = space.order, n = order + 1, d = face / 2;
  std::array<int, 3> const stride{1, n, n * n};
  auto const at = [&](int i, int j) {  // of the face
    return static_cast<std::size_t>(face % 2 * order * stride[static_cast<std::size_t>(d)] + i * stride[d == 0 ? 1 : 0] +
                                    j * stride[d == 2 ? 1 : 2]);
  };
  std::array<std::array<Point3, 2>, 4> edges;
  for (std::size_t e = 0; e < 4; ++e)
    for (std::size_t end = 0; end < 2; ++end) {
      int const along = end == 0 ? 0 : order, side = e % 2 == 0 ? 0 : order;
      edges[e][end] = space.point(dofs[e < 2 ? at(along, side) : at(side, along)]);
    }
  auto const is_between = [&](Point3 const& x, std::array<Point3, 2> const& edge) {
    double along = 0, length = 0, away = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      along += (x[i] - edge[0][i]) * (edge[1][i] - edge[0][i]);
      length += (edge[1][i] - edge[0][i]) * (edge[1][i] - edge[0][i]);
    }
    double const t = along / length;
    for (std::size_t i = 0; i < 3; ++i) {
      double const off = x[i] - edge[0][i] - t * (edge[1][i] - edge[0][i]);
      away += off * off;
    }
    constexpr double rounding = 1e-9;
    return t >= -rounding && t <= 1 + rounding && away <= rounding * rounding * length;
  };
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) {
      std::int32_t const unknown = dofs[at(i, j)];
      if (!space.hanging.constrained(unknown))
        continue;
      for (auto const& [free, weight] : space.hanging.row(unknown))
        for (auto const& edge : edges)
          if (is_between(space.point(free), edge)) {
            action(free);
            break;
          }
    }
}

}  // namespace poisson::assembly
