#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace poisson {

/// Nodes of a larger box, by their numbers per direction there: low <= node < high. Numbered x fastest.
struct NodeBox {
  std::array<std::int64_t, 3> low{}, high{};

  [[nodiscard]] std::int64_t count(std::size_t direction) const {
    return std::max<std::int64_t>(high[direction] - low[direction], 0);
  }
  [[nodiscard]] std::int64_t size() const { return count(0) * count(1) * count(2); }
  [[nodiscard]] std::int64_t index(std::array<std::int64_t, 3> const& node) const {
    return ((node[2] - low[2]) * (high[1] - low[1]) + node[1] - low[1]) * (high[0] - low[0]) + node[0] - low[0];
  }
  /// The node that has this number.
  [[nodiscard]] std::array<std::int64_t, 3> node(std::int64_t number) const {
    std::int64_t const line = count(0), lines = count(1);
    return {low[0] + number % line, low[1] + number / line % lines, low[2] + number / (line * lines)};
  }
  [[nodiscard]] bool holds(std::array<std::int64_t, 3> const& node) const {
    for (std::size_t d = 0; d < 3; ++d)
      if (node[d] < low[d] || node[d] >= high[d])
        return false;
    return true;
  }
  /// Calls action(node) in the order of the numbers.
  template <class Action>
  void for_all(Action const& action) const {
    for (std::int64_t z = low[2]; z < high[2]; ++z)
      for (std::int64_t y = low[1]; y < high[1]; ++y)
        for (std::int64_t x = low[0]; x < high[0]; ++x)
          action(std::array<std::int64_t, 3>{x, y, z});
  }
};

[[nodiscard]] inline NodeBox common(NodeBox const& a, NodeBox const& b) {
  NodeBox result;
  for (std::size_t d = 0; d < 3; ++d) {
    result.low[d] = std::max(a.low[d], b.low[d]);
    result.high[d] = std::min(a.high[d], b.high[d]);
  }
  return result;
}

/// The box moved by `times` periods.
[[nodiscard]] inline NodeBox moved(NodeBox box, std::array<std::int64_t, 3> const& period,
                                   std::array<std::int64_t, 3> const& times) {
  for (std::size_t d = 0; d < 3; ++d) {
    box.low[d] += times[d] * period[d];
    box.high[d] += times[d] * period[d];
  }
  return box;
}

/// Calls action(times) for all moves of nodes by periods, 0 in every direction among them, that may bring nodes of the box to
/// others not farther than `reach` from it. The period is 0 in directions in which nothing repeats itself. The order is that of the
/// moves, x fastest, and the same wherever it is called.
template <class Action>
void for_moves(std::array<std::int64_t, 3> const& period, std::int64_t reach, Action const& action) {
  std::array<std::int64_t, 3> most{};
  for (std::size_t d = 0; d < 3; ++d)
    most[d] = period[d] > 0 ? (reach + period[d] - 1) / period[d] : 0;
  for (std::int64_t z = -most[2]; z <= most[2]; ++z)
    for (std::int64_t y = -most[1]; y <= most[1]; ++y)
      for (std::int64_t x = -most[0]; x <= most[0]; ++x)
        action(std::array<std::int64_t, 3>{x, y, z});
}

/// The unknowns of trilinear elements on a box that ranks share: every node belongs to one block, whose rows a rank numbers x
/// fastest. Ghosts of a rank are the nodes around its block that others own, diagonal neighbours included: by rank, then x fastest.
struct RankBlocks {
  std::array<std::int64_t, 3> nodes{};  ///< of the whole box
  std::vector<NodeBox> own;             ///< of every rank; without nodes for ranks that have no rows
  /// Directions in which the box repeats itself: the last node is tied to the first one. Its row has a diagonal entry alone, and
  /// its neighbours are coupled with the first one instead.
  std::array<bool, 3> periodic{};

  [[nodiscard]] NodeBox whole() const { return {{}, nodes}; }
  [[nodiscard]] bool is_periodic() const { return periodic[0] || periodic[1] || periodic[2]; }
  /// Those of some nodes that are tied to no others.
  [[nodiscard]] NodeBox untied(NodeBox box) const {
    for (std::size_t d = 0; d < 3; ++d)
      box.high[d] = std::min(box.high[d], nodes[d] - (periodic[d] ? 1 : 0));
    return box;
  }
  /// The number in the whole box of the node that one is tied to, or of that itself.
  [[nodiscard]] std::int64_t root(std::int64_t number) const {
    std::array<std::int64_t, 3> node = whole().node(number);
    for (std::size_t d = 0; d < 3; ++d)
      if (periodic[d] && node[d] == nodes[d] - 1)
        node[d] = 0;
    return whole().index(node);
  }
  [[nodiscard]] std::vector<NodeBox> untied() const {
    std::vector<NodeBox> result;
    for (NodeBox const& box : own)
      result.push_back(untied(box));
    return result;
  }
};

}  // namespace poisson
