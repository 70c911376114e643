#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/kernels/csr.hpp"

#include <array>
#include <cstdint>

namespace poisson {

/// CommonNodes are nodes that two boxes hold, each with its own numbering. The numbers at them are those of one vector, or of
/// several, one behind another.
struct CommonNodes {
  std::int32_t count[3] = {0, 0, 0};
  std::int64_t first_from = 0, line_from = 0, plane_from = 0;  ///< place of the first node, and steps, in the one box
  std::int64_t first_to = 0, line_to = 0, plane_to = 0;        ///< in the other one
  std::int32_t vectors = 1;
  std::int64_t vector_from = 0, vector_to = 0;  ///< steps from vector to vector

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t size() const { return std::int64_t{count[0]} * count[1] * count[2]; }
};

/// Describes `nodes`, which both boxes hold.
[[nodiscard]] inline CommonNodes common_nodes(NodeBox const& nodes, NodeBox const& from, NodeBox const& to) {
  CommonNodes result;
  if (nodes.size() == 0)
    return result;
  for (std::size_t d = 0; d < 3; ++d)
    result.count[d] = static_cast<std::int32_t>(nodes.count(d));
  result.first_from = from.index(nodes.low);
  result.line_from = from.count(0);
  result.plane_from = from.count(0) * from.count(1);
  result.first_to = to.index(nodes.low);
  result.line_to = to.count(0);
  result.plane_to = to.count(0) * to.count(1);
  return result;
}

/// Describes `nodes` in so many vectors. A vector has entries for all nodes of its box.
[[nodiscard]] inline CommonNodes common_nodes(NodeBox const& nodes, NodeBox const& from, NodeBox const& to, std::int32_t vectors) {
  CommonNodes result = common_nodes(nodes, from, to);
  result.vectors = vectors;
  result.vector_from = from.size();
  result.vector_to = to.size();
  return result;
}

/// Describes the same copy with fewer lines: lines, and planes, that follow each other in both boxes become one line. The counts
/// are {n, 1, 1} where all do.
[[nodiscard]] inline CommonNodes joined(CommonNodes nodes) {
  for (int joint = 0; joint < 2; ++joint)
    if (nodes.count[1] == 1 || (nodes.line_from == nodes.count[0] && nodes.line_to == nodes.count[0])) {
      std::int64_t const length = std::int64_t{nodes.count[0]} * nodes.count[1];
      if (length > INT32_MAX)
        break;
      nodes.count[0] = static_cast<std::int32_t>(length);
      nodes.count[1] = nodes.count[2];
      nodes.count[2] = 1;
      nodes.line_from = nodes.plane_from;
      nodes.line_to = nodes.plane_to;
    }
  return nodes;
}

/// The place in the box to which a copy goes of node `number`, x fastest.
[[nodiscard]] inline POISSON_HOST_DEVICE std::int64_t place_of(CommonNodes const& nodes, std::int64_t number) {
  std::int64_t const line = number / nodes.count[0];
  return nodes.first_to + line / nodes.count[1] * nodes.plane_to + line % nodes.count[1] * nodes.line_to + number % nodes.count[0];
}
/// The diagonal of half_stencil in which the nodes at these places of a box are coupled, or -1 where the entry is in the other row.
[[nodiscard]] inline POISSON_HOST_DEVICE int diagonal_between(std::int64_t row, std::int64_t column, std::int64_t nx,
                                                              std::int64_t ny) {
  std::int64_t const dx = row % nx - column % nx, dy = row / nx % ny - column / nx % ny, dz = row / (nx * ny) - column / (nx * ny);
  std::int64_t const s = 9 * dz + 3 * dy + dx;
  return s < 0 ? -1 : static_cast<int>(s);
}

/// What the vectors of a block of nodes and its surroundings need on several ranks, in the arithmetic V: float or double. Pointers
/// are in the backend's memory; on a device calls enqueue work.
template <class V>
class BlockKernels {
public:
  virtual ~BlockKernels() = default;
  /// to = from at these nodes of all vectors. Two numbers a node. Precondition: they do not overlap.
  virtual void copy(Context& context, CommonNodes const& nodes, V const* from, V* to) const = 0;
  virtual void copy_from_double(Context& context, CommonNodes const& nodes, double const* from, V* to) const = 0;
  /// Copies the numbers at these nodes of one vector to double. Nothing is done when *stop is not 0.
  virtual void copy_to_double(Context& context, CommonNodes const& nodes, V const* from, double* to,
                              std::int32_t const* stop) const = 0;
  /// Puts the entries of some rows into diagonals of half_stencil on a box, except those that the diagonals have in another row.
  /// Row r of `entries` is node rows[r] of those that `own` takes to the box; column c is at place columns[c] of the box, which has
  /// these `nodes`. 12 bytes an entry.
  virtual void add_entries(Context& context, CsrView const& entries, std::int32_t const* rows, CommonNodes const& own,
                           std::array<std::int32_t, 3> const& nodes, std::int32_t const* columns, V* values) const = 0;
  /// Diagonals of half_stencil on a box of these nodes, laid out as HalfCdsView says: entries that couple with nodes beyond the box
  /// become -0.0: nothing is stored.
  virtual void clip(Context& context, std::array<std::int32_t, 3> const& nodes, V* values) const = 0;
  /// places[i] = place_of(nodes, i) for all of these nodes.
  virtual void list(Context& context, CommonNodes const& nodes, std::int32_t* places) const = 0;

  static BlockKernels const& cpu();
  static BlockKernels const& cuda();
};

template <>
BlockKernels<float> const& BlockKernels<float>::cpu();
template <>
BlockKernels<float> const& BlockKernels<float>::cuda();
template <>
BlockKernels<double> const& BlockKernels<double>::cpu();
template <>
BlockKernels<double> const& BlockKernels<double>::cuda();

}  // namespace poisson
