#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/aggregation.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/greedy_aggregates.hpp"
#include "gpu/preconditioners/level_rows.hpp"
#include "gpu/preconditioners/level_transfer.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson {

template <class V>
bool set_finest_matrix(MultigridLevel<V>& level, Matrix const& a, CsrProvider const& csr) {
  if (std::is_same_v<V, double> && a.precision() == MatrixPrecision::double_) {
    level.matrix = &a;
    return true;
  }
  if (std::is_same_v<V, float>)
    level.own = a.in_single();
  if (level.own == nullptr && csr)
    level.own = in_precision<V>(csr(), a.context());
  level.matrix = level.own.get();
  return level.matrix != nullptr;
}

template bool set_finest_matrix(MultigridLevel<float>&, Matrix const&, CsrProvider const&);
template bool set_finest_matrix(MultigridLevel<double>&, Matrix const&, CsrProvider const&);

std::vector<double> dense_rows(CsrMatrix const& a) {
  std::vector<double> dense(static_cast<std::size_t>(a.n_rows * a.n_rows), 0.0);
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      dense[static_cast<std::size_t>(i * a.n_rows + a.columns[k])] = a.values[k];
  return dense;
}

namespace {

constexpr double least_shrink = 0.8;  ///< a level with more than this share of the rows above it is not worth its cost
/// Entries up to which the host makes coarser levels for a device: that waits for launches then.
constexpr std::int64_t few_entries = 100000;
/// On a device a level with this many rows or more is in SELL-C-sigma. On smaller levels launches hide that CSR is a quarter
/// slower. Slices would be mostly padding where some rows are much longer than the mean.
constexpr std::int64_t many_rows = std::int64_t{1} << 17;
constexpr double longest_by_mean = 8;

/// P, and P^T by rows of own coarse unknowns; on several ranks with the vectors that they read.
template <class V>
class RowsTransfer final : public LevelTransfer<V> {
  using LevelTransfer<V>::context_, LevelTransfer<V>::n_fine_, LevelTransfer<V>::n_coarse_;

public:
  RowsTransfer(std::unique_ptr<Matrix> p, std::unique_ptr<Matrix> r)
      : LevelTransfer<V>(p->context(), p->n_rows(), p->n_columns()), p_(std::move(p)), r_(std::move(r)) {}
  RowsTransfer(Communicator& ranks, std::unique_ptr<Matrix> p, std::unique_ptr<Matrix> r, RowMap const& of_r, RowMap const& of_p)
      : LevelTransfer<V>(p->context(), of_r.n_own(), of_p.n_own(), std::ssize(of_p.ghosts), halo_of<V>(p->context(), ranks, of_p)),
        p_(std::move(p)),
        r_(std::move(r)),
        fine_(context_, of_r.n_here()),
        halo_of_fine_(halo_of<V>(context_, ranks, of_r)) {
    fine_.set_zero();
  }
  std::int64_t bytes() const override { return p_->bytes() + r_->bytes() + fine_.bytes() + this->bytes_of_vectors(); }
  std::int64_t bytes_moved() const override {
    std::int64_t const copies = this->is_shared() ? 1 : 0;
    return bytes() + ((3 + copies) * n_fine_ + (5 + copies) * n_coarse_) * std::int64_t{sizeof(V)};
  }

private:
  /// On a device what is enqueued in vain is short.
  [[nodiscard]] bool is_over(std::int32_t const* stop) const { return context_.backend() == Backend::cpu && *stop != 0; }
  void restrict_and_begin(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    if (is_over(stop))
      return;
    static_cast<LinearOperator<V> const&>(*r_).product(1, r, 0, b);
    this->smoother_.begin(context_, n_coarse_, diagonal, b, factor, x, stop);
  }
  void to_coarse(V const* r, V* own, std::int32_t const*) const override {
    this->blocks_.copy(context_, all_rows(n_fine_), r, fine_.data());
    halo_of_fine_->fill(fine_.data());
    if (n_coarse_ > 0)
      static_cast<LinearOperator<V> const&>(*r_).product(1, fine_.data(), 0, own);
  }
  void to_fine(V const* e, V* x, std::int32_t const* stop) const override {
    if (!is_over(stop))
      static_cast<LinearOperator<V> const&>(*p_).product(1, e, 1, x);
  }

