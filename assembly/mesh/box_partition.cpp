#include "assembly/mesh/box_partition.hpp"

#include <algorithm>
#include <tuple>

namespace poisson::assembly {

namespace {

/// The first cell of a block in one direction.
std::int64_t first_cell(std::int64_t cells, int blocks, int block) {
  return cells / blocks * block + std::min<std::int64_t>(cells % blocks, block);
}

std::int64_t largest_block(std::int64_t cells, int blocks) {
  return (cells + blocks - 1) / blocks;
}

}  // namespace

NodeBox nodes_of(BoxPart const& part, int order) {
  NodeBox nodes;
  for (std::size_t d = 0; d < 3 && part.n_cells() > 0; ++d) {
    nodes.low[d] = order * part.first[d];
    nodes.high[d] = order * (part.first[d] + part.cells[d]) + 1;
  }
  return nodes;
}

BoxPartition::BoxPartition(std::array<std::int64_t, 3> const& cells, int order, int ranks)
    : n_(cells), order_(order), ranks_(ranks) {
  // The cost of a division is that of its largest block, in cells: a face to another block costs as much as a quarter of one. It is
  // in floating point, which holds products of any counts.
  auto const cost = [&](std::array<int, 3> const& blocks) {
    std::array<double, 3> size{};
    for (std::size_t d = 0; d < 3; ++d)
      size[d] = static_cast<double>(largest_block(n_[d], blocks[d]));
    double const volume = size[0] * size[1] * size[2];
    double faces = 0, surface = 0;  // of the block, and of the cuts through the whole box
    for (std::size_t d = 0; d < 3; ++d) {
      faces += blocks[d] > 1 ? 2 * volume / size[d] : 0;
      surface += static_cast<double>(blocks[d] - 1) * static_cast<double>(n_[(d + 1) % 3]) * static_cast<double>(n_[(d + 2) % 3]);
    }
    return std::tuple(volume + faces / 4, surface);
  };
  auto const most = [&](std::size_t d, int limit) { return static_cast<int>(std::min<std::int64_t>(limit, n_[d])); };
  // Cuts across z first, then y: planes of nodes that are together in memory.
  for (int x = 1; x <= most(0, ranks); ++x)
    for (int y = 1; y <= most(1, ranks / x); ++y)
      for (int z = 1; z <= most(2, ranks / (x * y)); ++z)
        if (std::array<int, 3> const blocks{x, y, z}; cost(blocks) < cost(blocks_))
          blocks_ = blocks;
}

std::array<int, 3> BoxPartition::block(int rank) const {
  return {rank % blocks_[0], rank / blocks_[0] % blocks_[1], rank / (blocks_[0] * blocks_[1])};
}

BoxPart BoxPartition::cells(int rank) const {
  BoxPart part;
  if (rank >= n_used())
    return part;
  auto const at = block(rank);
  for (std::size_t d = 0; d < 3; ++d) {
    part.first[d] = first_cell(n_[d], blocks_[d], at[d]);
    part.cells[d] = first_cell(n_[d], blocks_[d], at[d] + 1) - part.first[d];
  }
  return part;
}

BoxPart BoxPartition::assembled_cells(int rank) const {
  BoxPart part = cells(rank);
  for (std::size_t d = 0; d < 3; ++d)
    if (part.first[d] > 0) {
      --part.first[d];
      ++part.cells[d];
    }
  return part;
}

NodeBox BoxPartition::owned(int rank) const {
  BoxPart const part = cells(rank);
  NodeBox nodes;
  for (std::size_t d = 0; d < 3 && part.n_cells() > 0; ++d) {
    std::int64_t const end = part.first[d] + part.cells[d];
    nodes.low[d] = order_ * part.first[d];
    nodes.high[d] = order_ * end + (end == n_[d] ? 1 : 0);
  }
  return nodes;
}

NodeBox BoxPartition::needed(int rank) const {
  return nodes_of(assembled_cells(rank), order_);
}

std::vector<int> BoxPartition::touching(int rank) const {
  std::vector<int> result;
  if (rank >= n_used())
    return result;
  auto const at = block(rank);
  for (int z = std::max(at[2] - 1, 0); z <= std::min(at[2] + 1, blocks_[2] - 1); ++z)
    for (int y = std::max(at[1] - 1, 0); y <= std::min(at[1] + 1, blocks_[1] - 1); ++y)
      for (int x = std::max(at[0] - 1, 0); x <= std::min(at[0] + 1, blocks_[0] - 1); ++x)
        if (int const other = (z * blocks_[1] + y) * blocks_[0] + x; other != rank)
          result.push_back(other);
  return result;
}

RankBlocks BoxPartition::node_blocks() const {
  RankBlocks result;
  for (std::size_t d = 0; d < 3; ++d)
    result.nodes[d] = order_ * n_[d] + 1;
  for (int rank = 0; rank < ranks_; ++rank)
    result.own.push_back(owned(rank));
  return result;
}

std::int64_t BoxPartition::n_rows(int rank) const {
  return owned(rank).size();
}

std::vector<RankNeighbor> BoxPartition::neighbors(int rank) const {
  std::vector<RankNeighbor> result;
  NodeBox const own = owned(rank), need = needed(rank);
  for (int const other : touching(rank)) {
    RankNeighbor neighbor;
    neighbor.rank = other;
    common(own, needed(other)).for_all([&](auto const& node) {
      neighbor.sent.push_back(static_cast<std::int32_t>(own.index(node)));
    });
    neighbor.n_ghosts = common(owned(other), need).size();
    if (!neighbor.sent.empty() || neighbor.n_ghosts > 0)
      result.push_back(std::move(neighbor));
  }
  return result;
}

BlockPlaces BoxPartition::places(int rank) const {
  std::vector<NodeBox> others;
  for (int const other : touching(rank))
    others.push_back(owned(other));
  return {needed(rank), owned(rank), others};
}

}  // namespace poisson::assembly
