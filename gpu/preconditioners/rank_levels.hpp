#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/csr_entries.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/aggregation.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/block_exchange.hpp"
#include "gpu/preconditioners/lanczos.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/preconditioners/rank_entries.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Levels of multigrid by rows, of any matrix whose rows several ranks share. Functions are collective.
namespace poisson::rank_levels {

/// Fills in the ghosts at the end of a vector of own entries. Collective, also to make.
template <class V>
std::unique_ptr<BlockExchange<V>> exchange_of(Context& context, Communicator& ranks, RowMap const& rows) {
  RankLists<std::int32_t> sent, received;
  auto place = static_cast<std::int32_t>(rows.n_own());
  for (RankNeighbor const& neighbor : rows.neighbors) {
    sent[neighbor.rank] = neighbor.sent;
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i)
      received[neighbor.rank].push_back(place++);
  }
  return std::make_unique<BlockExchange<V>>(context, ranks, sent, received);
}

/// A level's rows on this rank; columns are own ones, then ghosts.
struct LevelRows {
  RowMap rows;
  std::shared_ptr<CsrMatrix const> matrix;
};

/// Returns the rows of the finest level.
[[nodiscard]] LevelRows finest_rows(RankMatrix const& a);

/// The largest |eigenvalue| of D^-1 A by the power method in the norm of D; NaN where it finds none. On the host.
[[nodiscard]] double largest_of_any(Communicator& ranks, LevelRows const& level, std::span<double const> diagonal);

/// Returns the largest eigenvalue of D^-1 A for a symmetric positive definite A, by largest_by_lanczos, on the backend of A.
template <class V>
double largest_of_symmetric(Communicator& ranks, MultigridLevel<V> const& level, RowMap const& rows) {
  std::vector<V> start(static_cast<std::size_t>(level.n()));
  for (std::int64_t i = 0; i < level.n(); ++i)
    start[static_cast<std::size_t>(i)] = static_cast<V>(pseudo_random(rows.first[rows.me] + i));
  return largest_by_lanczos(level, Array<V>(level.matrix->context(), std::span<V const>(start)), ranks);
}

/// Returns a copy of the matrix in host memory of its own.
[[nodiscard]] CsrMatrix matrix_of_arrays(SparseArrays const& a);

/// Rows of all ranks, on every rank, from own ones whose columns are own ones, then ghosts.
[[nodiscard]] std::shared_ptr<CsrMatrix const> whole_matrix(Communicator& ranks, CsrMatrix const& own, RowMap const& rows,
                                                            RowMap const& columns);
[[nodiscard]] inline std::shared_ptr<CsrMatrix const> whole_matrix(Communicator& ranks, LevelRows const& level) {
  return whole_matrix(ranks, *level.matrix, level.rows, level.rows);
}

/// A coarser level with P and P^T.
struct Coarser {
  LevelRows level;
  std::shared_ptr<CsrMatrix const> p, r;
  RowMap of_p, of_r;  ///< the columns of P, and of P^T
};
/// P^T A P, multiplied on the context's backend. `p`: own rows of P; its columns are `of_p`, own
/// unknowns of the coarser level and ghosts.
[[nodiscard]] Coarser coarser_level(Communicator& ranks, Context& context, LevelRows const& fine,
                                    std::shared_ptr<CsrMatrix const> p, RowMap of_p);

/// A smaller space inside that of the level before: own rows of P, whose columns are `of_p`.
struct NestedLevel {
  std::shared_ptr<CsrMatrix const> p;
  RowMap of_p;
};
/// Returns the levels of `nested`, without what follows from unknowns that are coupled to no others in the finest matrix: they go
/// on alone.
[[nodiscard]] std::vector<NestedLevel> nested_levels(Communicator& ranks, LevelRows const& finest, RankNestedSpaces nested);

/// Returns the rows of `level` with all nodes of `blocks` beside own ones among the ghosts, as a matrix that was assembled has
/// them.
[[nodiscard]] LevelRows with_ghosts_of(Communicator& ranks, RankBlocks const& blocks, LevelRows const& level);

