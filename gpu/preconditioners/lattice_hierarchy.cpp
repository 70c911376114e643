#include "gpu/core/csr_entries.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_levels.hpp"
#include "gpu/preconditioners/lanczos.hpp"
#include "gpu/preconditioners/level_lattices.hpp"
#include "gpu/preconditioners/level_rows.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/preconditioners/rank_entries.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson {

namespace {

/// The tables of the finest level in host memory.
LatticeLayout downloaded(Context& context, LatticeView const& lattices) {
  LatticeLayout result;
  result.n_lattices = lattices.n_lattices;
  result.n_unknowns = lattices.n_unknowns;
  result.cells = lattices.cells;
  RimTables tables;
  tables.kind_first.assign(1, 0);
  auto const places = static_cast<std::size_t>(lattices.n_lattices * lattices.rim().size());
  tables.rim_unknowns.resize(places);
  tables.copies.resize(places);
  tables.copy_offsets.resize(static_cast<std::size_t>(lattices.n_rim()) + 1);
  context.download(tables.rim_unknowns.data(), lattices.rim_unknowns, 4 * std::ssize(tables.rim_unknowns));
  context.download(tables.copies.data(), lattices.copies, 4 * std::ssize(tables.copies));
  context.download(tables.copy_offsets.data(), lattices.copy_offsets, 8 * std::ssize(tables.copy_offsets));
  result.set_tables(std::move(tables));
  return result;
}

/// Makes the levels of own_rows of order 1 on a box that several ranks share.
template <class V>
MultigridHierarchy<V> hierarchy_of_order_one(OrderOne const& order_one, PreconditionerOptions const& options) {
  return has_levels(order_one.blocks.get()) ? box_hierarchy<V>(*order_one.own_rows, *order_one.blocks, options)
                                            : algebraic_hierarchy<V>(*order_one.own_rows, {}, options);
}

/// Makes the levels of lattices, on one rank or on several. Functions are collective.
template <class V>
class LatticeSetup {
public:
  /// `finest`: the unknowns of the first level that is added.
  LatticeSetup(Context& context, Communicator& ranks, PreconditionerOptions const& options, LevelUnknowns finest)
      : context_(context), ranks_(ranks), options_(options), level_(std::move(finest)) {}

  [[nodiscard]] Context& context() const { return context_; }
  [[nodiscard]] Communicator& ranks() const { return ranks_; }
  [[nodiscard]] LevelUnknowns const& level() const { return level_; }
  [[nodiscard]] MultigridHierarchy<V>& result() { return result_; }
  /// The options for the levels that are still to be made.
  [[nodiscard]] PreconditionerOptions rest() const {
    PreconditionerOptions rest = options_;
    rest.multigrid.levels -= static_cast<int>(result_.levels.size());
    return rest;
  }

  /// Adds what the level with this matrix adds to the hierarchy, but for the transfer. Returns whether it is the last one.
  bool add_level(Matrix const& matrix) {
    MultigridLevel<V>& added = result_.levels.emplace_back();
    added.matrix = &matrix;
    added.diagonal = Array<V>(context_, level_.lattices.n_rows);
    static_cast<LinearOperator<V> const&>(matrix).diagonal(added.diagonal.data());
    if (level_.rows.is_shared())
      added.set_halo(halo_of<V>(context_, ranks_, level_), 1, level_.rows.n_of_all());
    std::int64_t const of_line = 2 * level_.lattices.layout.order + 1;
    added.nnz = of_line * of_line * of_line * level_.rows.n_of_all();
    double const largest = largest_of_symmetric(ranks_, added, level_.rows);
    if (!(largest > 0) || !std::isfinite(largest)) {
      result_.failure = "the matrix is not positive definite on level " + std::to_string(result_.levels.size()) + " of multigrid";
      return true;
    }
    added.largest = safety * largest;
    options_.done(context_, "eigenvalue");
    return static_cast<int>(result_.levels.size()) == options_.multigrid.levels;
  }

  /// Sets the matrix of the level: half_cds on the lattices here, as if there were no others.
  void set_matrix_of_lattices(std::unique_ptr<Matrix> half_cds) { own_ = shared(level_, std::move(half_cds)); }

