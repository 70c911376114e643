#pragma once

#include "gpu/core/host_vector.hpp"
#include "gpu/core/node_box.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace poisson {

/// The places around a box of nodes that repeats itself, at which images of its own nodes stand: one box of them for every move by
/// periods that brings some there. `period`: 0 in directions in which nothing repeats itself.
[[nodiscard]] inline std::vector<NodeBox> images_around(NodeBox const& own, NodeBox const& around,
                                                        std::array<std::int64_t, 3> const& period) {
  std::vector<NodeBox> result;
  for_moves(period, 1, [&](std::array<std::int64_t, 3> const& times) {
    NodeBox const image = common(moved(own, period, times), around);
    if (times != std::array<std::int64_t, 3>{} && image.size() > 0)
      result.push_back(image);
  });
  return result;
}

/// The rows and ghosts of a rank that has a block of a box, as formulas. `around` are the nodes that its own rows are coupled with,
/// numbered x fastest. The place of one of them is its row, and for a ghost the number of rows plus that of the ghost: ghosts are
/// numbered by the rank that owns them, then x fastest.
class BlockPlaces {
public:
  struct Ghosts {
    NodeBox nodes;
    std::int64_t first;  ///< the place of the first one
  };

  BlockPlaces() = default;
  /// `owned`: the nodes of other ranks, by rank; those that have none around are left out.
  BlockPlaces(NodeBox const& around, NodeBox const& own, std::span<NodeBox const> owned) : around_(around), own_(own) {
    std::int64_t next = own.size();
    for (NodeBox const& other : owned)
      if (NodeBox const nodes = common(other, around); nodes.size() > 0) {
        ghosts_.push_back({nodes, next});
        next += nodes.size();
      }
  }
  BlockPlaces(NodeBox const& around, RankBlocks const& blocks, std::size_t rank)
      : BlockPlaces(around, blocks.own[rank], others_of(blocks, rank)) {}

  [[nodiscard]] NodeBox const& around() const { return around_; }
  [[nodiscard]] NodeBox const& own() const { return own_; }
  [[nodiscard]] std::vector<Ghosts> const& ghosts() const { return ghosts_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(around_.size()); }

  /// The place of a node of the whole box. Precondition: it is around.
  [[nodiscard]] std::int32_t at(std::array<std::int64_t, 3> const& node) const {
    if (own_.holds(node))
      return static_cast<std::int32_t>(own_.index(node));
    std::size_t i = 0;
    while (!ghosts_[i].nodes.holds(node))
      ++i;
    return static_cast<std::int32_t>(ghosts_[i].first + ghosts_[i].nodes.index(node));
  }
  /// The place of node i of those around.
  [[nodiscard]] std::int32_t operator[](std::size_t i) const { return at(around_.node(static_cast<std::int64_t>(i))); }
  /// The places of all of them.
  [[nodiscard]] HostVector<std::int32_t> list() const;

private:
  [[nodiscard]] static std::vector<NodeBox> others_of(RankBlocks const& blocks, std::size_t rank) {
    std::vector<NodeBox> others = blocks.own;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
    return others;
  }

  NodeBox around_, own_;
  std::vector<Ghosts> ghosts_;
};

}  // namespace poisson
