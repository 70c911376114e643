#pragma once

#include "assembly/problem.hpp"
#include "gpu/core/block_places.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/core/rank_rows.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace poisson::assembly {

/// The nodes of elements of an order on a part of a box.
[[nodiscard]] NodeBox nodes_of(BoxPart const& part, int order);

/// A box cut into blocks of cells, one for a rank. In every direction the cells are divided as evenly as whole numbers allow. A
/// rank owns the nodes of its cells that are not on their upper sides, where these are inside of the box; so every node has one
/// owner, and rows are coupled with other ranks' rows in their own cells and one layer of cells below them.
class BoxPartition {
public:
  /// The blocks whose largest has the fewest cells and the least surface to others, which counts for cells too; among these
  /// those with the least surface between all ranks. Not all ranks have cells where there are few, or where their number has
  /// no good factors. Preconditions: cells >= 1, ranks >= 1.
  BoxPartition(std::array<std::int64_t, 3> const& cells, int order, int ranks);

  /// Blocks per direction.
  [[nodiscard]] std::array<int, 3> const& blocks() const { return blocks_; }
  /// Ranks that have cells; those after them have none.
  [[nodiscard]] int n_used() const { return blocks_[0] * blocks_[1] * blocks_[2]; }
  /// The cells of a rank, blocks numbered x fastest; no cells: {} for a rank without rows.
  [[nodiscard]] BoxPart cells(int rank) const;
  /// The cells that a rank assembles: its own, and the layer of cells below them that has couplings of its rows.
  [[nodiscard]] BoxPart assembled_cells(int rank) const;
  /// Number of nodes that the rank owns.
  [[nodiscard]] std::int64_t n_rows(int rank) const;
  /// Who has what the rank needs, and needs what it has. Ghosts are the nodes of assembled_cells that others own.
  [[nodiscard]] std::vector<RankNeighbor> neighbors(int rank) const;
  /// The nodes that ranks own.
  [[nodiscard]] RankBlocks node_blocks() const;
  /// The rows and ghosts of the nodes of assembled_cells(rank).
  [[nodiscard]] BlockPlaces places(int rank) const;

private:
  [[nodiscard]] std::array<int, 3> block(int rank) const;
  [[nodiscard]] NodeBox owned(int rank) const;
  [[nodiscard]] NodeBox needed(int rank) const;
  /// Other ranks whose blocks touch that of the rank, ascending.
  [[nodiscard]] std::vector<int> touching(int rank) const;

  std::array<std::int64_t, 3> n_;  ///< cells
  int order_;
  int ranks_;
  std::array<int, 3> blocks_{1, 1, 1};
};

}  // namespace poisson::assembly