  /// Makes the levels from the one whose matrix is set on. `matrix`: in its place, one in half_cds that the caller keeps, or null;
  /// of several ranks it is shared.
  void go_on(Matrix const* matrix = nullptr) {
    auto arrays = std::make_shared<LatticeArrays const>(context_, level_.lattices.layout);
    auto const& kernels = kernels_for<LatticeLevelKernels<V>>(context_);
    std::shared_ptr<Array<std::uint8_t> const> free;
    for (;; matrix = nullptr) {
      Matrix const& of_level = matrix != nullptr ? *matrix : *own_;
      V const* const values = values_in<V>(static_cast<LatticeHalfCds const&>(of_level));
      LatticeView const view = arrays->view();
      if (free == nullptr) {
        auto found = std::make_shared<Array<std::uint8_t>>(context_, view.n_unknowns);
        kernels.find_free(context_, view, values, found->data());
        free = std::move(found);
      }
      if (!level_.rows.is_shared() && ends_with(of_level))
        return;
      bool const is_last = add_level(of_level);
      result_.levels.back().own = std::move(own_);
      if (is_last)
        return;
      std::vector<std::int32_t> coarse_of;
      LatticeLayout coarse = coarse_layout(level_.lattices.layout.view(), &coarse_of);
      auto coarse_arrays = std::make_shared<LatticeArrays const>(context_, coarse);
      auto free_of_coarse = std::make_shared<Array<std::uint8_t>>(context_, coarse.n_unknowns);
      kernels.copy_free(context_, view, coarse_arrays->view(), free->data(), free_of_coarse->data());
      LevelUnknowns next = coarse_unknowns(ranks_, level_, std::move(coarse), coarse_of);
      std::int64_t const m = next.lattices.layout.nodes();
      Array<std::uint8_t> owned = first_copies_of_own(context_, level_.lattices);
      Array<V> coarse_values(context_, half_stencil::diagonals * next.lattices.layout.n_lattices * m * m * m);
      options_.done(context_, "tables");
      kernels.coarsen(context_, {view, coarse_arrays->view(), free->data(), free_of_coarse->data(), owned.data()}, values,
                      coarse_values.data());
      options_.done(context_, "P^T A P");
      if (descend(std::move(next),
                  LatticeHalfCds::from_diagonals(context_, coarse_arrays->copy_to(context_), std::move(coarse_values)),
                  [&](LevelUnknowns const& coarser) {
                    return std::make_unique<LatticeTransfer<V>>(context_, ranks_, level_, coarser, arrays, coarse_arrays, free,
                                                                free_of_coarse, std::move(owned));
                  }))
        return;
      arrays = std::move(coarse_arrays);
      free = std::move(free_of_coarse);
    }
  }

  /// Goes on to `next`, whose lattices here have this matrix. Returns whether all levels are made then; else the unknowns are those
  /// of `next`, and own_ is its matrix.
  template <class MakeTransfer>
  bool descend(LevelUnknowns next, std::unique_ptr<Matrix> half_cds, MakeTransfer const& make_transfer) {
    MultigridLevel<V>& added = result_.levels.back();
    if (!next.rows.is_shared()) {
      added.to_coarse = make_transfer(next);
      own_ = std::move(half_cds);
      level_ = std::move(next);
      return false;
    }
    V const* const values = values_in<V>(static_cast<LatticeHalfCds const&>(*half_cds));
    if (next.rows.n_of_all() <= options_.multigrid.gathered_size) {
      auto transfer = make_transfer(next);
      WholeLevel const whole = whole_level(ranks_, next);
      transfer->goes_on_whole(std::make_unique<WholeVector<V>>(context_, ranks_, next.rows.first, whole.place), whole.places);
      added.to_coarse = std::move(transfer);
      go_on_whole(whole, next.lattices.layout, values);
      return true;
    }
    auto transfer = make_transfer(next);
    own_ = shared(next, std::move(half_cds));
    options_.done(context_, "sums of ranks");
    if (!has_levels(next.lattices.layout.cells)) {  // many small lattices: goes on by rows
      go_on_in(std::move(transfer), algebraic_hierarchy<V>(matrix_of_lattices(next), {}, rest()));
      return true;
    }
    added.to_coarse = std::move(transfer);
    level_ = std::move(next);
    return false;
  }

  /// Adds the levels of a hierarchy of its own, to which `transfer` goes on.
  void go_on_in(std::unique_ptr<LevelTransfer<V>> transfer, MultigridHierarchy<V> coarser) {
    if (coarser.failure.empty())
      transfer->goes_on_in(std::move(coarser.entry), coarser.levels.front().n());
    result_.levels.back().to_coarse = std::move(transfer);
    append(result_, std::move(coarser));
  }

  /// Adds the level of `whole` and all that follow, on every rank. `values` are those of the lattices here.
  void go_on_whole(WholeLevel const& whole, LatticeLayout const& mine, V const* values) {
    std::unique_ptr<Matrix> matrix = LatticeHalfCds::from_diagonals(context_, LatticeArrays(context_, whole.layout),
                                                                    all_values(context_, ranks_, whole, mine, values));
    options_.done(context_, "gathered lattices");
    auto next = lattice_hierarchy<V>(static_cast<LatticeHalfCds const&>(*matrix), rest());
    if (!next.levels.empty() && next.levels.front().matrix == matrix.get())
      next.levels.front().own = std::move(matrix);
    append(result_, std::move(next));
  }

