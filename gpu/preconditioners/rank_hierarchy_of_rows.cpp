#include "gpu/kernels/aggregation.hpp"
#include "gpu/kernels/greedy_aggregates.hpp"
#include "gpu/preconditioners/rank_levels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

namespace rank_levels {
namespace {

constexpr double shrink_worth_a_level = 0.8;

/// Returns the numbers of own unknowns and ghosts in vectors of which every rank has all.
std::vector<std::int32_t> numbers_in_whole(RowMap const& rows) {
  std::vector<std::int32_t> result;
  for (std::int64_t i = 0; i < rows.n_here(); ++i)
    result.push_back(static_cast<std::int32_t>(rows.number_at(i)));
  return result;
}

/// Returns a copy of the couplings with the strongest ones of ghosts, too. Collective.
Couplings with_ghosts(Communicator& ranks, Context& host, LevelRows const& level, Couplings const& couplings) {
  auto const n = static_cast<std::size_t>(level.matrix->n_rows);
  std::vector<double> strongest(couplings.strongest.data(), couplings.strongest.data() + n);
  auto const of_ghosts = values_of_ghosts<double>(ranks, level.rows.neighbors, strongest);
  strongest.insert(strongest.end(), of_ghosts.begin(), of_ghosts.end());
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
  CsrView const a = view_of(*level.matrix);
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

/// P by aggregates, smoothed, and P^T A P. `couplings`: with_ghosts. Collective.
Coarser aggregated_level(Communicator& ranks, Context& context, LevelRows const& fine, Couplings const& couplings,
                         RankAggregates const& aggregates, double damping) {
  auto const host = make_cpu_context();
  auto const& kernels = AggregationKernels::cpu();
  CsrMatrix const& a = *fine.matrix;
  RowMap const coarse(ranks, aggregates.count);
  // Aggregates of own unknowns and of ghosts, by their numbers over all ranks.
  std::vector<std::int64_t> numbers;
  for (std::int64_t const of : aggregates.of)
    numbers.push_back(of < 0 ? -1 : coarse.first[static_cast<std::size_t>(of >> 32)] + (of & 0xffffffff));
  auto const of_ghosts = values_of_ghosts<std::int64_t>(ranks, fine.rows.neighbors, numbers);
  numbers.insert(numbers.end(), of_ghosts.begin(), of_ghosts.end());
  std::vector<std::int64_t> needed;
  for (std::int64_t const number : numbers)
    if (number >= 0 && !coarse.is_own(number))
      needed.push_back(number);
  RowMap of_p = coarse.with_ghosts(ranks, std::move(needed));
  std::vector<std::int32_t> of;
  for (std::int64_t const number : numbers)
    of.push_back(number < 0 ? -1 : static_cast<std::int32_t>(of_p.place(number)));
  Aggregates const all{Array<std::int32_t>(*host, std::span<std::int32_t const>(of)), of_p.n_here()};
  auto p = std::make_shared<CsrMatrix const>(matrix_of_arrays(kernels.prolongation(*host, view_of(a), couplings, all, damping)));
  return coarser_level(ranks, context, fine, std::move(p), std::move(of_p));
}

}  // namespace
}  // namespace rank_levels

template <class V>
MultigridHierarchy<V> rank_hierarchy_of_rows(RankMatrix const& a, RankNestedSpaces nested, PreconditionerOptions const& options) {
  using namespace rank_levels;
  Context& context = a.context();
  Communicator& ranks = a.ranks();
  MultigridOptions const& multigrid = options.multigrid;
  auto const host = make_cpu_context();
  auto const& kernels = AggregationKernels::cpu();
  MultigridHierarchy<V> result;
  PreconditionerOptions rest = options;
  rest.box_nodes = {};
  LevelRows rows = finest_rows(a);
  options.done(context, "CSR");
  int const more_steps = std::max(nested.order - 2, 0);
  std::shared_ptr<RankBlocks const> const blocks = std::move(nested.blocks);
  std::vector<NestedLevel> spaces = nested_levels(ranks, rows, std::move(nested));
  auto space = spaces.begin();  // inside that of `rows`
  if (!spaces.empty())
    options.done(context, "nested spaces");
  RowMap const finest = rows.rows;
  auto const take_levels = [&](MultigridHierarchy<V> coarser) {
    for (MultigridLevel<V>& level : coarser.levels)
      result.levels.push_back(std::move(level));
    result.coarsest = std::move(coarser.coarsest);
    result.failure = std::move(coarser.failure);
  };
  auto const go_on_whole = [&](LevelRows const& level) {
    auto const matrix = whole_matrix(ranks, level);
    std::vector<std::shared_ptr<CsrMatrix const>> prolongations;
    RowMap const* larger = &level.rows;
    for (; space != spaces.end(); larger = &space->of_p, ++space)
      prolongations.push_back(whole_matrix(ranks, *space->p, *larger, space->of_p));
    rest.multigrid.levels = multigrid.levels - static_cast<int>(result.levels.size());
    take_levels(algebraic_hierarchy<V>(
        nullptr, [&] { return matrix; }, context, rest, prolongations));
  };
  std::vector<NodeBox> const boxes = finest.boxes();
  if (finest.n_of_all() <= multigrid.coarse_size || any_has_none(context, ranks, finest)) {
    result.entry = std::make_unique<GatheredEntry<V>>(context, ranks, boxes, NodeBox{{}, {finest.n_of_all(), 1, 1}});
    go_on_whole(rows);
    if (!result.levels.empty())
      result.levels.front().more_steps = more_steps;
    return result;
  }
  result.entry = std::make_unique<BlockEntry<V>>(context, boxes[finest.me], boxes[finest.me]);
  for (;;) {
    CsrMatrix const& matrix = *rows.matrix;
    Couplings const couplings = kernels.couplings(*host, view_of(matrix), options.positive);
    MultigridLevel<V>* const added = add_level(result, rows, couplings, context, ranks, options.positive);
    if (added == nullptr)
      return result;
    MultigridLevel<V>& level = *added;
    level.more_steps = result.levels.size() == 1 ? more_steps : 0;
    options.done(context, "level of rows");
    if (static_cast<int>(result.levels.size()) == multigrid.levels)
      return result;
    std::optional<Coarser> coarser;
    bool goes_on_as_box = false;
    if (space != spaces.end()) {
      coarser = coarser_level(ranks, context, rows, std::move(space->p), std::move(space->of_p));
      ++space;
      goes_on_as_box = space == spaces.end() && has_levels(blocks.get());
    } else {
      Couplings const of_all = with_ghosts(ranks, *host, rows, couplings);
      RankAggregates const aggregates = aggregated(ranks, rows, of_all);
      auto const count = static_cast<double>(sum_over(ranks, aggregates.count));
      options.done(context, "aggregates");
      if (count == 0 || count > shrink_worth_a_level * static_cast<double>(rows.rows.n_of_all()))
        return result;
      coarser = aggregated_level(ranks, context, rows, of_all, aggregates, 4 / (3 * level.largest));
    }
    RowMap const& next_rows = coarser->level.rows;
    auto transfer = std::make_unique<RowsTransfer<V>>(context, ranks, coarser->p, coarser->r, coarser->of_r, coarser->of_p);
    options.done(context, "P and P^T A P");
    bool const has_idle = any_has_none(context, ranks, next_rows);
    if (goes_on_as_box && !has_idle) {
      rest.multigrid.levels = multigrid.levels - 1;
      RankMatrix const of_box = matrix_of_level(context, ranks, with_ghosts_of(ranks, *blocks, coarser->level));
      MultigridHierarchy<V> next = rank_box_hierarchy<V>(of_box, *blocks, rest);
      if (next.failure.empty())
        transfer->goes_on_in(std::move(next.entry), next.levels.front().n());
      level.to_coarse = std::move(transfer);
      take_levels(std::move(next));
      return result;
    }
    bool const gathers = next_rows.n_of_all() <= multigrid.gathered_size || has_idle;
    if (gathers)
      transfer->goes_on_whole(std::make_unique<RowGather<V>>(context, ranks, next_rows), numbers_in_whole(coarser->of_p));
    level.to_coarse = std::move(transfer);
    if (gathers) {
      go_on_whole(coarser->level);
      return result;
    }
    rows = std::move(coarser->level);
  }
}

template MultigridHierarchy<float> rank_hierarchy_of_rows(RankMatrix const&, RankNestedSpaces, PreconditionerOptions const&);
template MultigridHierarchy<double> rank_hierarchy_of_rows(RankMatrix const&, RankNestedSpaces, PreconditionerOptions const&);

}  // namespace poisson
