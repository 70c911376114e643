#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/exchange/whole_vector.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/vectors.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <cstddef>
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

/// Where the first row of a rank that has all is held, and levels are those of the matrix A whose rows sum to 0. With S z = z - z_0
/// and M of the levels, S M^-1 S^T is a preconditioner of the other rows as M is one of A, since the inverse of these rows is
/// S A^+ S^T: b of the levels gets the r_0 with which it sums to 0, and z_0 is taken off z. r_0 is 0, and so z_0 becomes. Beside
/// what another entry does: 24 bytes a row.
template <class V>
class HeldEntry final : public RankEntry<V> {
public:
  /// `place`: of the first row in vectors of the finest level. Of `rows` those of `own` are not tied.
  HeldEntry(Context& context, std::unique_ptr<RankEntry<V>> entry, std::int64_t place, NodeBox const& rows, NodeBox const& own)
      : context_(context),
        entry_(std::move(entry)),
        place_(place),
        n_(rows.size()),
        tied_(context, rows, own),
        first_(context, 1),
        sum_(context, 1) {}
  void enter(double const* r, V* b) const override {
    auto const& fields = kernels_for<FieldKernels>(context_);
    fields.sum(context_, n_, {r, nullptr}, sum_.data());
    first_.set_zero();
    fields.subtract(context_, 1, sum_.data(), {first_.data(), nullptr});
    entry_->enter(r, b);
    kernels_for<BlockKernels<V>>(context_).copy_from_double(context_, all_rows(1), first_.data(), b + place_);
  }
  void leave(V const* x, double* z, std::int32_t const* stop) const override {
    entry_->leave(x, z, stop);
    sum_.set_zero();
    context_.copy(sum_.data(), z, sizeof(double));  // the high part
    kernels_for<FieldKernels>(context_).subtract(context_, n_, sum_.data(), {z, nullptr});
    tied_.put(z, stop);
  }

private:
  Context& context_;
  std::unique_ptr<RankEntry<V>> entry_;
  std::int64_t place_, n_;
  TiedZeros<V> tied_;
  mutable Array<double> first_;
  mutable Array<DoubleDouble> sum_;
};

}  // namespace poisson
