#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/node_box.hpp"

#include <array>
#include <cstdint>

namespace poisson {

/// The same nodes in two boxes that hold them, each with its own numbering.
struct CommonNodes {
  std::int32_t count[3] = {0, 0, 0};
  std::int64_t first_from = 0, line_from = 0, plane_from = 0;  ///< place of the first node, and steps, in the one box
  std::int64_t first_to = 0, line_to = 0, plane_to = 0;        ///< in the other one

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t size() const { return std::int64_t{count[0]} * count[1] * count[2]; }
};

/// `nodes`, which both boxes hold.
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

/// What the vectors of a block of nodes and its surroundings need on several ranks, in the arithmetic V: float or double. Pointers
/// are in the backend's memory; on a device calls enqueue work.
template <class V>
class BlockKernels {
public:
  virtual ~BlockKernels() = default;
  /// to = from at these nodes. Two numbers a node. Precondition: they do not overlap.
  virtual void copy(Context& context, CommonNodes const& nodes, V const* from, V* to) const = 0;
  virtual void copy_from_double(Context& context, CommonNodes const& nodes, double const* from, V* to) const = 0;
  /// Nothing is done when *stop is not 0.
  virtual void copy_to_double(Context& context, CommonNodes const& nodes, V const* from, double* to,
                              std::int32_t const* stop) const = 0;
  /// message[i] = x[places[i]] for i < n.
  virtual void pack(Context& context, std::int64_t n, std::int32_t const* places, V const* x, V* message) const = 0;
  /// x[places[i]] = message[i]. No place is named twice.
  virtual void unpack(Context& context, std::int64_t n, std::int32_t const* places, V const* message, V* x) const = 0;
  /// Diagonals of half_stencil on a box of these nodes, laid out as HalfCdsView says: entries that couple with nodes beyond the box
  /// become -0.0: nothing is stored.
  virtual void clip(Context& context, std::array<std::int32_t, 3> const& nodes, V* values) const = 0;

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
