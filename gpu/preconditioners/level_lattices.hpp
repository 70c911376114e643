#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/core/shared_lattices.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_levels.hpp"
#include "gpu/kernels/order_levels.hpp"
#include "gpu/preconditioners/level_transfer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// Levels of multigrid on meshes of lattices, on one rank or shared by several. Functions are collective.
namespace poisson {

/// A level's unknowns on this rank: own ones, and ghosts (SharedLattices). On one rank all are own ones.
struct LevelUnknowns {
  SharedLattices lattices;
  RowMap rows;  ///< with the ghosts of lattices.neighbors

  [[nodiscard]] std::int64_t n() const { return lattices.layout.n_unknowns; }
};

/// Returns the unknowns of one rank, which has all lattices.
[[nodiscard]] LevelUnknowns unknowns_of(LatticeLayout layout);
/// Returns the next level's unknowns. `coarse_of`: see coarse_layout and layout_of_vertices.
[[nodiscard]] LevelUnknowns coarse_unknowns(Communicator& ranks, LevelUnknowns const& fine, LatticeLayout layout,
                                            std::vector<std::int32_t> const& coarse_of);

/// Makes the halo of all ghosts.
template <class V>
std::unique_ptr<Halo<V>> halo_of(Context& context, Communicator& ranks, LevelUnknowns const& level) {
  return std::make_unique<Halo<V>>(context, ranks, HaloPlaces(level.lattices.n_rows, level.lattices.neighbors));
}

/// All lattices of a level, on every rank, put together from their pieces.
struct WholeLevel {
  LatticeLayout layout;
  LatticeCut cut;                    ///< of all ranks: the pieces of one after those of the other
  std::vector<std::int32_t> place;   ///< by number over all ranks
  std::vector<std::int32_t> places;  ///< of own unknowns and of ghosts on lattices here
};
[[nodiscard]] WholeLevel whole_level(Communicator& ranks, LevelUnknowns const& level);
/// Returns the values of all lattices. `values`: of the pieces here.
template <class V>
[[nodiscard]] Array<V> all_values(Context& context, Communicator& ranks, WholeLevel const& whole, LatticeLayout const& mine,
                                  V const* values);

/// Returns, by place on a rim, 1 where this copy is the first one of an own unknown.
[[nodiscard]] Array<std::uint8_t> first_copies_of_own(Context& context, SharedLattices const& lattices);

/// P between levels of lattices, by the same kernels on one rank and on several. On several, what P^T makes of own fine unknowns at
/// coarse unknowns of others goes to these ranks.
template <class V, class Kernels, class Levels>
class PiecesTransfer : public LevelTransfer<V> {
  using Base = LevelTransfer<V>;
  using Base::context_, Base::n_coarse_;

public:
  std::int64_t bytes() const override {
    std::int64_t const of_sums = sums_ ? sums_->bytes_of_sums() : 0;
    return of_sums + parts_.bytes() + unused_.bytes() + ones_.bytes() + this->bytes_of_vectors();
  }

protected:
  PiecesTransfer(Context& context, Communicator& ranks, LevelUnknowns const& level, LevelUnknowns const& next)
      : Base(context, level.lattices.n_rows, next.lattices.n_rows, next.n() - next.lattices.n_rows,
             next.rows.is_shared() ? halo_of<V>(context, ranks, next) : nullptr),
        kernels_(kernels_for<Kernels>(context)) {
    if (!next.rows.is_shared())
      return;
    sums_.emplace(context, ranks, HaloPlaces(next.lattices.n_rows, next.lattices.neighbors), HaloDirection::to_owners);
    std::vector<V> const ones(static_cast<std::size_t>(next.lattices.layout.n_unknowns), V(1));
    ones_ = Array<V>(context, std::span<V const>(ones));
    parts_ = Array<V>(context, ones_.size());
    unused_ = Array<V>(context, ones_.size());
  }
  /// Sets the levels, with all unknowns on lattices here. It is called before anything else.
  void set_levels(Levels const& levels) {
    levels_ = of_rows_ = levels;
    of_rows_.fine.n_unknowns = this->n_fine_;
  }
  [[nodiscard]] Levels const& levels() const { return levels_; }

private:
  void restrict_and_begin(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const final {
    kernels_.restrict_residual(context_, levels_, r, diagonal, factor, b, x, stop);
  }
  void to_coarse(V const* r, V* own, std::int32_t const* stop) const final {
    kernels_.restrict_residual(context_, levels_, r, ones_.data(), V(0), parts_.data(), unused_.data(), stop);
    sums_->start(parts_.data());
    this->blocks_.copy(context_, all_rows(n_coarse_), parts_.data(), own);
    sums_->add(V(1), own);
  }
  void to_fine(V const* e, V* x, std::int32_t const* stop) const final { kernels_.prolong(context_, of_rows_, e, x, stop); }

  Kernels const& kernels_;
  Levels levels_{}, of_rows_{};  ///< the latter with own fine unknowns only
  // These members are for several ranks.
  mutable std::optional<Halo<V>> sums_;
  mutable Array<V> parts_;  ///< of P^T r, on lattices here
  mutable Array<V> unused_, ones_;
};

/// Restricts and prolongs between lattices and those with cells twice as large.
template <class V>
class LatticeTransfer final : public PiecesTransfer<V, LatticeLevelKernels<V>, LatticeLevels> {
  using Base = PiecesTransfer<V, LatticeLevelKernels<V>, LatticeLevels>;

public:
  /// `fine`, `coarse`: with all unknowns on lattices here.
  LatticeTransfer(Context& context, Communicator& ranks, LevelUnknowns const& level, LevelUnknowns const& next,
                  std::shared_ptr<LatticeArrays const> fine, std::shared_ptr<LatticeArrays const> coarse,
                  std::shared_ptr<Array<std::uint8_t> const> free_of_fine,
                  std::shared_ptr<Array<std::uint8_t> const> free_of_coarse, Array<std::uint8_t> owned)
      : Base(context, ranks, level, next),
        fine_(std::move(fine)),
        coarse_(std::move(coarse)),
        free_of_fine_(std::move(free_of_fine)),
        free_of_coarse_(std::move(free_of_coarse)),
        owned_(std::move(owned)) {
    this->set_levels({fine_->view(), coarse_->view(), free_of_fine_->data(), free_of_coarse_->data(), owned_.data()});
  }

