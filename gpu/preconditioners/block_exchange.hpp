#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/rank_exchange.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace poisson {

/// Brings entries of a vector from their owners into the vectors of other ranks. Of a box each rank keeps the nodes of its
/// `extended` box, which holds its own nodes and some around them. Of several vectors, one behind another, it brings all in the
/// same messages.
template <class V>
class BlockExchange final : public LevelHalo<V> {
public:
  /// Places in x whose entries go to a rank, and those of what comes from it. Precondition: what one rank sends the other one
  /// receives, in the same order. Collective.
  BlockExchange(Context& context, Communicator& ranks, RankLists<std::int32_t> const& sent,
                RankLists<std::int32_t> const& received);
  /// `own`, `needed`: of every rank; the nodes that it owns, and those whose entries it wants, its own among them or not. `layers`
  /// around own nodes are needed.
  /// Preconditions: every node has one owner; this rank's `extended` holds both of its boxes. Collective.
  BlockExchange(Context& context, Communicator& ranks, std::vector<NodeBox> const& own, std::vector<NodeBox> const& needed,
                NodeBox const& extended, int layers = 1, int vectors = 1);
  /// Fills in the entries of nodes that this rank needs and does not own. `x` is in the backend's memory. Collective.
  void fill(V* x) const override;

private:
  Context& context_;
  BlockKernels<V> const& kernels_;
  Array<std::int32_t> sent_, received_;              ///< places in x
  std::vector<std::int64_t> n_packed_, n_unpacked_;  ///< of them, by a kernel: of a vector those of a rank, or of all ranks
  int vectors_ = 1;
  std::int64_t step_ = 0;  ///< from vector to vector
  std::unique_ptr<RankExchange<V>> exchange_;
};

/// Gives every rank the whole vector, or several, one behind another, in the same messages.
template <class V>
class BlockGather {
public:
  /// `own`: of every rank. Together they are the nodes of `whole`. `part`: the box of the vector that a rank gives its nodes from.
  BlockGather(Context& context, Communicator& ranks, std::vector<NodeBox> own, NodeBox const& part, NodeBox const& whole,
              int vectors = 1);
  /// `x` has the nodes of `part`, `all` those of the whole; in the backend's memory. Collective.
  void gather(V const* x, V* all);

private:
  Context& context_;
  Communicator& ranks_;
  DeviceRanks* devices_;  ///< null: through host memory
  std::vector<NodeBox> own_;
  NodeBox part_, whole_;
  int vectors_;
  std::int64_t longest_ = 0;    ///< message
  Array<V> packed_, messages_;  ///< in the backend's memory
  HostVector<V> packed_of_host_, messages_of_host_;
};

}  // namespace poisson
