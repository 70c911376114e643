#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/element_tables.hpp"
#include "gpu/kernels/lattice_places.hpp"

#include <cstdint>

namespace poisson {

/// Two levels of multigrid: elements of order p on the cells of lattices, and elements of order 1 on the same cells, whose nodes
/// are the vertices (layout_of_vertices). `fixed`, by unknown on the rims of a level: 1 where there is a Dirichlet value. `owned`,
/// by place on a rim of the fine level: 1 where this copy is the first one of its unknown; null on a box.
///
/// P evaluates trilinear functions at the Gauss-Lobatto points of the cells, which on faces that lattices share is the same from
/// both sides; 0 in rows and columns of unknowns with Dirichlet values.
struct OrderLevels {
  LatticeView fine, coarse;
  std::uint8_t const *fixed_of_fine = nullptr, *fixed_of_coarse = nullptr;
  std::uint8_t const* owned = nullptr;
  double weight[max_order] = {};  ///< of a vertex's function at a distance of so many points along an edge
};

/// Makes the two levels with their weights; the other pointers are still to be set.
[[nodiscard]] inline OrderLevels order_levels_of(LatticeView const& fine, LatticeView const& coarse) {
  OrderLevels result{fine, coarse};
  Quadrature1D const points = lobatto_quadrature(fine.order + 1);
  for (std::int32_t d = 0; d < fine.order; ++d)
    result.weight[d] = 1 - points.point[static_cast<std::size_t>(d)];
  return result;
}

/// P between these levels, in the arithmetic V: float or double. Pointers are in the backend's memory. On a device calls enqueue
/// work.
template <class V>
class OrderLevelKernels {
public:
  virtual ~OrderLevelKernels() = default;
  /// b = P^T r and x = factor D^-1 b, unless *stop is set.
  virtual void restrict_residual(Context& context, OrderLevels const& levels, V const* r, V const* diagonal, V factor, V* b, V* x,
                                 std::int32_t const* stop) const = 0;
  /// x += P e, unless *stop is set. Precondition: e is 0 at unknowns with Dirichlet values.
  virtual void prolong(Context& context, OrderLevels const& levels, V const* e, V* x, std::int32_t const* stop) const = 0;

  static OrderLevelKernels const& cpu();
  static OrderLevelKernels const& cuda();
};

template <>
OrderLevelKernels<float> const& OrderLevelKernels<float>::cpu();
template <>
OrderLevelKernels<float> const& OrderLevelKernels<float>::cuda();
template <>
OrderLevelKernels<double> const& OrderLevelKernels<double>::cpu();
template <>
OrderLevelKernels<double> const& OrderLevelKernels<double>::cuda();

/// What both backends do unknown by unknown.
namespace order_levels {

/// Inner nodes of one kind (LatticeLayout) by cell: those of consecutive cells in x are consecutive unknowns.
struct Kind {
  std::int64_t first;  ///< unknown of that of cell (0, 0, 0), if there were one
  std::int32_t line, plane;

