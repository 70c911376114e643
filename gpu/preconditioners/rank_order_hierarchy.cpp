#include "gpu/kernels/aggregation.hpp"
#include "gpu/preconditioners/rank_levels.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace poisson {

namespace rank_levels {
namespace {

/// The level of order 1, with own rows of P.
struct Lowered {
  Numbering coarse;
  std::shared_ptr<CsrMatrix const> p;
  Ghosts of_p;
};
/// From the rows in the matrix's numbering. An unknown without couplings, such as one with a Dirichlet value, goes on alone where
/// it stays, and nothing else follows from it. Collective.
Lowered lowered(Communicator& ranks, FinestRows const& fine, RankOrderOne const& order_one) {
  LevelRows const& rows = fine.rows;
  CsrMatrix const& a = *rows.matrix;
  auto const n = static_cast<std::size_t>(a.n_rows);
  std::vector<std::uint8_t> alone(n);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    alone[i] = 1;
    for (auto e = static_cast<std::size_t>(a.row_ptr[i]); e < static_cast<std::size_t>(a.row_ptr[i + 1]); ++e)
      if (a.columns[e] != static_cast<std::int32_t>(i) && a.values[e] != 0)
        alone[i] = 0;
    count += order_one.stays[i] != 0 ? 1 : 0;
  }
  Lowered result;
  result.coarse = Numbering(ranks, count);
  // Numbers on the coarser level over all ranks; -1: does not stay, or nothing follows from it.
  std::vector<std::int64_t> numbers(n, -1);
  for (std::size_t i = 0, next = 0; i < n; ++i)
    if (order_one.stays[i] != 0)
      numbers[i] = result.coarse.first[result.coarse.me] + static_cast<std::int64_t>(next++);
  std::vector<std::int64_t> followed = numbers;
  for (std::size_t i = 0; i < n; ++i)
    if (alone[i] != 0)
      followed[i] = -1;
  auto const of_ghosts = rows.ghosts.values<std::int64_t>(ranks, followed);
  // Of the matrix's own ghosts, in its order.
  followed.reserve(n + fine.ghosts.size());
  for (std::int64_t const ghost : fine.ghosts)
    followed.push_back(of_ghosts[static_cast<std::size_t>(rows.ghosts.place(rows.numbering, ghost)) - n]);

  std::vector<std::int64_t> needed;
  auto const for_entries = [&](std::size_t i, auto const& action) {
    if (alone[i] != 0) {
      if (numbers[i] >= 0)
        action(numbers[i], 1.0);
      return;
    }
    for (auto e = static_cast<std::size_t>(order_one.p.row_ptr[i]); e < static_cast<std::size_t>(order_one.p.row_ptr[i + 1]); ++e)
      if (std::int64_t const number = followed[static_cast<std::size_t>(order_one.p.columns[e])]; number >= 0)
        action(number, order_one.p.values[e]);
  };
  for (std::size_t i = 0; i < n; ++i)
    for_entries(i, [&](std::int64_t number, double) {
      if (!result.coarse.is_own(number))
        needed.push_back(number);
    });
  result.of_p = Ghosts(ranks, result.coarse, std::move(needed));
  auto p = std::make_shared<CsrMatrix>();
  p->n_rows = a.n_rows;
  p->n_columns = result.coarse.n_own() + std::ssize(result.of_p.numbers);
  p->row_ptr.push_back(0);
  std::vector<std::pair<std::int32_t, double>> row;
  for (std::size_t i = 0; i < n; ++i) {
    row.clear();
    for_entries(i, [&](std::int64_t number, double value) {
      row.emplace_back(static_cast<std::int32_t>(result.of_p.place(result.coarse, number)), value);
    });
    std::sort(row.begin(), row.end());
    for (auto const& [column, value] : row) {
      p->columns.push_back(column);
      p->values.push_back(value);
    }
    p->row_ptr.push_back(std::ssize(p->columns));
  }
  result.p = std::move(p);
  return result;
}

/// The same rows with all nodes of `blocks` beside own ones among the ghosts, as of a matrix that was assembled. Collective.
LevelRows with_ghosts_of(Communicator& ranks, RankBlocks const& blocks, LevelRows const& level) {
  std::vector<std::int64_t> needed = level.ghosts.numbers;
  NodeBox const around = with_neighbours(blocks.own, blocks.nodes)[level.numbering.me];
  for (std::size_t other = 0; other < blocks.own.size(); ++other)
    if (other != level.numbering.me)
      common(blocks.own[other], around).for_all([&](std::array<std::int64_t, 3> const& node) {
        needed.push_back(level.numbering.first[other] + blocks.own[other].index(node));
      });
  LevelRows result{level.numbering, Ghosts(ranks, level.numbering, std::move(needed)), nullptr};
  auto matrix = std::make_shared<CsrMatrix>(*level.matrix);
  matrix->n_columns = level.numbering.n_own() + std::ssize(result.ghosts.numbers);
  for (std::int32_t& column : matrix->columns)  // which stay in ascending order
    column = static_cast<std::int32_t>(result.ghosts.place(level.numbering, level.ghosts.number_at(level.numbering, column)));
  result.matrix = std::move(matrix);
  return result;
}

/// The rows of a level as those of a matrix. Collective.
RankMatrix matrix_of_level(Context& context, Communicator& ranks, LevelRows const& level) {
  RankRows rows;
  rows.matrix = level.matrix;
  for (int other = 0; other < ranks.size(); ++other) {
    auto const r = static_cast<std::size_t>(other);
    auto const& ghosts = level.ghosts.numbers;
    RankNeighbor neighbor;
    neighbor.rank = other;
    neighbor.sent = level.ghosts.sent[r];
    neighbor.n_ghosts = std::lower_bound(ghosts.begin(), ghosts.end(), level.numbering.first[r + 1]) -
                        std::lower_bound(ghosts.begin(), ghosts.end(), level.numbering.first[r]);
    if (!neighbor.sent.empty() || neighbor.n_ghosts > 0)
      rows.neighbors.push_back(std::move(neighbor));
  }
  SplitRows const parts = split(rows);
  return {make_matrix(Format::csr, parts.local, context), parts, rows.neighbors, ranks};
}

}  // namespace
}  // namespace rank_levels