  /// Sets the matrix of the level.
  void set_matrix(std::unique_ptr<Matrix> half_cds) { own_ = std::move(half_cds); }

private:
  /// The matrix of several ranks, or of one, from that of the lattices here.
  std::unique_ptr<Matrix> shared(LevelUnknowns const& of, std::unique_ptr<Matrix> half_cds) const {
    if (of.rows.is_shared())
      static_cast<LatticeHalfCds&>(*half_cds).share(of.lattices, ranks_);
    return half_cds;
  }
  /// On one rank: whether there are no coarser lattices. Then the hierarchy ends with this level, or goes on by rows.
  bool ends_with(Matrix const& matrix) {
    LatticeLayout const& lattices = level_.lattices.layout;
    std::int64_t const n = lattices.n_unknowns, coarse_size = options_.multigrid.coarse_size;
    if (n <= std::min(coarse_size, most_dense)) {
      MultigridLevel<V>& level = result_.levels.emplace_back();
      level.matrix = &matrix;
      level.own = std::move(own_);
      level.diagonal = Array<V>(context_, n);
      static_cast<LinearOperator<V> const&>(matrix).diagonal(level.diagonal.data());
      CsrMatrix const csr = matrix.to_csr();
      level.nnz = std::ssize(csr.values);
      level.largest = 1;  // nothing is smoothed
      result_.coarsest = dense_rows(csr);
      return true;
    }
    bool const deepest = static_cast<int>(result_.levels.size()) + 1 == options_.multigrid.levels;
    if (has_levels(lattices.cells) && n > coarse_size && !deepest)
      return false;
    append(result_, algebraic_hierarchy<V>(
                        nullptr, [&] { return std::make_shared<CsrMatrix const>(matrix.to_csr()); }, context_, rest()));
    return true;
  }

  /// Returns own rows of own_, the matrix of the level `of`.
  RankMatrix matrix_of_lattices(LevelUnknowns const& of) {
    std::vector<NumberedEntry> const entries = entries_of_sum(ranks_, of.rows, own_->rows_of_cells());
    std::vector<std::int64_t> needed = of.rows.ghosts;  // and others, with which own unknowns share cells of other ranks
    for (NumberedEntry const& entry : entries)
      if (!of.rows.is_own(entry.column))
        needed.push_back(entry.column);
    RowMap const rows = of.rows.with_ghosts(ranks_, std::move(needed));
    std::vector<MatrixEntry> all;
    all.reserve(entries.size());
    for (NumberedEntry const& entry : entries)
      all.push_back({entry.row, static_cast<std::int32_t>(rows.place(entry.column)), entry.value});
    auto own_rows = std::make_shared<CsrMatrix const>(csr_of_entries(rows.n_own(), rows.n_here(), all));
    return matrix_of_rows(context_, ranks_, {rows.neighbors, std::move(own_rows)});
  }

  Context& context_;
  Communicator& ranks_;
  PreconditionerOptions const& options_;
  LevelUnknowns level_;
  std::unique_ptr<Matrix> own_;  ///< of the level
  MultigridHierarchy<V> result_;
};

/// Makes the levels of an operator that several ranks share, with elements of order 1 on the same lattices. `setup`: with the
/// unknowns of the operator.
template <class V>
void add_levels_of_operator(LatticeSetup<V>& setup, LatticeOperator const& local, OrderOne order_one) {
  LatticeLayout const& lattices = setup.level().lattices.layout;
  bool const is_box = lattices.all_on_rim;
  std::unique_ptr<Matrix> half_cds;
  if (!is_box)
    half_cds = std::is_same_v<V, float> ? order_one.matrix->in_single() : std::move(order_one.matrix);
  if (lattices.order == 1) {
    setup.set_matrix_of_lattices(std::move(half_cds));
    setup.go_on();
    return;
  }
  auto const order = static_cast<int>(lattices.order);
  std::unique_ptr<Matrix> own = std::is_same_v<V, float> ? local.in_single() : nullptr;
  Matrix const& finest = local;
  bool const is_last = setup.add_level(own != nullptr ? *own : finest);
  MultigridLevel<V>& level = setup.result().levels.back();
  level.own = std::move(own);
  level.more_steps = std::max(order - 2, 0);
  if (is_last)
    return;
  std::vector<std::int32_t> coarse_of;
  LatticeLayout vertices = layout_of_vertices(lattices.view(), &coarse_of);
  LevelUnknowns next = coarse_unknowns(setup.ranks(), setup.level(), std::move(vertices), coarse_of);
  auto const make_transfer = [&](LevelUnknowns const& coarser) {
    return std::make_unique<OrderTransfer<V>>(setup.context(), setup.ranks(), setup.level(), coarser, order_one.fixed, coarse_of);
  };
  if (is_box)
    setup.go_on_in(make_transfer(next), hierarchy_of_order_one<V>(order_one, setup.rest()));
  else if (!setup.descend(std::move(next), std::move(half_cds), make_transfer))
    setup.go_on();
}

}  // namespace