/// The rows of a level as those of a matrix.
[[nodiscard]] RankMatrix matrix_of_level(Context& context, Communicator& ranks, LevelRows const& level);

template <class V>
std::unique_ptr<Matrix> in_precision(std::shared_ptr<CsrMatrix const> rows, Context& context) {
  FormatOptions options;
  options.precision = std::is_same_v<V, float> ? MatrixPrecision::single : MatrixPrecision::double_;
  options.conversion = Conversion::host;  // a device then never sees more than what it will keep
  return make_matrix(Format::csr, std::move(rows), context, options);
}

/// Between a level and the next one on several ranks. The next level has its own unknowns and ghosts, or all on every rank, or what
/// a hierarchy of its own has.
template <class V>
class RankTransfer : public GridTransfer<V> {
public:
  /// `halo_of_coarse`: of vectors of own coarse unknowns and `n_ghosts` others.
  RankTransfer(Context& context, std::int64_t n_fine, std::int64_t n_coarse, std::int64_t n_ghosts,
               std::unique_ptr<BlockExchange<V>> halo_of_coarse)
      : context_(context),
        blocks_(kernels_for<BlockKernels<V>>(context)),
        smoother_(kernels_for<SmootherKernels<V>>(context)),
        n_fine_(n_fine),
        n_coarse_(n_coarse),
        n_next_(n_coarse),
        coarse_(context, n_coarse + n_ghosts),
        halo_of_coarse_(std::move(halo_of_coarse)) {
    coarse_.set_zero();
  }
  /// The next level has all unknowns on every rank. `places`: there, of own coarse unknowns and then of ghosts.
  void goes_on_whole(std::unique_ptr<RowGather<V>> gather, std::vector<std::int32_t> const& places) {
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
    if (gather_ != nullptr)
      blocks_.pack(context_, coarse_.size(), places_in_whole_.data(), e, coarse_.data());
    else {
      if (entry_ != nullptr) {
        entry_->leave(e, in_double_.data(), stop);
        blocks_.copy_from_double(context_, all_rows(n_coarse_), in_double_.data(), coarse_.data());
      } else {
        blocks_.copy(context_, all_rows(n_coarse_), e, coarse_.data());
      }
      halo_of_coarse_->fill(coarse_.data());
    }
    if (n_fine_ > 0 && (context_.backend() != Backend::cpu || *stop == 0))
      to_fine(coarse_.data(), x, stop);
  }
  bool reads_around() const final { return false; }

protected:
  /// P^T r at own coarse unknowns; nothing that counts where *stop is not 0. Collective.
  virtual void to_coarse(V const* r, V* own, std::int32_t const* stop) const = 0;
  /// x += P e; e has own coarse unknowns and ghosts.
  virtual void to_fine(V const* e, V* x, std::int32_t const* stop) const = 0;

  Context& context_;
  BlockKernels<V> const& blocks_;
  SmootherKernels<V> const& smoother_;
  std::int64_t n_fine_, n_coarse_;

  [[nodiscard]] std::int64_t bytes_of_vectors() const { return coarse_.bytes(); }

private:
  std::int64_t n_next_;
  mutable Array<V> coarse_;  ///< with ghosts
  std::unique_ptr<BlockExchange<V>> halo_of_coarse_;
  std::unique_ptr<RowGather<V>> gather_;
  Array<std::int32_t> places_in_whole_;
  std::unique_ptr<RankEntry<V>> entry_;
  mutable Array<V> of_own_;  ///< where the next level's vectors are others
  mutable Array<double> in_double_;
};

