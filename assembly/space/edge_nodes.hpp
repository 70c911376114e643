#pragma once

#include "assembly/space/space.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace poisson::assembly {

/// Calls action(unknown) for nodes of larger cells that lie on the edges of a face of a cell: a boundary that has the face has
/// them, though the cells that they belong to may have no face there. They are those that hanging nodes on these edges follow: an
/// edge of the boundary is inside of no face between two cells, so that such a node hangs on an edge of a larger cell, straight or
/// curved. `dofs` as Space::dofs gives them for the cell. An unknown may be named more than once. Precondition: the face is on the
/// boundary.
template <class Action>
void for_nodes_on_edges(Space const& space, std::span<std::int32_t const> dofs, int face, Action const& action) {
  if (space.hanging.size() == 0)
    return;
  constexpr double rounding = 1e-12;
  int const order = space.order, n = order + 1, d = face / 2;
  std::array<int, 3> const stride{1, n, n * n};
  int const first = face % 2 * order * stride[static_cast<std::size_t>(d)], along = stride[d == 0 ? 1 : 0],
            across = stride[d == 2 ? 1 : 2];
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) {
      bool const on_edge = i == 0 || i == order || j == 0 || j == order;
      std::int32_t const unknown = dofs[static_cast<std::size_t>(first + i * along + j * across)];
      if (on_edge && space.hanging.constrained(unknown))
        for (auto const& [free, weight] : space.hanging.row(unknown))
          if (std::abs(weight) > rounding)
            action(free);
    }
}

}  // namespace poisson::assembly