  std::unique_ptr<Matrix> p_, r_;
  mutable Array<V> fine_;  ///< with ghosts
  std::unique_ptr<Halo<V>> halo_of_fine_;
};

bool is_for_slices(Csr const& matrix) {
  CsrView const view = matrix.view();
  return matrix.context().backend() == Backend::cuda && view.n_rows >= many_rows &&
         static_cast<double>(view.longest_row) * static_cast<double>(view.n_rows) <=
             longest_by_mean * static_cast<double>(view.nnz);
}

/// Adds the level of these rows, whose kernels' `couplings` are known, to a hierarchy. `a`: null, or the matrix that the finest
/// level goes on with where its entries are in V. Where a row has no diagonal to divide by the hierarchy gets a failure instead,
/// and null is returned. Collective.
template <class V>
MultigridLevel<V>* add_level(MultigridHierarchy<V>& hierarchy, LevelRows const& rows, Matrix const* a, Couplings const& couplings,
                             Context& context, Communicator& ranks, PreconditionerOptions const& options) {
  bool const positive = options.positive, is_shared = rows.rows.is_shared();
  std::string failure;
  if (couplings.bad_row >= 0)
    failure = std::string("multigrid ") + (positive ? "for cg needs a positive" : "needs a non-zero") + " diagonal, and " +
              row_text(couplings.bad_row) + (is_shared ? " of this rank" : "") + " has " + number(couplings.bad_value) +
              (positive ? ": the matrix is not positive definite" : "") +
              (hierarchy.levels.empty() ? "" : " on level " + std::to_string(hierarchy.levels.size() + 1));
  hierarchy.failure = first_message(ranks, failure);
  if (!hierarchy.failure.empty())
    return nullptr;
  Csr const& matrix = *rows.matrix;
  MultigridLevel<V>& level = hierarchy.levels.emplace_back();
  bool const in_slices = is_for_slices(matrix);
  bool const goes_on = a != nullptr && !(a == &matrix && in_slices && std::is_same_v<V, float>);
  bool const in_half = in_slices && std::is_same_v<V, float> && options.multigrid.precision == MultigridPrecision::half;
  if (in_half && a != nullptr)
    level.own = a->in_half();
  if (in_half && level.own == nullptr)
    level.own = matrix.in_half();
  if (level.own == nullptr && (!goes_on || !set_finest_matrix(level, *a, {})))
    level.own = stored_as<V>(in_slices ? Format::sell_c_sigma : Format::csr, matrix, context);
  if (level.own != nullptr)
    level.matrix = level.own.get();
  level.diagonal = Array<V>(context, matrix.n_rows());
  static_cast<LinearOperator<V> const&>(*level.matrix).diagonal(level.diagonal.data());
  if (is_shared)
    level.set_halo(halo_of<V>(context, ranks, rows.rows), 1, rows.rows.n_of_all());
  level.nnz = sum_over(ranks, matrix.view().nnz);
  options.done(context, "level's matrix");
  // A symmetric matrix in the arithmetic of the cycle is read in half the time.
  Context& place = matrix.context();
  double const bound = max_over(ranks, couplings.bound),
               largest = positive    ? largest_of_symmetric(ranks, level, rows.rows)
                         : is_shared ? largest_of_any(ranks, rows, couplings.diagonal.data())
                                     : kernels_for<AggregationKernels>(place).largest_eigenvalue(place, matrix.view(), couplings);
  level.largest = std::isfinite(largest) ? std::min(safety * largest, bound) : bound;
  options.done(place, "eigenvalue");
  return &level;
}

/// Returns the numbers of own unknowns and ghosts in vectors of which every rank has all.
std::vector<std::int32_t> numbers_in_whole(RowMap const& rows) {
  std::vector<std::int32_t> result;
  for (std::int64_t i = 0; i < rows.n_here(); ++i)
    result.push_back(static_cast<std::int32_t>(rows.number_at(i)));
  return result;
}

/// Returns a copy of the couplings with the strongest ones of ghosts, too. Collective.
Couplings with_ghosts(Communicator& ranks, LevelRows const& level, Couplings const& couplings) {
  auto const n = static_cast<std::size_t>(level.matrix->n_rows());
  std::vector<double> strongest(couplings.strongest.data(), couplings.strongest.data() + n);
  auto const of_ghosts = values_of_ghosts<double>(ranks, level.rows.neighbors, strongest);
  strongest.insert(strongest.end(), of_ghosts.begin(), of_ghosts.end());
  Context& host = level.matrix->context();
  Couplings result;
  result.diagonal = couplings.diagonal.copy_to(host);
  result.strongest = Array<double>(host, std::span<double const>(strongest));
  return result;
}

/// Returns the wave in which every rank makes its aggregates. It comes after those of all ranks before it that have rows near its
/// own, so that aggregates are those that one rank would make of the rows in this order. Collective.
std::vector<int> waves_of(Communicator& ranks, LevelRows const& level) {
  std::vector<int> near{ranks.rank()};
  for (RankNeighbor const& neighbor : level.rows.neighbors)
    near.push_back(neighbor.rank);
  auto const counts = gather(ranks, std::ssize(near));
  near = gather_lists(ranks, std::move(near));
  std::vector<std::span<int const>> near_of;  // some for each rank
  std::size_t first = 0;
  for (auto const count : counts) {
    near_of.emplace_back(near.data() + first, static_cast<std::size_t>(count));
    first += static_cast<std::size_t>(count);
  }
  std::vector<int> waves(near_of.size());
  for (std::size_t rank = 0; rank < waves.size(); ++rank)
    for (int const between : near_of[rank])
      for (int const before : near_of[static_cast<std::size_t>(between)])
        if (static_cast<std::size_t>(before) < rank)
          waves[rank] = std::max(waves[rank], waves[static_cast<std::size_t>(before)] + 1);
  return waves;
}

/// Aggregates of all ranks.
struct RankAggregates {
  std::int64_t count = 0;        ///< that this rank made, of own unknowns and ghosts
  std::vector<std::int64_t> of;  ///< by own unknown: the rank that made its aggregate and the number there, as of_rank; or -1

