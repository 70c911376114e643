#pragma once

#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/label_stencil.hpp"

/// What both backends do row by row for LabelStencilKernels.
namespace poisson::label_rows {

using box_rows::Node;

/// The label of a cell; n_labels beyond the box.
[[nodiscard]] inline POISSON_HOST_DEVICE std::int32_t label_of(LabelStencilView const& a, std::int64_t cx, std::int64_t cy,
                                                               std::int64_t cz) {
  std::int64_t const nx = a.box.nodes[0] - 1, ny = a.box.nodes[1] - 1, nz = a.box.nodes[2] - 1;
  if (cx < 0 || cy < 0 || cz < 0 || cx >= nx || cy >= ny || cz >= nz)
    return a.n_labels;
  std::int64_t const place = (cz * ny + cy) * nx + cx;
  return a.bytes != nullptr ? a.bytes[place] : a.words[place];
}

[[nodiscard]] inline POISSON_HOST_DEVICE bool is_dirichlet(LabelStencilView const& a, Node const& node) {
  return box_rows::is_dirichlet_plane(a.box, 0, node.i[0]) || box_rows::is_dirichlet_plane(a.box, 1, node.i[1]) ||
         box_rows::is_dirichlet_plane(a.box, 2, node.i[2]);
}

/// The entry of a node and the one at that distance, as if there were no conditions: the sum over the cells of both, by ascending
/// number.
[[nodiscard]] inline POISSON_HOST_DEVICE double entry(LabelStencilView const& a, Node const& node, int dx, int dy, int dz) {
  int const differing = (dx != 0 ? 1 : 0) + (dy != 0 ? 2 : 0) + (dz != 0 ? 4 : 0);
  double sum = 0;
  for (int z = dz > 0 ? 0 : -1; z <= (dz < 0 ? -1 : 0); ++z)
    for (int y = dy > 0 ? 0 : -1; y <= (dy < 0 ? -1 : 0); ++y)
      for (int x = dx > 0 ? 0 : -1; x <= (dx < 0 ? -1 : 0); ++x)
        sum += a.entries[8 * label_of(a, node.i[0] + x, node.i[1] + y, node.i[2] + z) + differing];
  return sum;
}

/// Entry s = 13 + 9 dz + 3 dy + dx of the row of a node; -0.0 where nothing is stored.
[[nodiscard]] inline POISSON_HOST_DEVICE double stored_entry(LabelStencilView const& a, Node const& node, int s) {
  int const dx = s % 3 - 1, dy = s / 3 % 3 - 1, dz = s / 9 - 1;
  if (s != 13) {
    Node const other{{node.i[0] + dx, node.i[1] + dy, node.i[2] + dz}};
    for (int d = 0; d < 3; ++d)
      if (other.i[d] < 0 || other.i[d] >= a.box.nodes[d])
        return -0.0;
    if (is_dirichlet(a, node) || is_dirichlet(a, other))
      return -0.0;
  }
  return entry(a, node, dx, dy, dz);
}

/// Fills a row of fill_diagonals.
template <class V>
inline POISSON_HOST_DEVICE void fill_row(LabelStencilView const& a, std::int64_t first, std::int64_t end, Node const& node,
                                         V* values) {
  std::int64_t const plane = a.box.nodes[0] * a.box.nodes[1], n = (end - first) * plane,
                     row = box_rows::index_of(a.box, node) - first * plane;
  for (int k = 0; k < half_stencil::diagonals; ++k)
    values[k * n + row] = static_cast<V>(node.i[2] - half_stencil::dz(k) < first ? -0.0 : stored_entry(a, node, 13 - k));
}

/// The product in the row of a Dirichlet node. In the vectors of solvers x is 0 there, as b is.
template <class S>
[[nodiscard]] inline POISSON_HOST_DEVICE S dirichlet_row(LabelStencilView const& a, Node const& node, S x) {
  if (x == S(0))
    return x;
  S sum(0);
  for (int cell = 0; cell < 8; ++cell) {
    double const of_cell =
        a.entries[8 * label_of(a, node.i[0] - 1 + (cell & 1), node.i[1] - 1 + (cell >> 1 & 1), node.i[2] - 1 + (cell >> 2))];
    sum = sum + static_cast<std::conditional_t<std::is_same_v<S, float>, float, double>>(of_cell) * x;
  }
  return sum;
}

/// b - A (x + x_low) in the row of a node.
[[nodiscard]] inline POISSON_HOST_DEVICE double residual_of_row(LabelStencilView const& a, Node const& node, double const* x,
                                                                double const* x_low, double b) {
  AccurateSum sum(b);
  bool const alone = is_dirichlet(a, node);
  for (int cell = 0; cell < 8; ++cell) {
    Node const first{{node.i[0] - 1 + (cell & 1), node.i[1] - 1 + (cell >> 1 & 1), node.i[2] - 1 + (cell >> 2)}};
    std::int32_t const label = label_of(a, first.i[0], first.i[1], first.i[2]);
    if (label == a.n_labels)
      continue;
    int const own = 7 - cell;
    for (int corner = 0; corner < 8; ++corner) {
      Node const other{{first.i[0] + (corner & 1), first.i[1] + (corner >> 1 & 1), first.i[2] + (corner >> 2)}};
      if (corner != own && (alone || is_dirichlet(a, other)))
        continue;
      double const of_cell = -a.entries[8 * label + (corner ^ own)];
      std::int64_t const column = box_rows::index_of(a.box, other);
      sum.add_product(of_cell, x[column]);
      if (x_low != nullptr)
        sum.add_product(of_cell, x_low[column]);
    }
  }
  return sum.value();
}

}  // namespace poisson::label_rows