template <class V>
MultigridHierarchy<V> rank_hierarchy_of_order_one(RankMatrix const& a, RankBlocks const* blocks,
                                                  PreconditionerOptions const& options) {
  if (blocks != nullptr && blocks->nodes[0] >= 3 && blocks->nodes[1] >= 3)
    return rank_box_hierarchy<V>(a, *blocks, options);
  return rank_algebraic_hierarchy<V>(a, options);
}

template <class V>
MultigridHierarchy<V> rank_order_hierarchy(RankMatrix const& a, RankOrderOne const& order_one,
                                           PreconditionerOptions const& options) {
  using namespace rank_levels;
  Context& context = a.context();
  Communicator& ranks = a.ranks();
  FinestRows const fine = finest_rows(a);
  LevelRows const& rows = fine.rows;
  if (rows.numbering.n_of_all() <= options.multigrid.coarse_size || any_has_none(context, ranks, rows.numbering))
    return rank_algebraic_hierarchy<V>(a, options);
  Lowered p = lowered(ranks, fine, order_one);
  if (any_has_none(context, ranks, p.coarse))
    return rank_algebraic_hierarchy<V>(a, options);
  options.done(context, "CSR");
  auto const host = make_cpu_context();
  MultigridHierarchy<V> result;
  std::vector<NodeBox> const boxes = rows.numbering.boxes();
  result.entry = std::make_unique<BlockEntry<V>>(context, boxes[rows.numbering.me], boxes[rows.numbering.me]);
  Couplings const couplings = AggregationKernels::cpu().couplings(*host, view_of(*rows.matrix), options.positive);
  MultigridLevel<V>* const level = add_level(result, rows, couplings, context, ranks, options.positive);
  if (level == nullptr)
    return result;
  level->more_steps = std::max(order_one.order - 2, 0);
  options.done(context, "level of rows");
  if (options.multigrid.levels == 1)
    return result;
  Coarser const coarser = coarser_level(ranks, *host, rows, p.coarse, std::move(p.p), std::move(p.of_p));
  auto transfer = std::make_unique<RowsTransfer<V>>(context, ranks, coarser.p, coarser.r, rows.numbering, coarser.of_r,
                                                    coarser.level.numbering, coarser.of_p);
  options.done(context, "elements of order 1");
  PreconditionerOptions rest = options;
  rest.multigrid.levels -= 1;
  RankMatrix const matrix = matrix_of_level(
      context, ranks, order_one.blocks != nullptr ? with_ghosts_of(ranks, *order_one.blocks, coarser.level) : coarser.level);
  MultigridHierarchy<V> next = rank_hierarchy_of_order_one<V>(matrix, order_one.blocks.get(), rest);
  result.failure = std::move(next.failure);
  if (!result.failure.empty())
    return result;
  transfer->goes_on_in(std::move(next.entry), next.levels.front().n());
  level->to_coarse = std::move(transfer);
  for (MultigridLevel<V>& of_order_one : next.levels)
    result.levels.push_back(std::move(of_order_one));
  result.coarsest = std::move(next.coarsest);
  return result;
}

template MultigridHierarchy<float> rank_hierarchy_of_order_one(RankMatrix const&, RankBlocks const*, PreconditionerOptions const&);
template MultigridHierarchy<double> rank_hierarchy_of_order_one(RankMatrix const&, RankBlocks const*, PreconditionerOptions const&);
template MultigridHierarchy<float> rank_order_hierarchy(RankMatrix const&, RankOrderOne const&, PreconditionerOptions const&);
template MultigridHierarchy<double> rank_order_hierarchy(RankMatrix const&, RankOrderOne const&, PreconditionerOptions const&);

}  // namespace poisson
