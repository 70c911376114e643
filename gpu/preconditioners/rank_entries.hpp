#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/exchange/whole_vector.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace poisson {

/// Rows as a box of n x 1 x 1, for BlockKernels::copy.
[[nodiscard]] inline CommonNodes all_rows(std::int64_t n) {
  NodeBox const all{{}, {n, 1, 1}};
  return common_nodes(all, all, all);
}

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

/// Brings vectors into and out of the cycle where every rank has the whole finest level.
template <class V>
class GatheredEntry final : public RankEntry<V> {
public:
  /// `whole` is of vectors of own entries alone.
  GatheredEntry(Context& context, std::unique_ptr<WholeVector<V>> whole)
      : context_(context), whole_(std::move(whole)), own_(context, whole_->n_own()) {}
  void enter(double const* r, V* b) const override {
    kernels_for<BlockKernels<V>>(context_).copy_from_double(context_, all_rows(own_.size()), r, own_.data());
    whole_->gather(own_.data(), b);
  }
  void leave(V const* x, double* z, std::int32_t const* stop) const override {
    whole_->own_entries(x, own_.data());
    kernels_for<BlockKernels<V>>(context_).copy_to_double(context_, all_rows(own_.size()), own_.data(), z, stop);
  }

private:
  Context& context_;
  std::unique_ptr<WholeVector<V>> whole_;
  mutable Array<V> own_;
};

}  // namespace poisson