  POISSON_HOST_DEVICE Kind(LatticeView const& fine, std::int64_t lattice, std::int32_t x, std::int32_t y, std::int32_t z) {
    auto const without_first = [](std::int32_t residue) { return residue == 0 ? 1 : 0; };
    std::int32_t const in_kind = fine.order == 1 ? 0 : fine.kind_first[(z * fine.order + y) * fine.order + x];
    line = fine.cells - without_first(x);
    plane = line * (fine.cells - without_first(y));
    first = lattice * fine.inner_of_lattice() + in_kind - std::int64_t{without_first(z)} * plane - without_first(y) * line -
            without_first(x);
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t unknown(std::int32_t i, std::int32_t j, std::int32_t k) const {
    return first + std::int64_t{k} * plane + j * line + i;
  }
};

/// The part of lane `lane` of `lanes` in P^T r at a vertex of a box.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V restricted_in_box(OrderLevels const& levels, V const* r, std::int64_t vertex, int lane,
                                                      int lanes) {
  LatticeView const& fine = levels.fine;
  LatticeView::InBox const node = levels.coarse.box_node(vertex);
  std::int32_t const p = fine.order;
  std::int32_t first[3], count[3];
  for (int d = 0; d < 3; ++d) {
    first[d] = node.i[d] == 0 ? 0 : 1 - p;
    count[d] = p - first[d] - (node.i[d] == fine.box[d] ? p - 1 : 0);
  }
  V sum = 0;
  auto const add = [&](std::int32_t dx, std::int32_t dy, std::int32_t dz) {
    std::int64_t const at = fine.box_unknown(p * node.i[0] + dx, p * node.i[1] + dy, p * node.i[2] + dz);
    if (levels.fixed_of_fine[at] != 0)
      return;
    auto const distance = [](std::int32_t d) { return d < 0 ? -d : d; };
    sum += static_cast<V>(levels.weight[distance(dx)] * levels.weight[distance(dy)] * levels.weight[distance(dz)]) * r[at];
  };
  if (lanes == 1) {  // without divisions
    for (std::int32_t z = first[2]; z < first[2] + count[2]; ++z)
      for (std::int32_t y = first[1]; y < first[1] + count[1]; ++y)
        for (std::int32_t x = first[0]; x < first[0] + count[0]; ++x)
          add(x, y, z);
    return sum;
  }
  for (std::int32_t number = lane; number < count[0] * count[1] * count[2]; number += lanes)
    add(first[0] + number % count[0], first[1] + number / count[0] % count[1], first[2] + number / (count[0] * count[1]));
  return sum;
}

/// The part of lane `lane` of `lanes` in P^T r at an unknown on the rims of the coarse level. Fine nodes that several lattices have
/// count in the first one.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V restricted(OrderLevels const& levels, V const* r, std::int64_t on_rim, int lane, int lanes) {
  LatticeView const &fine = levels.fine, &coarse = levels.coarse;
  if (fine.is_box())
    return restricted_in_box(levels, r, on_rim, lane, lanes);
  LatticeRim const rim = fine.rim(), rim_of_coarse = coarse.rim();
  std::int32_t const p = fine.order;
  V sum = 0;
  for (std::int64_t c = coarse.copy_offsets[on_rim]; c < coarse.copy_offsets[on_rim + 1]; ++c) {
    std::int64_t const lattice = coarse.copies[c] / rim_of_coarse.size();
    LatticeRim::Node const node = rim_of_coarse.node(coarse.copies[c] % rim_of_coarse.size());
    auto const first = [&](std::int32_t index) { return index == 0 ? 0 : 1 - p; };
    auto const count = [&](std::int32_t index) { return index == 0 || index == coarse.m - 1 ? p : 2 * p - 1; };
    std::int32_t const nx = count(node.i), ny = count(node.j), nz = count(node.k), n = nx * ny * nz;
    auto const add = [&](std::int32_t dx, std::int32_t dy, std::int32_t dz) {
      std::int32_t const x = p * node.i + dx, y = p * node.j + dy, z = p * node.k + dz;
      std::int64_t at = 0;
      if (rim.holds(x, y, z)) {
        std::int64_t const place = lattice * rim.size() + rim.place(x, y, z);
        at = fine.rim_unknowns[place];
        if (levels.owned[place] == 0 || levels.fixed_of_fine[at - fine.n_inner()] != 0)
          return;
      } else
        at = fine.inner_unknown(lattice, x, y, z);
      auto const distance = [](std::int32_t d) { return d < 0 ? -d : d; };
      sum += static_cast<V>(levels.weight[distance(dx)] * levels.weight[distance(dy)] * levels.weight[distance(dz)]) * r[at];
    };
    std::int32_t const x0 = first(node.i), y0 = first(node.j), z0 = first(node.k);
    if (lanes == 1) {  // without divisions
      for (std::int32_t z = z0; z < z0 + nz; ++z)
        for (std::int32_t y = y0; y < y0 + ny; ++y)
          for (std::int32_t x = x0; x < x0 + nx; ++x)
            add(x, y, z);
      continue;
    }
    for (std::int32_t number = lane; number < n; number += lanes)
      add(x0 + number % nx, y0 + number / nx % ny, z0 + number / (nx * ny));
  }
  return sum;
}

/// P e at an unknown on the rims of the fine level.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V prolonged(OrderLevels const& levels, V const* e, std::int64_t on_rim) {
  if (levels.fixed_of_fine[on_rim] != 0)
    return 0;
  LatticeView const &fine = levels.fine, &coarse = levels.coarse;
  std::int32_t const p = fine.order;
  std::int64_t lattice = 0;
  LatticeRim::Node node{};  // of a box: among all of its nodes
  if (fine.is_box()) {
    LatticeView::InBox const in_box = fine.box_node(on_rim);
    node = {in_box.i[0], in_box.i[1], in_box.i[2]};
  } else {
    LatticeRim const rim = fine.rim();
    std::int32_t const place = fine.copies[fine.copy_offsets[on_rim]];
    lattice = place / rim.size();
    node = rim.node(place % rim.size());
  }
  std::int32_t const dx = node.i % p, dy = node.j % p, dz = node.k % p;
  V sum = 0;
  for (std::int32_t z = 0; z <= (dz > 0 ? 1 : 0); ++z)
    for (std::int32_t y = 0; y <= (dy > 0 ? 1 : 0); ++y)
      for (std::int32_t x = 0; x <= (dx > 0 ? 1 : 0); ++x) {
        std::int64_t const from = fine.is_box() ? coarse.box_unknown(node.i / p + x, node.j / p + y, node.k / p + z)
                                                : coarse.unknown(lattice, node.i / p + x, node.j / p + y, node.k / p + z);
        auto const weight = [&](std::int32_t d, std::int32_t end) { return levels.weight[end != 0 ? p - d : d]; };
        sum += static_cast<V>(weight(dx, x) * weight(dy, y) * weight(dz, z)) * e[from];
      }
  return sum;
}

}  // namespace order_levels

}  // namespace poisson
