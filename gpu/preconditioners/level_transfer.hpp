#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/exchange/whole_vector.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/rim.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/preconditioners/rank_entries.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

/// P between a level and the next one. On one rank both are there as a whole. On several ranks the next level has own unknowns and
/// ghosts, or all on every rank, or what a hierarchy of its own has.
template <class V>
class LevelTransfer : public GridTransfer<V> {
public:
  /// The next level has all unknowns on every rank. `places`: there, of own coarse unknowns and then of ghosts.
  void goes_on_whole(std::unique_ptr<WholeVector<V>> gather, std::vector<std::int32_t> const& places) {
    n_next_ = gather->n_of_all();
    gather_ = std::move(gather);
    places_in_whole_ = Array<std::int32_t>(context_, std::span<std::int32_t const>(places));
    of_own_ = Array<V>(context_, n_coarse_);
  }

  /// The next level is the finest of a hierarchy of its own, with this entry; its vectors have `n_next` entries.
  void goes_on_in(std::unique_ptr<RankEntry<V>> entry, std::int64_t n_next) {
    entry_ = std::move(entry);
    of_own_ = Array<V>(context_, n_coarse_);
    in_double_ = Array<double>(context_, n_coarse_);
    n_next_ = n_next;
  }

  void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const final {
    if (!is_shared()) {
      restrict_and_begin(r, diagonal, factor, b, x, stop);
      return;
    }
    V* const own = of_own_.size() > 0 ? of_own_.data() : b;
    to_coarse(r, own, stop);
    if (gather_ != nullptr)
      gather_->gather(own, b);
    if (entry_ != nullptr) {
      if (n_coarse_ > 0)
        smoother_.to_outside(context_, n_coarse_, own, in_double_.data(), stop);
      entry_->enter(in_double_.data(), b);
    }
    if (x != nullptr)
      smoother_.begin(context_, n_next_, diagonal, b, factor, x, stop);
  }
  void prolong(V const* e, V* x, std::int32_t const* stop) const final {
    if (!is_shared()) {
      to_fine(e, x, stop);
      return;
    }
    if (gather_ != nullptr)
      kernels_for<RimKernels<V>>(context_).pack(context_, coarse_.size(), places_in_whole_.data(), e, coarse_.data());
    else {
      if (entry_ != nullptr) {
        entry_->leave(e, in_double_.data(), stop);
        blocks_.copy_from_double(context_, all_rows(n_coarse_), in_double_.data(), coarse_.data());
      } else {
        blocks_.copy(context_, all_rows(n_coarse_), e, coarse_.data());
      }
      halo_of_coarse_->fill(coarse_.data());
    }
    if (n_fine_ > 0)
      to_fine(coarse_.data(), x, stop);
  }
  bool reads_around() const final { return false; }

protected:
  /// `halo_of_coarse`: on several ranks, of vectors of own coarse unknowns and `n_ghosts` others; null on one, which has all of
  /// both levels.
  LevelTransfer(Context& context, std::int64_t n_fine, std::int64_t n_coarse, std::int64_t n_ghosts = 0,
                std::unique_ptr<Halo<V>> halo_of_coarse = nullptr)
      : context_(context),
        blocks_(kernels_for<BlockKernels<V>>(context)),
        smoother_(kernels_for<SmootherKernels<V>>(context)),
        n_fine_(n_fine),
        n_coarse_(n_coarse),
        n_next_(n_coarse),
        halo_of_coarse_(std::move(halo_of_coarse)) {
    if (!is_shared())
      return;
    coarse_ = Array<V>(context, n_coarse + n_ghosts);
    coarse_.set_zero();
  }

  /// On one rank: GridTransfer::restrict_residual.
  virtual void restrict_and_begin(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const = 0;
  /// On several ranks: P^T r at own coarse unknowns; nothing that counts where *stop is not 0. Collective.
  virtual void to_coarse(V const* r, V* own, std::int32_t const* stop) const = 0;
  /// x += P e, unless *stop is not 0; e has own coarse unknowns and ghosts.
  virtual void to_fine(V const* e, V* x, std::int32_t const* stop) const = 0;

  [[nodiscard]] bool is_shared() const { return halo_of_coarse_ != nullptr; }
  [[nodiscard]] std::int64_t bytes_of_vectors() const { return coarse_.bytes(); }

  Context& context_;
  BlockKernels<V> const& blocks_;
  SmootherKernels<V> const& smoother_;
  std::int64_t n_fine_, n_coarse_;

private:
  std::int64_t n_next_;
  mutable Array<V> coarse_;  ///< with ghosts
  std::unique_ptr<Halo<V>> halo_of_coarse_;
  std::unique_ptr<WholeVector<V>> gather_;
  Array<std::int32_t> places_in_whole_;
  std::unique_ptr<RankEntry<V>> entry_;
  mutable Array<V> of_own_;  ///< where the next level's vectors are others
  mutable Array<double> in_double_;
};

/// Makes the entry to a finest level whose vectors begin with those of own rows.
template <class V>
[[nodiscard]] std::unique_ptr<RankEntry<V>> entry_by_rows(Context& context, RowMap const& rows) {
  NodeBox const own{{}, {rows.n_own(), 1, 1}};
  return std::make_unique<BlockEntry<V>>(context, own, own, own);
}

}  // namespace poisson
