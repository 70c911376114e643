#include "gpu/kernels/aggregation.hpp"
#include "gpu/preconditioners/rank_levels.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

namespace rank_levels {
namespace {

constexpr double shrink_worth_a_level = 0.8;

/// P by aggregates of own unknowns, smoothed across ranks, and P^T A P. Collective.
Coarser aggregated_level(Communicator& ranks, Context& host, LevelRows const& fine, Couplings const& couplings,
                         Aggregates const& aggregates, double damping) {
  auto const& kernels = AggregationKernels::cpu();
  CsrMatrix const& a = *fine.matrix;
  std::int64_t const n = a.n_rows;
  Numbering const coarse(ranks, aggregates.count);
  std::int64_t const first = coarse.first[coarse.me];
  // Aggregates of own unknowns and of ghosts, by their numbers over all ranks.
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < n; ++i)
    numbers.push_back(aggregates.of.data()[i] < 0 ? -1 : first + aggregates.of.data()[i]);
  auto const of_ghosts = fine.ghosts.values<std::int64_t>(ranks, numbers);
  auto const strongest_of_ghosts = fine.ghosts.values<double>(ranks, {couplings.strongest.data(), static_cast<std::size_t>(n)});
  std::vector<std::int64_t> needed;
  for (std::int64_t const number : of_ghosts)
    if (number >= 0)
      needed.push_back(number);
  Ghosts of_p(ranks, coarse, std::move(needed));

  Couplings with_ghosts;
  with_ghosts.diagonal = couplings.diagonal.copy_to(host);
  std::vector<double> strongest(couplings.strongest.data(), couplings.strongest.data() + n);
  strongest.insert(strongest.end(), strongest_of_ghosts.begin(), strongest_of_ghosts.end());
  with_ghosts.strongest = Array<double>(host, std::span<double const>(strongest));
  std::vector<std::int32_t> of;
  numbers.insert(numbers.end(), of_ghosts.begin(), of_ghosts.end());
  for (std::int64_t const number : numbers)
    of.push_back(number < 0 ? -1 : static_cast<std::int32_t>(of_p.place(coarse, number)));
  Aggregates const all{Array<std::int32_t>(host, std::span<std::int32_t const>(of)), aggregates.count + std::ssize(of_p.numbers)};
  auto p = std::make_shared<CsrMatrix const>(matrix_of_arrays(kernels.prolongation(host, view_of(a), with_ghosts, all, damping)));
  return coarser_level(ranks, host, fine, coarse, std::move(p), std::move(of_p));
}

}  // namespace
}  // namespace rank_levels

template <class V>
MultigridHierarchy<V> rank_algebraic_hierarchy(RankMatrix const& a, PreconditionerOptions const& options) {
  using namespace rank_levels;
  Context& context = a.context();
  Communicator& ranks = a.ranks();
  MultigridOptions const& multigrid = options.multigrid;
  auto const host = make_cpu_context();
  auto const& kernels = AggregationKernels::cpu();
  MultigridHierarchy<V> result;
  PreconditionerOptions rest = options;
  rest.box_nodes = {};
  auto const go_on_whole = [&](LevelRows const& level) {
    auto const matrix = whole_matrix(ranks, level);
    auto coarser = algebraic_hierarchy<V>(
        nullptr, [&] { return matrix; }, context, rest);
    for (MultigridLevel<V>& next : coarser.levels)
      result.levels.push_back(std::move(next));
    result.coarsest = std::move(coarser.coarsest);
    result.failure = std::move(coarser.failure);
  };
  LevelRows rows = finest_rows(a).rows;
  options.done(context, "CSR");
  std::vector<NodeBox> const boxes = rows.numbering.boxes();
  if (rows.numbering.n_of_all() <= multigrid.coarse_size || any_has_none(context, ranks, rows.numbering)) {
    result.entry = std::make_unique<GatheredEntry<V>>(context, ranks, boxes, NodeBox{{}, {rows.numbering.n_of_all(), 1, 1}});
    go_on_whole(rows);
    return result;
  }
  result.entry = std::make_unique<BlockEntry<V>>(context, boxes[rows.numbering.me], boxes[rows.numbering.me]);
  for (;;) {
    CsrMatrix const& matrix = *rows.matrix;
    Couplings const couplings = kernels.couplings(*host, view_of(matrix), options.positive);
    MultigridLevel<V>* const added = add_level(result, rows, couplings, context, ranks, options.positive);
    if (added == nullptr)
      return result;
    MultigridLevel<V>& level = *added;
    options.done(context, "level of rows");
    if (static_cast<int>(result.levels.size()) == multigrid.levels)
      return result;
    CsrMatrix const block = own_block(matrix);
    Aggregates const aggregates = kernels.aggregate(*host, view_of(block), couplings);
    auto const count = static_cast<double>(sum_over(&ranks, aggregates.count));
    options.done(context, "aggregates");
    if (count == 0 || count > shrink_worth_a_level * static_cast<double>(rows.numbering.n_of_all()))
      return result;
    Coarser coarser = aggregated_level(ranks, *host, rows, couplings, aggregates, 4 / (3 * level.largest));
    auto transfer = std::make_unique<RowsTransfer<V>>(context, ranks, coarser.p, coarser.r, rows.numbering, coarser.of_r,
                                                      coarser.level.numbering, coarser.of_p);
    options.done(context, "P and P^T A P");
    if (coarser.level.numbering.n_of_all() <= multigrid.gathered_size || any_has_none(context, ranks, coarser.level.numbering)) {
      transfer->goes_on_whole(ranks, coarser.level.numbering, coarser.of_p);
      level.to_coarse = std::move(transfer);
      rest.multigrid.levels = multigrid.levels - static_cast<int>(result.levels.size());
      go_on_whole(coarser.level);
      return result;
    }
    level.to_coarse = std::move(transfer);
    rows = std::move(coarser.level);
  }
}

template MultigridHierarchy<float> rank_algebraic_hierarchy(RankMatrix const&, PreconditionerOptions const&);
template MultigridHierarchy<double> rank_algebraic_hierarchy(RankMatrix const&, PreconditionerOptions const&);

}  // namespace poisson
