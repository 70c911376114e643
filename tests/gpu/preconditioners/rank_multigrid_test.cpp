#include "gpu/core/error.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/elements/box_operator.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/preconditioners/multigrid.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/rank_devices.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

/// Multigrid on blocks of a box, which ranks share, against that of one rank.
namespace poisson::testing {

namespace {

using FaceType = BoxProblem::Face::Type;
using Counts = std::array<std::int64_t, 3>;

struct BoxInBlocks {
  Counts cells, blocks;
  std::vector<Data> k{constant(1)};
  Point extent{1, 1, 1};
  std::array<FaceType, 6> types{FaceType::dirichlet, FaceType::dirichlet, FaceType::dirichlet,
                                FaceType::dirichlet, FaceType::dirichlet, FaceType::dirichlet};
  int idle = 0;  ///< more ranks, without nodes
};

std::vector<BoxInBlocks> boxes_in_blocks() {
  constexpr std::array<FaceType, 6> mixed{FaceType::robin, FaceType::dirichlet, FaceType::neumann,
                                          FaceType::robin, FaceType::neumann,   FaceType::neumann};
  std::vector<BoxInBlocks> result;
  result.push_back({{16, 16, 16}, {1, 1, 2}});
  result.push_back({{17, 12, 13}, {2, 1, 1}});
  result.push_back({{13, 14, 15}, {3, 2, 1}});
  result.push_back({{12, 23, 11}, {1, 5, 1}});
  result.push_back({{9, 10, 11}, {2, 2, 2}});
  result.push_back({{16, 10, 12}, {1, 2, 1}, {constant(1)}, {1, 1, 1}, mixed, 2});
  result.push_back({{12, 14, 24}, {1, 2, 2}, {constant(1)}, {1, 1, 0.02}});
  result.push_back({{14, 13, 12}, {2, 1, 2}, {constant(1), constant(1), constant(1000)}});
  result.push_back({{4, 3, 60}, {1, 1, 7}, {constant(1)}, {1, 1, 15}});
  result.push_back({{7, 6, 5}, {2, 1, 3}});
  result.push_back({{16, 16, 16}, {2, 1, 2}, {octants(1e4)}});
  result.push_back({{15, 14, 13}, {1, 3, 1}, {ball(1e4)}});
  return result;
}

/// Each box has one stencil, and blocks of three nodes or more. Cells are even in number on some levels, on one, or on none.
std::vector<BoxInBlocks> boxes_without_entries() {
  constexpr std::array<FaceType, 6> mixed{FaceType::robin, FaceType::dirichlet, FaceType::neumann,
                                          FaceType::robin, FaceType::neumann,   FaceType::neumann};
  constexpr std::array<FaceType, 6> natural{FaceType::neumann, FaceType::dirichlet, FaceType::neumann,
                                            FaceType::neumann, FaceType::neumann,   FaceType::dirichlet};
  std::vector<BoxInBlocks> result;
  result.push_back({{16, 16, 16}, {1, 1, 2}});
  result.push_back({{32, 16, 24}, {3, 2, 1}, {constant(2)}, {1, 1, 1}, natural});
  result.push_back({{17, 12, 13}, {2, 1, 1}});
  result.push_back({{16, 20, 8}, {2, 5, 1}, {constant(1)}, {1, 1, 1}, natural, 1});
  result.push_back({{16, 10, 12}, {1, 2, 1}, {constant(1)}, {1, 1, 1}, mixed, 2});
  result.push_back({{16, 16, 12}, {2, 2, 2}, {constant(3)}, {1, 1, 1}, mixed});
  result.push_back({{12, 16, 24}, {1, 2, 2}, {constant(1)}, {1, 1, 0.02}});
  result.push_back({{16, 16, 12}, {2, 1, 2}, {constant(1), constant(1), constant(1000)}});
  return result;
}

std::vector<BoxInBlocks> boxes_in_rows() {
  std::vector<BoxInBlocks> result;
  result.push_back({{16, 14, 15}, {1, 1, 2}});
  result.push_back({{13, 14, 15}, {3, 1, 1}});
  result.push_back({{12, 13, 11}, {1, 5, 1}});
  result.push_back({{11, 10, 12}, {2, 2, 1}, {octants(1e3)}});
  result.push_back({{9, 8, 7}, {1, 1, 3}});
  result.back().idle = 1;
  return result;
}

RankBlocks blocks_of(BoxInBlocks const& box) {
  RankBlocks result;
  for (std::size_t d = 0; d < 3; ++d)
    result.nodes[d] = box.cells[d] + 1;
  NodeBox{{}, box.blocks}.for_all([&](Counts const& at) {
    NodeBox& own = result.own.emplace_back();
    for (std::size_t d = 0; d < 3; ++d) {
      own.low[d] = result.nodes[d] * at[d] / box.blocks[d];
      own.high[d] = result.nodes[d] * (at[d] + 1) / box.blocks[d];
    }
  });
  result.own.resize(result.own.size() + static_cast<std::size_t>(box.idle));
  return result;
}

NodeBox grown(NodeBox box, Counts const& nodes) {
  for (std::size_t d = 0; d < 3 && box.size() > 0; ++d) {
    box.low[d] = std::max<std::int64_t>(box.low[d] - 1, 0);
    box.high[d] = std::min(box.high[d] + 1, nodes[d]);
  }
  return box;
}

/// The rows of one block of the whole matrix; ghosts as RankBlocks says.
RankRows rows_of_block(CsrMatrix const& a, RankBlocks const& blocks, int rank) {
  RankRows result;
  auto const me = static_cast<std::size_t>(rank);
  NodeBox const whole = blocks.whole(), own = blocks.own[me], around = grown(own, blocks.nodes);
  std::map<std::int64_t, std::int32_t> place;
  own.for_all([&](Counts const& node) { place[whole.index(node)] = static_cast<std::int32_t>(own.index(node)); });
  for (std::size_t other = 0; other < blocks.own.size(); ++other) {
    if (other == me || own.size() == 0)
      continue;
    RankNeighbor neighbor{static_cast<int>(other), {}, 0};
    common(own, grown(blocks.own[other], blocks.nodes)).for_all([&](Counts const& node) {
      neighbor.sent.push_back(static_cast<std::int32_t>(own.index(node)));
    });
    common(blocks.own[other], around).for_all([&](Counts const& node) {
      place[whole.index(node)] = static_cast<std::int32_t>(place.size());
      ++neighbor.n_ghosts;
    });
    if (!neighbor.sent.empty() || neighbor.n_ghosts > 0)
      result.neighbors.push_back(neighbor);
  }
  auto rows = std::make_shared<CsrMatrix>();
  rows->n_rows = own.size();
  rows->n_columns = own.size() + result.n_ghosts();
  rows->row_ptr.push_back(0);
  own.for_all([&](Counts const& node) {
    std::int64_t const row = whole.index(node);
    std::map<std::int32_t, double> entries;
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      entries[place.at(a.columns[e])] = a.values[e];
    for (auto const& [column, value] : entries) {
      rows->columns.push_back(column);
      rows->values.push_back(value);
    }
    rows->row_ptr.push_back(static_cast<std::int64_t>(rows->columns.size()));
  });
  result.matrix = std::move(rows);
  return result;
}

std::vector<double> part(std::vector<double> const& all, RankBlocks const& blocks, int rank) {
  std::vector<double> result;
  blocks.own[static_cast<std::size_t>(rank)].for_all(
      [&](Counts const& node) { result.push_back(all[static_cast<std::size_t>(blocks.whole().index(node))]); });
  return result;
}

std::unique_ptr<RankMatrix> matrix_on_rank(CsrMatrix const& a, RankBlocks const& blocks, Format format, Context& context,
                                           Communicator& ranks) {
  RankRows const rows = rows_of_block(a, blocks, ranks.rank());
  SplitRows const parts = split(rows);
  std::unique_ptr<Matrix> local;
  try {
    local = make_matrix(parts.local->n_rows > 0 ? format : Format::csr, parts.local, context);
  } catch (InputError const&) {  // a block that the format refuses
    local = make_matrix(Format::csr, parts.local, context);
  }
  return std::make_unique<RankMatrix>(std::move(local), parts, rows.neighbors, ranks);
}

/// The cells between these nodes of the box, which are all of it or a part.
BoxProblem problem_of(BoxInBlocks const& box, NodeBox const& nodes) {
  BoxProblem problem;
  problem.source = constant(1).code;
  for (Data const& component : box.k)
    problem.coefficient.push_back(component.code);
  for (std::size_t d = 0; d < 3; ++d) {
    auto const cells = static_cast<double>(box.cells[d]);
    problem.cells[d] = nodes.count(d) - 1;
    problem.origin[d] = box.extent[d] * static_cast<double>(nodes.low[d]) / cells;
    problem.extent[d] = box.extent[d] * static_cast<double>(problem.cells[d]) / cells;
    for (std::size_t face = 2 * d; face < 2 * d + 2; ++face) {
      bool const inside = face % 2 == 0 ? nodes.low[d] > 0 : nodes.high[d] <= box.cells[d];
      FaceType const type = inside ? FaceType::cut : box.types[face];
      problem.faces[face] = {type, static_cast<int>(face), constant(type == FaceType::robin ? 0.5 : 0).code, constant(2).code};
    }
  }
  return problem;
}

/// The rows of a rank as it assembles them, without entries.
std::unique_ptr<RankMatrix> operator_on_rank(BoxInBlocks const& box, RankBlocks const& blocks, Context& context,
                                             Communicator& ranks) {
  auto const me = static_cast<std::size_t>(ranks.rank());
  NodeBox const own = blocks.own[me], around = grown(own, blocks.nodes);
  if (own.size() == 0) {
    SplitRows rows;
    auto const empty = std::make_shared<CsrMatrix>();
    empty->row_ptr.push_back(0);
    rows.local = rows.couplings = empty;
    return std::make_unique<RankMatrix>(make_matrix(Format::csr, empty, context), rows, std::vector<RankNeighbor>{}, ranks);
  }
  std::vector<RankNeighbor> neighbors;
  for (std::size_t other = 0; other < blocks.own.size(); ++other) {
    RankNeighbor neighbor{static_cast<int>(other), {}, 0};
    if (other == me)
      continue;
    common(own, grown(blocks.own[other], blocks.nodes)).for_all([&](Counts const& node) {
      neighbor.sent.push_back(static_cast<std::int32_t>(own.index(node)));
    });
    neighbor.n_ghosts = common(blocks.own[other], around).size();
    if (!neighbor.sent.empty() || neighbor.n_ghosts > 0)
      neighbors.push_back(neighbor);
  }
  BoxSystem system(context, problem_of(box, around), Format::matrix_free);
  BlockSystem block = take_block(system, BlockPlaces(around, blocks, me), context);
  return std::make_unique<RankMatrix>(std::move(block.local), std::move(block.rim), neighbors, ranks);
}

}  // namespace

template <class B>
class RankMultigrid : public OnBackend<B::value> {
protected:
  std::unique_ptr<Matrix> assembled(BoxInBlocks const& box, Format format = Format::half_cds) {
    return BoxSystem(*this->context, problem_of(box, blocks_of(box).whole()), format).take_matrix();
  }
  /// M^-1 r, on one rank.
  std::vector<double> applied(MultiPrecisionOperator const& a, PreconditionerOptions const& options, std::vector<double> const& r) {
    auto const setup = make_multigrid(a, options);
    EXPECT_EQ(setup->failure(), "");
    Array<std::int32_t> stop(a.context(), 1);
    stop.set_zero();
    Array<double> const of_r(a.context(), std::span<double const>(r));
    Array<double> z(a.context(), a.n_rows());
    setup->applied_in(0.0)->apply(of_r.data(), z.data(), stop.data());
    std::vector<double> result(r.size());
    z.download(std::span<double>(result));
    return result;
  }
  /// x of nested iteration, and what it was on the level before; empty where there is one level.
  std::array<std::vector<double>, 2> nested(MultiPrecisionOperator const& a, PreconditionerOptions const& options,
                                            std::vector<double> const& b) {
    std::array<std::vector<double>, 2> result;
    Array<double> const of_b(a.context(), std::span<double const>(b));
    Array<double> x(a.context(), a.n_rows()), coarse(a.context(), a.n_rows());
    if (!make_multigrid(a, options)->start_nested(of_b.data(), x.data(), coarse.data()))
      return result;
    for (auto& vector : result)
      vector.resize(b.size());
    x.download(std::span<double>(result[0]));
    coarse.download(std::span<double>(result[1]));
    return result;
  }
};
TYPED_TEST_SUITE(RankMultigrid, Backends, BackendNames);

/// Multigrid is the same map, whether levels are in blocks down to few unknowns, or on every rank from the second or the first on.
TYPED_TEST(RankMultigrid, IsThatOfOneRank) {
  for (BoxInBlocks const& box : boxes_in_blocks())
    for (std::int64_t const gathered : {30, 1 << 18})
      for (MultigridCycle const cycle : {MultigridCycle::v, MultigridCycle::w}) {
        auto const whole = this->assembled(box);
        CsrMatrix const csr = whole->to_csr();
        RankBlocks const blocks = blocks_of(box);
        PreconditionerOptions options;
        options.kind = PreconditionerKind::multigrid;
        options.multigrid.precision = MultigridPrecision::double_;
        options.multigrid.coarse_size = 30;
        options.multigrid.cycle = cycle;
        options.box_nodes = blocks.nodes;
        auto const r = random_vector(csr.n_rows, 5);
        std::vector<double> const expected = this->applied(*whole, options, r);
        double const scale = std::sqrt(std::inner_product(expected.begin(), expected.end(), expected.begin(), 0.0));
        options.multigrid.gathered_size = gathered;
        options.blocks = std::make_shared<RankBlocks const>(blocks);
        for (Format const format : {Format::half_cds, Format::csr})
          ThreadRanks::run(static_cast<int>(blocks.own.size()), [&](Communicator& ranks) {
            auto const own = make_context(this->context->backend());
            auto const a = matrix_on_rank(csr, blocks, format, *own, ranks);
            auto const z = this->applied(*a, options, part(r, blocks, ranks.rank()));
            auto const right = part(expected, blocks, ranks.rank());
            for (std::size_t i = 0; i < z.size(); ++i)
              ASSERT_NEAR(z[i], right[i], 1e-11 * scale) << box.cells[0] << " cells, rank " << ranks.rank() << ", row " << i;
          });
      }
}

/// The levels of stencils, and those that follow by entries.
TYPED_TEST(RankMultigrid, WithoutEntriesIsThatOfOneRank) {
  for (BoxInBlocks const& box : boxes_without_entries())
    for (std::int64_t const gathered : {30, 1 << 18}) {
      auto const whole = this->assembled(box, Format::matrix_free);
      RankBlocks const blocks = blocks_of(box);
      PreconditionerOptions options;
      options.kind = PreconditionerKind::multigrid;
      options.multigrid.precision = MultigridPrecision::double_;
      options.multigrid.coarse_size = 30;
      options.box_nodes = blocks.nodes;
      auto const r = random_vector(whole->n_rows(), 5);
      std::vector<double> const expected = this->applied(*whole, options, r);
      double const scale = std::sqrt(std::inner_product(expected.begin(), expected.end(), expected.begin(), 0.0));
      options.multigrid.gathered_size = gathered;
      options.blocks = std::make_shared<RankBlocks const>(blocks);
      ThreadRanks::run(static_cast<int>(blocks.own.size()), [&](Communicator& ranks) {
        auto const own = make_context(this->context->backend());
        auto const a = operator_on_rank(box, blocks, *own, ranks);
        auto const z = this->applied(*a, options, part(r, blocks, ranks.rank()));
        auto const right = part(expected, blocks, ranks.rank());
        for (std::size_t i = 0; i < z.size(); ++i)
          ASSERT_NEAR(z[i], right[i], 1e-11 * scale) << box.cells[0] << " cells, rank " << ranks.rank() << ", row " << i;
      });
    }
}

/// The test solves in every precision, with a cycle in single.
TYPED_TEST(RankMultigrid, SolvesWithoutEntriesAsOneRank) {
  for (BoxInBlocks const& box : boxes_without_entries()) {
    auto const whole = this->assembled(box, Format::matrix_free);
    RankBlocks const blocks = blocks_of(box);
    auto const b = random_vector(whole->n_rows(), 6);
    for (Precision const precision : {Precision::double_, Precision::refined, Precision::double_double}) {
      if (precision == Precision::double_double && box.idle > 0)
        continue;  // slow, and nothing new
      SolverOptions options;
      options.preconditioner = PreconditionerKind::multigrid;
      options.multigrid.coarse_size = 30;
      options.box_nodes = blocks.nodes;
      options.precision = precision;
      options.tolerance = precision == Precision::double_ ? 1e-11 : 1e-18;
      std::vector<double> x(b.size());
      SolverResult const one = solve(*whole, b, x, options);
      ASSERT_EQ(one.status, SolverStatus::converged) << one.reason;
      options.multigrid.gathered_size = 500;
      options.blocks = std::make_shared<RankBlocks const>(blocks);
      options.box_nodes = {};
      ThreadRanks::run(static_cast<int>(blocks.own.size()), [&](Communicator& ranks) {
        SolverOptions of_rank = options;
        of_rank.ranks = ranks;
        auto const own = make_context(this->context->backend());
        auto const a = operator_on_rank(box, blocks, *own, ranks);
        auto const b_own = part(b, blocks, ranks.rank()), right = part(x, blocks, ranks.rank());
        std::vector<double> x_own(b_own.size());
        SolverResult const result = solve(*a, b_own, x_own, of_rank);
        ASSERT_EQ(result.status, SolverStatus::converged) << result.reason;
        EXPECT_EQ(result.iterations, one.iterations);
        EXPECT_EQ(result.multigrid_levels.size(), one.multigrid_levels.size());
        for (std::size_t i = 0; i < right.size(); ++i)
          ASSERT_NEAR(x_own[i], right[i], 1e-9 * std::abs(right[i]) + 1e-12);
        if (a->n_rows() > 0) {
          auto const& stencil = dynamic_cast<BoxOperator const&>(a->local());
          EXPECT_EQ(stencil.bytes(), 27 * 8 * stencil.view().n_face_rows);
        }
      });
    }
  }
}

TYPED_TEST(RankMultigrid, BeginsNestedAsOneRank) {
  for (BoxInBlocks const& box : boxes_in_blocks())
    for (std::int64_t const gathered : {30, 1 << 18}) {
      auto const whole = this->assembled(box);
      CsrMatrix const csr = whole->to_csr();
      RankBlocks const blocks = blocks_of(box);
      PreconditionerOptions options;
      options.kind = PreconditionerKind::multigrid;
      options.multigrid.precision = MultigridPrecision::double_;
      options.multigrid.coarse_size = 30;
      options.box_nodes = blocks.nodes;
      auto const b = random_vector(csr.n_rows, 5);
      auto const expected = this->nested(*whole, options, b);
      ASSERT_FALSE(expected[0].empty());
      options.multigrid.gathered_size = gathered;
      options.blocks = std::make_shared<RankBlocks const>(blocks);
      ThreadRanks::run(static_cast<int>(blocks.own.size()), [&](Communicator& ranks) {
        auto const own = make_context(this->context->backend());
        auto const a = matrix_on_rank(csr, blocks, Format::half_cds, *own, ranks);
        auto const found = this->nested(*a, options, part(b, blocks, ranks.rank()));
        for (std::size_t k = 0; k < 2; ++k) {
          double const scale = std::sqrt(std::inner_product(expected[k].begin(), expected[k].end(), expected[k].begin(), 0.0));
          auto const right = part(expected[k], blocks, ranks.rank());
          for (std::size_t i = 0; i < right.size(); ++i)
            ASSERT_NEAR(found[k].at(i), right[i], 1e-11 * scale)
                << box.cells[0] << " cells, rank " << ranks.rank() << ", row " << i;
        }
      });
    }
}

/// Aggregates lie across ranks, in the order of their rows: not the same map as that of one rank, but one as good.
TYPED_TEST(RankMultigrid, OfAnyRows) {
  for (BoxInBlocks const& box : boxes_in_rows()) {
    auto const whole = this->assembled(box);
    auto const csr = std::make_shared<CsrMatrix const>(whole->to_csr());
    RankBlocks const blocks = blocks_of(box);
    std::vector<double> const b(static_cast<std::size_t>(csr->n_rows), 1.0);
    SolverOptions options;
    options.preconditioner = PreconditionerKind::multigrid;
    options.multigrid.coarse_size = 30;
    options.csr = [&] { return csr; };
    std::vector<double> x(b.size());
    SolverResult const one = solve(*whole, b, x, options);
    ASSERT_EQ(one.status, SolverStatus::converged);
    options.csr = {};
    for (std::int64_t const gathered : {40, 1 << 18})
      for (Precision const precision : {Precision::double_, Precision::refined})
        ThreadRanks::run(static_cast<int>(blocks.own.size()), [&](Communicator& ranks) {
          SolverOptions of_ranks = options;
          of_ranks.ranks = ranks;
          of_ranks.precision = precision;
          of_ranks.multigrid.gathered_size = gathered;
          auto const own = make_context(this->context->backend());
          auto const a = matrix_on_rank(*csr, blocks, Format::csr, *own, ranks);
          std::vector<double> const b_own = part(b, blocks, ranks.rank()), right = part(x, blocks, ranks.rank());
          std::vector<double> x_own(b_own.size());
          SolverResult const result = solve(*a, b_own, x_own, of_ranks);
          ASSERT_EQ(result.status, SolverStatus::converged) << result.reason;
          EXPECT_LE(result.iterations, one.iterations + 1);
          EXPECT_GE(std::ssize(result.multigrid_levels), 2);
          for (std::size_t i = 0; i < right.size(); ++i)
            ASSERT_NEAR(x_own[i], right[i], 1e-10 * std::abs(right[i]) + 1e-13);
        });
  }
}

namespace {

/// Every second node per direction.
RankBlocks halved(RankBlocks const& fine) {
  RankBlocks coarse;
  for (std::size_t d = 0; d < 3; ++d)
    coarse.nodes[d] = (fine.nodes[d] + 1) / 2;
  for (NodeBox const& nodes : fine.own) {
    NodeBox& mine = coarse.own.emplace_back();
    for (std::size_t d = 0; d < 3; ++d) {
      mine.low[d] = (nodes.low[d] + 1) / 2;
      mine.high[d] = (nodes.high[d] + 1) / 2;
    }
  }
  return coarse;
}

/// The space of trilinear functions on a box with cells twice as long as those of `fine`, whose nodes are even in number of cells.
/// Nodes of others come in any order.
RankNestedSpace every_second(RankBlocks const& fine, int rank) {
  RankNestedSpace result;
  RankBlocks const coarse = halved(fine);
  NodeBox const own = fine.own[static_cast<std::size_t>(rank)];
  std::map<std::pair<int, std::int64_t>, std::int32_t> others;
  result.p.n_rows = own.size();
  result.p.row_ptr.push_back(0);
  std::int64_t const n_own = coarse.own[static_cast<std::size_t>(rank)].size();
  auto const column_of = [&](Counts const& node) {
    for (std::size_t owner = 0; owner < coarse.own.size(); ++owner)
      if (NodeBox const nodes = coarse.own[owner]; common(nodes, {node, {node[0] + 1, node[1] + 1, node[2] + 1}}).size() > 0) {
        if (static_cast<int>(owner) == rank)
          return static_cast<std::int32_t>(nodes.index(node));
        auto const found = others.emplace(std::pair(static_cast<int>(owner), nodes.index(node)), std::ssize(others));
        if (found.second)
          result.others.push_back({static_cast<int>(owner), static_cast<std::int32_t>(nodes.index(node))});
        return static_cast<std::int32_t>(n_own + found.first->second);
      }
    throw std::logic_error("a node without a rank");
  };
  own.for_all([&](Counts const& node) {
    bool stays = true;
    for (std::int64_t corner = 0; corner < 8; ++corner) {
      Counts at{};
      double weight = 1;
      bool counts = true;
      for (std::size_t d = 0; d < 3; ++d) {
        bool const upper = (corner >> d & 1) != 0, even = node[d] % 2 == 0;
        at[d] = (node[d] + (upper ? 1 : 0)) / 2;
        counts = counts && !(even && upper);
        weight /= even ? 1 : 2;
        stays = stays && even;
      }
      if (counts) {
        result.p.columns.push_back(column_of(at));
        result.p.values.push_back(weight);
      }
    }
    result.p.row_ptr.push_back(std::ssize(result.p.columns));
    if (stays)
      result.rows.push_back(static_cast<std::int32_t>(own.index(node)));
  });
  result.p.n_columns = n_own + std::ssize(result.others);
  return result;
}

/// Nests spaces as if the nodes between those of boxes with ever longer cells were those of a higher order. With `as_box` the last
/// one is known to be a box.
RankNestedSpaces nested_in(RankBlocks const& fine, int rank, int steps, bool as_box) {
  RankNestedSpaces result;
  result.order = 2;
  RankBlocks blocks = fine;
  for (int step = 0; step < steps; ++step) {
    result.spaces.push_back(every_second(blocks, rank));
    blocks = halved(blocks);
  }
  if (as_box)
    result.blocks = std::make_shared<RankBlocks const>(blocks);
  return result;
}

/// A box whose nodes are those of nested spaces.
struct Nested {
  BoxInBlocks box;
  int steps = 1;
  bool as_box = true;
  std::array<std::int64_t, 2> gathered{30, 1 << 18};
};

/// On a device ranks without rows have the whole of all levels. Without `as_box` the coarsest space has 60 unknowns, which are not
/// aggregated: aggregates depend on the order of the unknowns.
std::vector<Nested> nested_boxes(Backend backend) {
  constexpr std::array<FaceType, 6> mixed{FaceType::robin, FaceType::dirichlet, FaceType::neumann,
                                          FaceType::robin, FaceType::neumann,   FaceType::neumann};
  std::vector<Nested> result;
  result.push_back({{{16, 12, 14}, {1, 1, 2}}});
  result.push_back({{{14, 16, 12}, {1, 1, 3}, {ball(100)}}});
  result.push_back({{{12, 10, 16}, {1, 2, 2}, {constant(1)}, {1, 1, 1}, mixed, backend == Backend::cpu ? 1 : 0}});
  result.push_back({{{16, 12, 8}, {2, 1, 2}, {ball(10)}, {1, 1, 1}, mixed, 1}, 2, false, {60, 1 << 18}});
  result.push_back({{{16, 12, 8}, {3, 1, 1}}, 2, false, {60, 1 << 18}});
  result.push_back({{{8, 12, 16}, {1, 1, 3}, {ball(10)}, {1, 1, 1}, mixed}, 2, false, {60, 1 << 18}});
  return result;
}

}  // namespace

/// The levels of nested spaces by P^T A P, and those of a box below: symmetric, and for any number of ranks the same map. In blocks
/// one above another unknowns are in the order of one rank; in others the estimate of the largest eigenvalue begins with another
/// vector.
TYPED_TEST(RankMultigrid, GoesOnInNestedSpacesAsOneRank) {
  for (Nested const& nested : nested_boxes(this->context->backend()))
    for (std::int64_t const gathered : nested.gathered) {
      BoxInBlocks const& box = nested.box;
      CsrMatrix const csr = this->assembled(box)->to_csr();
      auto const r = random_vector(csr.n_rows, 5), s = random_vector(csr.n_rows, 6);
      PreconditionerOptions options;
      options.kind = PreconditionerKind::multigrid;
      options.multigrid.precision = MultigridPrecision::double_;
      options.multigrid.coarse_size = nested.as_box ? 30 : 60;
      options.multigrid.gathered_size = gathered;
      std::vector<double> expected;
      for (bool const one : {true, false}) {
        BoxInBlocks shared = box;
        if (one) {
          shared.blocks = {1, 1, 1};
          shared.idle = 0;
        }
        RankBlocks const blocks = blocks_of(shared);
        ThreadRanks::run(static_cast<int>(blocks.own.size()), [&](Communicator& ranks) {
          auto const own = make_context(this->context->backend());
          auto const a = matrix_on_rank(csr, blocks, Format::csr, *own, ranks);
          PreconditionerOptions of_rank = options;
          of_rank.nested_spaces = [&] { return nested_in(blocks, ranks.rank(), nested.steps, nested.as_box); };
          EXPECT_GE(make_multigrid(*a, of_rank)->multigrid_levels().size(), 3U);
          auto const mine = part(r, blocks, ranks.rank()), other = part(s, blocks, ranks.rank());
          auto const z = this->applied(*a, of_rank, mine), w = this->applied(*a, of_rank, other);
          double const left = sum_over(ranks, std::inner_product(z.begin(), z.end(), other.begin(), 0.0)),
                       right = sum_over(ranks, std::inner_product(w.begin(), w.end(), mine.begin(), 0.0));
          EXPECT_NEAR(left, right, 1e-10 * std::abs(left));
          if (one) {
            expected = z;
            return;
          }
          double const scale = std::sqrt(std::inner_product(expected.begin(), expected.end(), expected.begin(), 0.0));
          bool const in_order_of_one = box.blocks[0] == 1 && box.blocks[1] == 1;
          double const tolerance = (in_order_of_one ? 1e-10 : 1e-3) * scale;
          auto const wanted = part(expected, blocks, ranks.rank());
          for (std::size_t i = 0; i < z.size(); ++i)
            ASSERT_NEAR(z[i], wanted[i], tolerance) << box.cells[0] << " cells, rank " << ranks.rank() << ", row " << i;
        });
      }
    }
}

using RankMultigridOnDevices = OnDevices;

/// Levels in blocks, and gathered ones.
TEST_F(RankMultigridOnDevices, HasTheBitsOfThatThroughHostMemory) {
  BoxInBlocks const box{{23, 17, 31}, {1, 1, 2}};
  auto const host = make_context(Backend::cpu);
  RankBlocks const blocks = blocks_of(box);
  CsrMatrix const csr = BoxSystem(*host, problem_of(box, blocks.whole())).matrix().to_csr();
  auto const b = random_vector(csr.n_rows, 5);
  SolverOptions options;
  options.preconditioner = PreconditionerKind::multigrid;
  options.multigrid.coarse_size = 30;
  options.multigrid.gathered_size = 1000;
  options.blocks = std::make_shared<RankBlocks const>(blocks);
  for (Format const format : {Format::half_cds, Format::matrix_free}) {
    std::vector<std::vector<double>> expected(2), found(2);
    for (Way const way : ways) {
      run(2, way, [&](Communicator& ranks, Context& context) {
        auto const a = format == Format::matrix_free ? operator_on_rank(box, blocks, context, ranks)
                                                     : matrix_on_rank(csr, blocks, format, context, ranks);
        auto const own = part(b, blocks, ranks.rank());
        std::vector<double>& x = (way == Way::host ? expected : found)[static_cast<std::size_t>(ranks.rank())];
        x.resize(own.size());
        SolverOptions with_ranks = options;
        with_ranks.ranks = ranks;
        SolverResult const result = poisson::solve(*a, own, x, with_ranks);
        EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
        EXPECT_LT(result.iterations, 20);
      });
      EXPECT_EQ(way == Way::host ? expected : found, expected) << "other bits";
    }
  }
}

}  // namespace poisson::testing