  std::int64_t bytes() const override { return coarse_->bytes() + free_of_fine_->bytes() + owned_.bytes() + Base::bytes(); }
  std::int64_t bytes_moved() const override {
    std::int64_t const number = sizeof(V);
    return this->levels().fine.n_unknowns * (3 * number + 2) +
           this->levels().coarse.n_unknowns * (this->is_shared() ? 12 * number + 9 : 5 * number + 1);
  }

private:
  std::shared_ptr<LatticeArrays const> fine_, coarse_;
  std::shared_ptr<Array<std::uint8_t> const> free_of_fine_, free_of_coarse_;
  Array<std::uint8_t> owned_;
};

/// Restricts and prolongs between elements of order p and elements of order 1 on the same cells.
template <class V>
class OrderTransfer final : public PiecesTransfer<V, OrderLevelKernels<V>, OrderLevels> {
  using Base = PiecesTransfer<V, OrderLevelKernels<V>, OrderLevels>;

public:
  /// `fixed`: as LatticeProblem::fixed; `coarse_of`: see layout_of_vertices.
  OrderTransfer(Context& context, Communicator& ranks, LevelUnknowns const& level, LevelUnknowns const& next,
                HostVector<std::uint8_t> const& fixed, std::vector<std::int32_t> const& coarse_of)
      : Base(context, ranks, level, next),
        fine_(context, level.lattices.layout),
        coarse_(context, next.lattices.layout),
        owned_(first_copies_of_own(context, level.lattices)),
        fixed_of_fine_(on_rims(context, level.lattices.layout, fixed)) {
    LatticeLayout const& layout = next.lattices.layout;
    HostVector<std::uint8_t> of_coarse;
    if (layout.is_box())
      of_coarse = vertices_at_surface(level.lattices.layout, fixed);
    else
      of_coarse.resize(static_cast<std::size_t>(layout.n_unknowns - layout.n_inner()));
    for (std::size_t i = 0; i < coarse_of.size(); ++i)
      if (coarse_of[i] >= 0)
        of_coarse[static_cast<std::size_t>(coarse_of[i] - layout.n_inner())] = fixed[i];
    fixed_of_coarse_ = on_rims(context, layout, of_coarse);
    OrderLevels levels = order_levels_of(fine_.view(), coarse_.view());
    levels.fixed_of_fine = fixed_of_fine_.data();
    levels.fixed_of_coarse = fixed_of_coarse_.data();
    levels.owned = owned_.data();
    this->set_levels(levels);
  }

  std::int64_t bytes() const override {
    return fine_.bytes() + coarse_.bytes() + owned_.bytes() + fixed_of_fine_.bytes() + fixed_of_coarse_.bytes() + Base::bytes();
  }
  std::int64_t bytes_moved() const override {
    std::int64_t const number = sizeof(V);
    return this->levels().fine.n_unknowns * 3 * number + this->levels().coarse.n_unknowns * 5 * number;
  }

private:
  LatticeArrays fine_, coarse_;
  Array<std::uint8_t> owned_, fixed_of_fine_, fixed_of_coarse_;
};

}  // namespace poisson