  static std::int64_t of_rank(std::size_t rank, std::int64_t number) { return static_cast<std::int64_t>(rank) << 32 | number; }
};

/// Makes aggregates of the rows of all ranks as AggregationKernels::aggregate does, on the host. Ranks that are near each other
/// take turns, which is a small part of the whole setup. (In fewer waves, ranks in between come last, and find gaps that no
/// aggregate fits in: 14 iterations in place of 11.) Collective.
RankAggregates aggregated(Communicator& ranks, LevelRows const& level, Couplings const& couplings) {
  CsrView const a = level.matrix->view();
  RowMap const& rows = level.rows;
  auto const n = static_cast<std::size_t>(a.n_rows);
  RankAggregates result;
  auto const next = [&] { return RankAggregates::of_rank(rows.me, result.count++); };
  auto of = greedy_aggregates::begin<std::int64_t>(couplings);
  struct Claim {
    std::int64_t row, aggregate;
  };
  std::vector<int> const waves = waves_of(ranks, level);
  int const n_waves = *std::max_element(waves.begin(), waves.end()) + 1;
  for (int wave = 0; wave < n_waves; ++wave) {
    RankLists<Claim> claims;
    if (waves[rows.me] == wave)
      greedy_aggregates::form(a, couplings, of, next, [&](std::size_t j, std::int64_t number) {
        if (j >= n)
          claims[rows.owner(rows.ghosts[j - n])].push_back({rows.ghosts[j - n], number});
      });
    for (Claim const& claim : swap_lists(ranks, claims).joined())
      of[static_cast<std::size_t>(claim.row - rows.first[rows.me])] = claim.aggregate;
    auto const of_ghosts = values_of_ghosts<std::int64_t>(ranks, level.rows.neighbors, {of.data(), n});
    std::copy(of_ghosts.begin(), of_ghosts.end(), of.begin() + static_cast<std::ptrdiff_t>(n));
  }
  greedy_aggregates::join(a, couplings, of, next);
  of.resize(n);
  result.of = std::move(of);
  return result;
}

/// Makes aggregates of all ranks: on one where the matrix is. `of_all` becomes the couplings with those of ghosts, and `columns`
/// the map of aggregates, with those of other ranks that own unknowns and ghosts belong to. Collective.
Aggregates aggregates_of(Communicator& ranks, LevelRows const& level, Couplings& couplings, RowMap& columns) {
  Context& place = level.matrix->context();
  if (!level.rows.is_shared()) {
    Aggregates result = kernels_for<AggregationKernels>(place).aggregate(place, level.matrix->view(), couplings);
    columns = RowMap(ranks, result.count);
    return result;
  }
  couplings = with_ghosts(ranks, level, couplings);
  RankAggregates const aggregates = aggregated(ranks, level, couplings);
  RowMap const coarse(ranks, aggregates.count);
  // Aggregates of own unknowns and of ghosts, by their numbers over all ranks.
  std::vector<std::int64_t> numbers;
  for (std::int64_t const of : aggregates.of)
    numbers.push_back(of < 0 ? -1 : coarse.first[static_cast<std::size_t>(of >> 32)] + (of & 0xffffffff));
  auto const of_ghosts = values_of_ghosts<std::int64_t>(ranks, level.rows.neighbors, numbers);
  numbers.insert(numbers.end(), of_ghosts.begin(), of_ghosts.end());
  std::vector<std::int64_t> needed;
  for (std::int64_t const number : numbers)
    if (number >= 0 && !coarse.is_own(number))
      needed.push_back(number);
  columns = coarse.with_ghosts(ranks, std::move(needed));
  std::vector<std::int32_t> of;
  for (std::int64_t const number : numbers)
    of.push_back(number < 0 ? -1 : static_cast<std::int32_t>(columns.place(number)));
  return {Array<std::int32_t>(place, std::span<std::int32_t const>(of)), columns.n_here()};
}

/// Returns the level that follows by smoothed aggregation, where one is worth its cost. Collective.
std::optional<Coarser> aggregated_level(Communicator& ranks, Context& context, LevelRows const& fine, Couplings couplings,
                                        double damping, PreconditionerOptions const& options) {
  Context& place = fine.matrix->context();
  RowMap columns;
  std::unique_ptr<Csr> p;
  {
    Couplings of_rows = std::move(couplings);  // which go, with strong ones that take as much as the matrix, before P^T A P
    Aggregates const aggregates = aggregates_of(ranks, fine, of_rows, columns);
    options.done(place, "aggregates");
    auto const count = static_cast<double>(columns.n_of_all());
    if (count == 0 || count > least_shrink * static_cast<double>(fine.rows.n_of_all()))
      return std::nullopt;
    p = as_matrix(place,
                  kernels_for<AggregationKernels>(place).prolongation(place, fine.matrix->view(), of_rows, aggregates, damping));
    options.done(place, "P");
  }
  return coarser_level(ranks, context, fine, std::move(p), std::move(columns), options);
}

/// Rows of a coarsest matrix that are inverted in some ten milliseconds.
constexpr std::int64_t cheap_coarsest = 1000;

/// Whether a rank has none of these rows, and kernels of a device: they are not launched for nothing.
bool any_has_none(Context& context, Communicator& ranks, RowMap const& rows) {
  return any_of_ranks(ranks, context.backend() != Backend::cpu && rows.n_own() == 0);
}

/// Spaces inside that of the finest level, in order, and what is known of them.
struct NestedLevels {
  std::vector<NestedLevel> spaces{};
  std::shared_ptr<RankBlocks const> blocks{};  ///< where the last one's unknowns are nodes of a box
  int more_steps = 0;                          ///< of the smoother on the finest level
};

NestedLevels levels_of_spaces(Communicator& ranks, CsrView const& finest, RankNestedSpaces nested) {
  NestedLevels result;
  result.more_steps = std::max(nested.order - 2, 0);
  result.blocks = std::move(nested.blocks);
  result.spaces = nested_levels(ranks, finest, std::move(nested));
  return result;
}

/// Makes the levels of `rows`. `a`: null, or the matrix of the finest level. `host`: a context of the cpu. Collective.
template <class V>
MultigridHierarchy<V> levels_of_rows(LevelRows rows, Matrix const* a, Context& context, Context& host, Communicator& ranks,
                                     NestedLevels nested, PreconditionerOptions const& options) {
  MultigridOptions const& multigrid = options.multigrid;
  MultigridHierarchy<V> result;
  auto space = nested.spaces.begin();  // inside that of `rows`
  auto const add_levels = [&](MultigridHierarchy<V> coarser) {
    if (result.levels.empty() && !coarser.levels.empty())
      coarser.levels.front().more_steps = nested.more_steps;
    append(result, std::move(coarser));
  };
  // The level and all that follow, on every rank.
  auto const go_on_whole = [&](LevelRows const& level) {
    NestedLevels smaller;
    RowMap const* larger = &level.rows;
    auto whole = whole_matrix(ranks, level.matrix->view(), level.rows, level.rows);
    for (; space != nested.spaces.end(); larger = &space->of_p, ++space) {
      auto p = whole_matrix(ranks, view_of(*space->p), *larger, space->of_p);
      smaller.spaces.push_back({p, RowMap(alone(), p->n_columns)});
    }
    PreconditionerOptions rest = options;
    rest.box_nodes = {};
    rest.multigrid.levels = multigrid.levels - static_cast<int>(result.levels.size());
    LevelRows of_all(RowMap(alone(), whole->n_rows), std::make_unique<Csr>(whole, context));
    add_levels(levels_of_rows<V>(std::move(of_all), nullptr, context, host, alone(), std::move(smaller), rest));
  };
  if (rows.rows.is_shared()) {
    std::int64_t const n = rows.rows.n_of_all();
    if (n <= multigrid.coarse_size || any_has_none(context, ranks, rows.rows)) {
      result.entry = std::make_unique<GatheredEntry<V>>(context, std::make_unique<WholeVector<V>>(context, ranks, rows.rows.first));
      go_on_whole(rows);
      return result;
    }
    result.entry = entry_by_rows<V>(context, rows.rows);
  }
  for (;;) {
    bool const is_shared = rows.rows.is_shared();
    if (!is_shared && &rows.matrix->context() != &host && rows.matrix->view().nnz <= few_entries)
      rows = {std::move(rows.rows), std::make_unique<Csr>(std::make_shared<CsrMatrix const>(rows.matrix->to_csr()), host)};
    Context& place = rows.matrix->context();
    Couplings couplings = kernels_for<AggregationKernels>(place).couplings(place, rows.matrix->view(), options.positive);
    options.done(place, "couplings");
    MultigridLevel<V>* const level = add_level(result, rows, std::exchange(a, nullptr), couplings, context, ranks, options);
    if (level == nullptr)
      return result;
    if (result.levels.size() == 1)
      level->more_steps = nested.more_steps;
    std::int64_t const n = rows.matrix->n_rows();
    std::optional<Coarser> coarser;
    bool goes_on_as_box = false;
    if (static_cast<int>(result.levels.size()) == multigrid.levels || (!is_shared && n <= multigrid.coarse_size)) {
    } else if (space != nested.spaces.end()) {
      coarser = coarser_level(ranks, context, rows, std::make_unique<Csr>(space->p, place), std::move(space->of_p), options);
      ++space;
      goes_on_as_box = space == nested.spaces.end() && has_levels(nested.blocks.get());
    } else {
      coarser = aggregated_level(ranks, context, rows, std::move(couplings), 4 / (3 * level->largest), options);
    }
    if (!coarser) {
      if (options.only_if_cheap && n > std::max(cheap_coarsest, multigrid.coarse_size))
        result.failure = "coarsening by aggregation stops at " + std::to_string(n) + " unknowns";
      else if (!is_shared && n <= most_dense)
        result.coarsest = dense_rows(rows.matrix->to_csr());
      return result;
    }
    auto p = stored_as<V>(Format::csr, *coarser->p, context), r = stored_as<V>(Format::csr, *coarser->r, context);
    auto transfer = is_shared ? std::make_unique<RowsTransfer<V>>(ranks, std::move(p), std::move(r), coarser->of_r, coarser->of_p)
                              : std::make_unique<RowsTransfer<V>>(std::move(p), std::move(r));
    options.done(context, "transfers");
    RowMap const& next_rows = coarser->level.rows;
    bool const has_idle = any_has_none(context, ranks, next_rows);
    if (goes_on_as_box && !has_idle) {
      PreconditionerOptions rest = options;
      rest.box_nodes = {};
      rest.multigrid.levels = multigrid.levels - 1;
      RankMatrix const of_box = matrix_of_blocks(context, ranks, *nested.blocks, coarser->level);
      MultigridHierarchy<V> next = box_hierarchy<V>(of_box, *nested.blocks, rest);
      if (is_shared && next.failure.empty())
        transfer->goes_on_in(std::move(next.entry), next.levels.front().n());
      level->to_coarse = std::move(transfer);
      add_levels(std::move(next));
      return result;
    }
    bool const gathers = is_shared && (next_rows.n_of_all() <= multigrid.gathered_size || has_idle);
    if (gathers)
      transfer->goes_on_whole(std::make_unique<WholeVector<V>>(context, ranks, next_rows.first), numbers_in_whole(coarser->of_p));
    level->to_coarse = std::move(transfer);
    if (gathers) {
      go_on_whole(coarser->level);
      return result;
    }
    rows = std::move(coarser->level);
  }
}

}  // namespace

