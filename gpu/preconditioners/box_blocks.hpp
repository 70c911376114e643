#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/elements/box_operator.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/box_levels.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

/// What ranks have of a box whose nodes they share, at the finest level of multigrid.
namespace poisson {

/// Layers around own nodes that an exchange brings; what is kept of a level is enough for them.
inline constexpr int most_layers = 3;

/// Returns what a rank keeps of a level: its own nodes, and so many around them that the rows of coarser levels need no others. It
/// begins with a node that stays when its direction is halved, and ends with one. `nodes` are those of the whole box; where it is
/// periodic it goes on before the first of them, and after the last one.
[[nodiscard]] NodeBox extended(NodeBox const& own, std::array<std::int64_t, 3> const& nodes,
                               std::array<bool, 3> const& periodic = {});
[[nodiscard]] std::vector<NodeBox> extended(std::vector<NodeBox> const& own, std::array<std::int64_t, 3> const& nodes,
                                            std::array<bool, 3> const& periodic = {});

/// The nodes after which a box repeats itself, by direction; 0: it does not.
[[nodiscard]] inline std::array<std::int64_t, 3> period_of(std::array<std::int64_t, 3> const& nodes,
                                                           std::array<bool, 3> const& periodic) {
  return {periodic[0] ? nodes[0] : 0, periodic[1] ? nodes[1] : 0, periodic[2] ? nodes[2] : 0};
}

template <class V>
[[nodiscard]] BoxLevel<V> level_of(NodeBox const& box) {
  BoxLevel<V> level;
  for (std::size_t d = 0; d < 3; ++d)
    level.nodes[d] = static_cast<std::int32_t>(box.count(d));
  return level;
}

/// A matrix-free operator on the whole box, of which ranks may have blocks.
struct WholeStencil {
  BoxElements box;
  int components = 1;
  BoxField k;

  /// The operator on a part of the box. Rows on cuts, which others own, are those of a face without a condition. So are rows on
  /// Robin faces, whose data are not known here.
  [[nodiscard]] std::unique_ptr<BoxOperator> on(Context& context, NodeBox const& nodes) const {
    BoxElements part = box;
    for (std::size_t d = 0; d < 3; ++d) {
      part.nodes[d] = nodes.count(d);
      for (std::size_t side = 0; side < 2; ++side)
        if (side == 0 ? nodes.low[d] > 0 : nodes.high[d] < box.nodes[d])
          part.faces[2 * d + side].type = BoxFace::Type::neumann;
    }
    return std::make_unique<BoxOperator>(context, part, components, k);
  }
};

/// Returns what the blocks of the ranks are parts of; nothing where one of them is no such operator. Collective.
[[nodiscard]] std::optional<WholeStencil> whole_stencil(RankMatrix const& a, RankBlocks const& blocks);
/// Returns the finest level of the rank on `box`, matrix-free. Where there are Robin faces own rows on faces are those of `a`.
[[nodiscard]] std::unique_ptr<BoxOperator> finest_operator(RankMatrix const& a, RankBlocks const& blocks,
                                                           WholeStencil const& stencil, NodeBox const& box);
/// Returns the diagonals of own rows at their places in `box`, which holds own nodes and those beside them. They are those of a
/// block of a box in its memory, else they come by way of CSR. Rows of tied nodes are left out.
template <class V>
[[nodiscard]] Array<V> own_diagonals(RankMatrix const& a, RankBlocks const& blocks, NodeBox const& box);

}  // namespace poisson
