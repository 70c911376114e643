#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/exchange/whole_vector.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace poisson {

/// Rows as a box of n x 1 x 1, for BlockKernels::copy.
[[nodiscard]] inline CommonNodes all_rows(std::int64_t n) {
  NodeBox const all{{}, {n, 1, 1}};
  return common_nodes(all, all, all);
}

/// Rows of nodes that are tied to others, which no level has: r is 0 there, and z becomes 0.
template <class V>
class TiedZeros {
public:
  TiedZeros(Context& context, NodeBox const& rows, NodeBox const& untied) : context_(context) {
    std::int64_t most = 0;
    for (std::size_t d = 0; d < 3; ++d)
      if (untied.high[d] < rows.high[d]) {
        NodeBox side = rows;
        side.low[d] = untied.high[d];
        sides_.push_back(common_nodes(side, side, rows));
        most = std::max(most, side.size());
      }
    zeros_ = Array<V>(context, most);
    if (most > 0)
      zeros_.set_zero();
  }
  void put(double* z, std::int32_t const* stop) const {
    for (CommonNodes const& side : sides_)
      kernels_for<BlockKernels<V>>(context_).copy_to_double(context_, side, zeros_.data(), z, stop);
  }

private:
  Context& context_;
  std::vector<CommonNodes> sides_;
  Array<V> zeros_;
};

/// Vectors of the finest level are those of own nodes outside of the cycle.
template <class V>
class BlockEntry final : public RankEntry<V> {
public:
  /// `rows`: the nodes of vectors outside of the cycle, of which those of `own` are not tied.
  BlockEntry(Context& context, NodeBox const& rows, NodeBox const& own, NodeBox const& box)
      : context_(context), in_(common_nodes(own, rows, box)), out_(common_nodes(own, box, rows)), tied_(context, rows, own) {}
  void enter(double const* r, V* b) const override { kernels_for<BlockKernels<V>>(context_).copy_from_double(context_, in_, r, b); }
  void leave(V const* x, double* z, std::int32_t const* stop) const override {
    kernels_for<BlockKernels<V>>(context_).copy_to_double(context_, out_, x, z, stop);
    tied_.put(z, stop);
  }

private:
  Context& context_;
  CommonNodes in_, out_;
  TiedZeros<V> tied_;
};

/// Brings vectors into and out of the cycle where every rank has the whole finest level.
template <class V>
class GatheredEntry final : public RankEntry<V> {
public:
  /// `whole` is of vectors of own entries alone.
  GatheredEntry(Context& context, std::unique_ptr<WholeVector<V>> whole)
      : GatheredEntry(context, std::move(whole), all_rows(whole->n_own()), all_rows(whole->n_own()), {context, {}, {}}) {}
  /// The same of the nodes `own` among those of `rows`, of which the others are tied.
  GatheredEntry(Context& context, std::unique_ptr<WholeVector<V>> whole, NodeBox const& rows, NodeBox const& own)
      : GatheredEntry(context, std::move(whole), common_nodes(own, rows, own), common_nodes(own, own, rows), {context, rows, own}) {
  }
  void enter(double const* r, V* b) const override {
    kernels_for<BlockKernels<V>>(context_).copy_from_double(context_, in_, r, own_.data());
    whole_->gather(own_.data(), b);
  }
  void leave(V const* x, double* z, std::int32_t const* stop) const override {
    whole_->own_entries(x, own_.data());
    kernels_for<BlockKernels<V>>(context_).copy_to_double(context_, out_, own_.data(), z, stop);
    tied_.put(z, stop);
  }

private:
  GatheredEntry(Context& context, std::unique_ptr<WholeVector<V>>&& whole, CommonNodes const& in, CommonNodes const& out,
                TiedZeros<V> tied)
      : context_(context), whole_(std::move(whole)), in_(in), out_(out), tied_(std::move(tied)), own_(context, whole_->n_own()) {}

  Context& context_;
  std::unique_ptr<WholeVector<V>> whole_;
  CommonNodes in_, out_;
  TiedZeros<V> tied_;
  mutable Array<V> own_;
};

}  // namespace poisson
