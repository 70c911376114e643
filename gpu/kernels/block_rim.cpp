#include "gpu/kernels/block_rim.hpp"

#include <algorithm>
#include <cassert>

namespace poisson {

BlockRim::BlockRim(BlockPlaces const& places, std::array<bool, 6> const& dirichlet, NodeBox const& rows) {
  NodeBox const &around = places.around(), &own = places.own();
  auto const in_around = [&](NodeBox const& box) {
    Nodes nodes;
    for (std::size_t d = 0; d < 3; ++d) {
      nodes.low[d] = box.low[d] - around.low[d];
      nodes.high[d] = box.high[d] - around.low[d];
    }
    return nodes;
  };
  own_ = in_around(rows);
  free_ = in_around(around);
  rows_ = in_around(own);
  bool has_inner = true;
  for (std::size_t d = 0; d < 3; ++d) {
    free_.low[d] += dirichlet[2 * d] ? 1 : 0;
    free_.high[d] -= dirichlet[2 * d + 1] ? 1 : 0;
    Nodes const untied = rows_;
    rows_.low[d] = std::max(untied.low[d], free_.low[d]);
    rows_.high[d] = std::max(std::min(untied.high[d], free_.high[d]), rows_.low[d]);
    inner_.low[d] = rows_.low[d] + (free_.low[d] < untied.low[d] ? 1 : 0);
    inner_.high[d] = rows_.high[d] - (free_.high[d] > untied.high[d] ? 1 : 0);
    has_inner = has_inner && inner_.low[d] < inner_.high[d];
  }
  if (rows_.size() == 0)
    rows_ = Nodes{};
  if (!has_inner || rows_.size() == 0)
    inner_ = {{rows_.low[0], rows_.low[1], rows_.low[2]}, {rows_.low[0], rows_.low[1], rows_.low[2]}};
  assert(places.ghosts().size() <= most_ghosts);
  for (BlockPlaces::Ghosts const& ghosts : places.ghosts()) {
    ghosts_[n_ghosts_] = in_around(ghosts.nodes);
    first_ghost_[n_ghosts_++] = ghosts.first - places.own().size();
  }
}

}  // namespace poisson
