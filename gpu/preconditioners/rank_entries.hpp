#pragma once

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/preconditioners/block_exchange.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace poisson {

/// The entries that an exchange brings. Rows without a box are one of count x 1 x 1.
template <class V>
class BlockHalo final : public LevelHalo<V> {
public:
  explicit BlockHalo(std::unique_ptr<BlockExchange<V>> exchange) : exchange_(std::move(exchange)) {}
  void fill(V* x) const override { exchange_->fill(x); }

private:
  std::unique_ptr<BlockExchange<V>> exchange_;
};

/// Vectors of the finest level are those of own nodes outside of the cycle.
template <class V>
class BlockEntry final : public RankEntry<V> {
public:
  BlockEntry(Context& context, NodeBox const& own, NodeBox const& box)
      : context_(context), in_(common_nodes(own, own, box)), out_(common_nodes(own, box, own)) {}
  void enter(double const* r, V* b) const override { kernels_for<BlockKernels<V>>(context_).copy_from_double(context_, in_, r, b); }
  void leave(V const* x, double* z, std::int32_t const* stop) const override {
    kernels_for<BlockKernels<V>>(context_).copy_to_double(context_, out_, x, z, stop);
  }

private:
  Context& context_;
  CommonNodes in_, out_;
};

/// The same where every rank has the whole finest level.
template <class V>
class GatheredEntry final : public RankEntry<V> {
public:
  GatheredEntry(Context& context, Communicator& ranks, std::vector<NodeBox> const& own, NodeBox const& whole)
      : context_(context),
        mine_(own[static_cast<std::size_t>(ranks.rank())]),
        gather_(context, ranks, own, mine_, whole),
        rounded_(context, mine_.size()),
        out_(common_nodes(mine_, whole, mine_)) {}
  void enter(double const* r, V* b) const override {
    kernels_for<BlockKernels<V>>(context_).copy_from_double(context_, common_nodes(mine_, mine_, mine_), r, rounded_.data());
    gather_.gather(rounded_.data(), b);
  }
  void leave(V const* x, double* z, std::int32_t const* stop) const override {
    kernels_for<BlockKernels<V>>(context_).copy_to_double(context_, out_, x, z, stop);
  }

private:
  Context& context_;
  NodeBox mine_;
  mutable BlockGather<V> gather_;
  mutable Array<V> rounded_;
  CommonNodes out_;
};

}  // namespace poisson