/// P, and P^T by rows of own coarse unknowns, with the vectors that they read.
template <class V>
class RowsTransfer final : public RankTransfer<V> {
  using RankTransfer<V>::context_, RankTransfer<V>::n_fine_, RankTransfer<V>::n_coarse_;

public:
  RowsTransfer(Context& context, Communicator& ranks, std::shared_ptr<CsrMatrix const> p, std::shared_ptr<CsrMatrix const> r,
               RowMap const& of_r, RowMap const& of_p)
      : RankTransfer<V>(context, of_r.n_own(), of_p.n_own(), std::ssize(of_p.ghosts), exchange_of<V>(context, ranks, of_p)),
        p_(in_precision<V>(std::move(p), context)),
        r_(in_precision<V>(std::move(r), context)),
        fine_(context, of_r.n_here()),
        halo_of_fine_(exchange_of<V>(context, ranks, of_r)) {
    fine_.set_zero();
  }
  std::int64_t bytes() const override { return p_->bytes() + r_->bytes() + fine_.bytes() + this->bytes_of_vectors(); }
  std::int64_t bytes_moved() const override { return bytes() + (4 * n_fine_ + 6 * n_coarse_) * std::int64_t{sizeof(V)}; }

private:
  void to_coarse(V const* r, V* own, std::int32_t const*) const override {
    this->blocks_.copy(context_, all_rows(n_fine_), r, fine_.data());
    halo_of_fine_->fill(fine_.data());
    if (n_coarse_ > 0)
      static_cast<LinearOperator<V> const&>(*r_).product(1, fine_.data(), 0, own);
  }
  void to_fine(V const* e, V* x, std::int32_t const*) const override {
    static_cast<LinearOperator<V> const&>(*p_).product(1, e, 1, x);
  }

  std::unique_ptr<Matrix> p_, r_;
  mutable Array<V> fine_;  ///< with ghosts
  std::unique_ptr<BlockExchange<V>> halo_of_fine_;
};

/// Adds the level of these rows, whose kernels' `couplings` are known, to a hierarchy. Where a row has no diagonal to divide by the
/// hierarchy gets a failure instead, and null is returned.
template <class V>
MultigridLevel<V>* add_level(MultigridHierarchy<V>& hierarchy, LevelRows const& rows, Couplings const& couplings, Context& context,
                             Communicator& ranks, bool positive) {
  std::string failure;
  if (couplings.bad_row >= 0)
    failure = std::string("multigrid ") + (positive ? "for cg needs a positive" : "needs a non-zero") + " diagonal, and " +
              row_text(couplings.bad_row) + " of this rank has " + number(couplings.bad_value) +
              (hierarchy.levels.empty() ? "" : " on level " + std::to_string(hierarchy.levels.size() + 1)) +
              (positive ? ": the matrix is not positive definite" : "");
  hierarchy.failure = first_message(ranks, failure);
  if (!hierarchy.failure.empty())
    return nullptr;
  CsrMatrix const& matrix = *rows.matrix;
  MultigridLevel<V>& level = hierarchy.levels.emplace_back();
  level.own = in_precision<V>(rows.matrix, context);
  level.matrix = level.own.get();
  std::vector<V> const diagonal(couplings.diagonal.data(), couplings.diagonal.data() + matrix.n_rows);
  level.diagonal = Array<V>(context, std::span<V const>(diagonal));
  level.halo = exchange_of<V>(context, ranks, rows.rows);
  level.rows_of_all = rows.rows.n_of_all();
  level.nnz = sum_over(ranks, matrix.nnz());
  double const bound = max_over(ranks, couplings.bound),
               largest = positive
                             ? largest_of_symmetric(ranks, level, rows.rows)
                             : largest_of_any(ranks, rows, {couplings.diagonal.data(), static_cast<std::size_t>(matrix.n_rows)});
  level.largest = std::isfinite(largest) ? std::min(safety * largest, bound) : bound;
  return &level;
}

/// Whether a rank has none of these rows, and kernels of a device: they are not launched for nothing.
[[nodiscard]] inline bool any_has_none(Context& context, Communicator& ranks, RowMap const& rows) {
  return any_of_ranks(ranks, context.backend() != Backend::cpu && rows.n_own() == 0);
}

}  // namespace poisson::rank_levels