bool has_levels(std::int64_t cells) {
  return cells >= 4 && cells % 2 == 0;
}
bool has_levels(LatticeHalfCds const& a) {
  return a.precision() == MatrixPrecision::double_ && has_levels(a.view().lattices.cells) && !a.view().lattices.all_on_rim;
}
bool has_levels(SharedLattices const* lattices) {
  return lattices != nullptr && (lattices->layout.all_on_rim || has_levels(lattices->layout.cells));
}

template <class V>
MultigridHierarchy<V> lattice_hierarchy(LatticeHalfCds const& a, PreconditionerOptions const& options) {
  Context& context = a.context();
  LatticeSetup<V> setup(context, alone(), options, unknowns_of(downloaded(context, a.view().lattices)));
  std::unique_ptr<Matrix> single = std::is_same_v<V, float> ? a.in_single() : nullptr;
  Matrix const* const kept = single == nullptr ? &a : nullptr;
  setup.set_matrix(std::move(single));
  setup.go_on(kept);
  return std::move(setup.result());
}

template <class V>
MultigridHierarchy<V> lattice_hierarchy(RankMatrix const& a, PreconditionerOptions const& options) {
  Context& context = a.context();
  Communicator& ranks = a.ranks();
  LevelUnknowns finest;
  finest.lattices = *a.lattices();
  finest.rows = RowMap(ranks, a.n_rows(), finest.lattices.neighbors);
  RowMap const rows = finest.rows;
  bool const is_box = finest.lattices.layout.all_on_rim, is_of_order_one = finest.lattices.layout.order == 1;
  LatticeSetup<V> setup(context, ranks, options, std::move(finest));
  MultigridHierarchy<V>& result = setup.result();
  if (auto const* const of_rank = dynamic_cast<LatticeOperator const*>(&a.local()); of_rank != nullptr) {
    OrderOne order_one = options.order_one ? options.order_one() : OrderOne{};
    if (any_of_ranks(ranks, is_box ? order_one.own_rows == nullptr
                                   : dynamic_cast<LatticeHalfCds const*>(order_one.matrix.get()) == nullptr)) {
      // The levels are made from the entries.
      return algebraic_hierarchy<V>(a, options.nested_spaces ? options.nested_spaces() : RankNestedSpaces{}, options);
    }
    options.done(context, "elements of order 1");
    if (is_box && is_of_order_one)  // the same matrix, with entries
      return hierarchy_of_order_one<V>(order_one, options);
    result.entry = entry_by_rows<V>(context, rows);
    add_levels_of_operator(setup, *of_rank, std::move(order_one));
    return std::move(result);
  }
  auto const& stored = static_cast<LatticeHalfCds const&>(a.local());
  std::unique_ptr<Matrix> single = std::is_same_v<V, float> ? stored.in_single() : nullptr;
  LatticeHalfCds const& half_cds = single != nullptr ? static_cast<LatticeHalfCds const&>(*single) : stored;
  if (rows.n_of_all() <= options.multigrid.gathered_size) {
    WholeLevel const whole = whole_level(ranks, setup.level());
    result.entry =
        std::make_unique<GatheredEntry<V>>(context, std::make_unique<WholeVector<V>>(context, ranks, rows.first, whole.place));
    setup.go_on_whole(whole, setup.level().lattices.layout, values_in<V>(half_cds));
    return std::move(result);
  }
  result.entry = entry_by_rows<V>(context, rows);
  Matrix const* const kept = single == nullptr ? &stored : nullptr;
  setup.set_matrix(std::move(single));
  setup.go_on(kept);
  return std::move(result);
}

template MultigridHierarchy<float> lattice_hierarchy(LatticeHalfCds const&, PreconditionerOptions const&);
template MultigridHierarchy<double> lattice_hierarchy(LatticeHalfCds const&, PreconditionerOptions const&);
template MultigridHierarchy<float> lattice_hierarchy(RankMatrix const&, PreconditionerOptions const&);
template MultigridHierarchy<double> lattice_hierarchy(RankMatrix const&, PreconditionerOptions const&);

}  // namespace poisson