template <class V>
MultigridHierarchy<V> algebraic_hierarchy(Matrix const* a, CsrProvider const& csr, Context& context,
                                          PreconditionerOptions const& options) {
  std::unique_ptr<Context> const host = context.backend() == Backend::cpu ? nullptr : make_cpu_context();
  // The matrix in double, where the next level is made: in the context's memory, later in that of the host.
  LevelRows rows;
  rows.matrix = dynamic_cast<Csr const*>(a);
  if (rows.matrix == nullptr || rows.matrix->precision() != MatrixPrecision::double_) {
    if (a != nullptr && host != nullptr)
      rows.own = a->as_csr();
    if (rows.own == nullptr)
      rows.own = std::make_unique<Csr>(csr(), context);
    rows.matrix = rows.own.get();
  }
  rows.rows = RowMap(alone(), rows.matrix->n_rows());
  options.done(context, "CSR");
  NestedLevels levels;
  if (options.nested_spaces) {
    levels = levels_of_spaces(alone(), view_of(*csr()), options.nested_spaces());
    options.done(context, "nested spaces");
  }
  return levels_of_rows<V>(std::move(rows), a, context, host != nullptr ? *host : context, alone(), std::move(levels), options);
}

template <class V>
MultigridHierarchy<V> algebraic_hierarchy(RankMatrix const& a, RankNestedSpaces nested, PreconditionerOptions const& options) {
  Context& context = a.context();
  std::unique_ptr<Context> const own_host = context.backend() == Backend::cpu ? nullptr : make_cpu_context();
  Context& host = own_host != nullptr ? *own_host : context;
  LevelRows rows = finest_rows(a, host);
  options.done(context, "CSR");
  NestedLevels levels = levels_of_spaces(a.ranks(), rows.matrix->view(), std::move(nested));
  if (!levels.spaces.empty())
    options.done(context, "nested spaces");
  return levels_of_rows<V>(std::move(rows), nullptr, context, host, a.ranks(), std::move(levels), options);
}

template MultigridHierarchy<float> algebraic_hierarchy(Matrix const*, CsrProvider const&, Context&, PreconditionerOptions const&);
template MultigridHierarchy<double> algebraic_hierarchy(Matrix const*, CsrProvider const&, Context&, PreconditionerOptions const&);
template MultigridHierarchy<float> algebraic_hierarchy(RankMatrix const&, RankNestedSpaces, PreconditionerOptions const&);
template MultigridHierarchy<double> algebraic_hierarchy(RankMatrix const&, RankNestedSpaces, PreconditionerOptions const&);

}  // namespace poisson
