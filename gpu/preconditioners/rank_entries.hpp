#pragma once

#include "gpu/core/row_map.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/preconditioners/block_exchange.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

/// Rows as a box of n x 1 x 1, for BlockKernels::copy.
[[nodiscard]] inline CommonNodes all_rows(std::int64_t n) {
  NodeBox const all{{}, {n, 1, 1}};
  return common_nodes(all, all, all);
}

/// Gives every rank all rows of a vector: those of one rank after those of the other, or in another order.
template <class V>
class RowGather {
public:
  /// `order`: by place in the result, the row's number over all ranks; empty: they are the same. Collective.
  RowGather(Context& context, Communicator& ranks, RowMap const& rows, std::vector<std::int32_t> const& order = {})
      : context_(context),
        n_of_all_(rows.n_of_all()),
        order_(context, std::span<std::int32_t const>(order)),
        by_rank_(context, std::ssize(order)),
        gather_(context, ranks, rows.boxes(), rows.boxes()[rows.me], NodeBox{{}, {n_of_all_, 1, 1}}) {}
  [[nodiscard]] std::int64_t n_of_all() const { return n_of_all_; }
  /// Collective.
  void gather(V const* own, V* all) const {
    if (order_.size() == 0) {
      gather_.gather(own, all);
      return;
    }
    gather_.gather(own, by_rank_.data());
    kernels_for<BlockKernels<V>>(context_).pack(context_, n_of_all_, order_.data(), by_rank_.data(), all);
  }

private:
  Context& context_;
  std::int64_t n_of_all_;
  Array<std::int32_t> order_;
  mutable Array<V> by_rank_;
  mutable BlockGather<V> gather_;
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

/// Brings vectors into and out of the cycle where every rank has the whole finest level, with rows in any order.
template <class V>
class GatheredRowsEntry final : public RankEntry<V> {
public:
  /// `places` are those of own rows in the whole level.
  GatheredRowsEntry(Context& context, std::unique_ptr<RowGather<V>> gather, std::vector<std::int32_t> const& places)
      : context_(context),
        gather_(std::move(gather)),
        places_(context, std::span<std::int32_t const>(places)),
        rounded_(context, std::ssize(places)) {}
  void enter(double const* r, V* b) const override {
    kernels_for<BlockKernels<V>>(context_).copy_from_double(context_, all_rows(places_.size()), r, rounded_.data());
    gather_->gather(rounded_.data(), b);
  }
  void leave(V const* x, double* z, std::int32_t const* stop) const override {
    auto const& kernels = kernels_for<BlockKernels<V>>(context_);
    kernels.pack(context_, places_.size(), places_.data(), x, rounded_.data());
    kernels.copy_to_double(context_, all_rows(places_.size()), rounded_.data(), z, stop);
  }

private:
  Context& context_;
  std::unique_ptr<RowGather<V>> gather_;
  Array<std::int32_t> places_;
  mutable Array<V> rounded_;
};

/// Brings vectors into and out of the cycle where every rank has the whole finest level, as a box of nodes.
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
