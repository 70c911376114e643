#pragma once

#include "gpu/core/host_device.hpp"
#include "gpu/core/lattice_layout.hpp"

#include <cstdint>

namespace poisson {

// Where nodes are in vectors, in two steps: what all nodes of a plane have in common, and what a node has in all planes. Vectors
// have fewer than 2^31 entries, and so have the tables of LatticeView. What is about inner nodes is for order 1.

/// LatticePlane holds what all nodes of plane k of a lattice have in common.
struct LatticePlane {
  std::int32_t rim_first;    ///< place in LatticeView::rim_unknowns of its first node on the rim
  std::int32_t inner_first;  ///< unknown of its first inner node
  bool face;                 ///< whether it has none

  /// `all_on_rim` as in LatticeView.
  POISSON_HOST_DEVICE LatticePlane(std::int32_t m, std::int32_t lattice, std::int32_t k, bool all_on_rim = false) {
    std::int32_t const inner = m - 2, ring = 4 * (m - 1), first = lattice * (2 * m * m + inner * ring);
    rim_first = all_on_rim ? (lattice * m + k) * m * m : first + (k == 0 ? 0 : k == m - 1 ? m * m : 2 * m * m + (k - 1) * ring);
    inner_first = (lattice * inner + k - 1) * inner * inner;
    face = all_on_rim || k == 0 || k == m - 1;
  }
};

/// LatticePlaneNode holds what the node (i, j) of a plane has in all planes.
struct LatticePlaneNode {
  std::int32_t of_face;   ///< its place among the nodes of a face
  std::int32_t of_inner;  ///< in another plane its place among those of the ring, or among the inner nodes
  bool on_ring;

  POISSON_HOST_DEVICE LatticePlaneNode(std::int32_t m, std::int32_t i, std::int32_t j) {
    of_face = j * m + i;
    on_ring = i == 0 || j == 0 || i == m - 1 || j == m - 1;
    of_inner = j == 0       ? i
               : j == m - 1 ? m + i
               : i == 0     ? 2 * m + j - 1
               : i == m - 1 ? 3 * m - 2 + j - 1
                            : (j - 1) * (m - 2) + i - 1;
  }
};

struct LatticePlace {
  bool on_rim;
  std::int32_t at;  ///< in LatticeView::rim_unknowns if on_rim; else the unknown

  POISSON_HOST_DEVICE LatticePlace(LatticePlane plane, LatticePlaneNode node)
      : on_rim(plane.face || node.on_ring),
        at(on_rim ? plane.rim_first + (plane.face ? node.of_face : node.of_inner) : plane.inner_first + node.of_inner) {}
};

/// Calls visit(lattice, i, j, k) for the nodes of cells of a box that are the unknown, by ascending cell.
template <class Visit>
POISSON_HOST_DEVICE void for_nodes_in_box(LatticeView const& lattices, std::int64_t unknown, Visit const& visit) {
  LatticeView::InBox const node = lattices.box_node(unknown);
  std::int32_t const p = lattices.order;
  std::int32_t first[3], end[3];
  for (int d = 0; d < 3; ++d) {
    std::int32_t const own = node.i[d] / p;
    first[d] = own > 0 && own * p == node.i[d] ? own - 1 : own;
    end[d] = own < lattices.box[d] ? own + 1 : own;
  }
  for (std::int32_t z = first[2]; z < end[2]; ++z)
    for (std::int32_t y = first[1]; y < end[1]; ++y)
      for (std::int32_t x = first[0]; x < end[0]; ++x)
        visit((std::int64_t{z} * lattices.box[1] + y) * lattices.box[0] + x, node.i[0] - p * x, node.i[1] - p * y,
              node.i[2] - p * z);
}

/// Calls visit(lattice, i, j, k) for the nodes that are the unknown, by ascending lattice.
template <class Visit>
POISSON_HOST_DEVICE void for_nodes_of(LatticeView const& lattices, std::int64_t unknown, Visit const& visit) {
  if (lattices.is_box()) {
    for_nodes_in_box(lattices, unknown, visit);
    return;
  }
  std::int64_t const on_rim = unknown - lattices.n_inner();
  if (on_rim < 0) {
    LatticeView::Node const node = lattices.inner_node(unknown);
    visit(node.lattice, node.i, node.j, node.k);
    return;
  }
  LatticeRim const rim = lattices.rim();
  for (std::int64_t c = lattices.copy_offsets[on_rim]; c < lattices.copy_offsets[on_rim + 1]; ++c) {
    std::int64_t const place = lattices.copies[c];
    LatticeRim::Node const node = rim.node(place % rim.size());
    visit(place / rim.size(), node.i, node.j, node.k);
  }
}

}  // namespace poisson
