#include "gpu/elements/block_system.hpp"

#include "gpu/formats/rank_matrix.hpp"
#include "gpu/solvers/true_residual.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <map>

/// The rows of ranks that share a box, assembled by each of them from the cells around its nodes.
namespace poisson::testing {

namespace {

using Type = BoxProblem::Face::Type;
using Counts = std::array<std::int64_t, 3>;

struct Cut {
  Counts cells, blocks;
  std::array<Type, 6> types;
  Format format = Format::half_cds;
};

constexpr std::array<Type, 6> around_all{Type::dirichlet, Type::dirichlet, Type::dirichlet,
                                         Type::dirichlet, Type::dirichlet, Type::dirichlet};
constexpr std::array<Type, 6> mixed_types{Type::robin, Type::dirichlet, Type::neumann, Type::robin, Type::neumann, Type::neumann};

/// The part of cut.cells that begins with cell `first`.
BoxProblem problem_of(Counts const& cells, Counts const& first, Cut const& cut) {
  Counts const& whole = cut.cells;
  Point const extent{1.5, 1, 2};
  Point low{}, size{};
  for (std::size_t d = 0; d < 3; ++d) {
    low[d] = extent[d] * static_cast<double>(first[d]) / static_cast<double>(whole[d]);
    size[d] = extent[d] * static_cast<double>(cells[d]) / static_cast<double>(whole[d]);
  }
  BoxProblem problem{cells, low, size, {polynomial(1, 0.5, 2).code}, sine(2, 3).code, {}};
  if (cut.format == Format::matrix_free)
    problem.coefficient = {constant(1).code, constant(2).code, constant(3).code};
  for (std::size_t face = 0; face < 6; ++face) {
    std::size_t const d = face / 2;
    bool const inside = face % 2 == 0 ? first[d] > 0 : first[d] + cells[d] < whole[d];
    problem.faces[face] = {inside ? Type::cut : cut.types[face], static_cast<int>(face), (inside ? constant(0) : sine(1, 2)).code,
                           polynomial(1, 1, 1).code};
  }
  return problem;
}

}  // namespace

template <class B>
class BlockSystems : public OnBackend<B::value> {};
TYPED_TEST_SUITE(BlockSystems, Backends, BackendNames);

TYPED_TEST(BlockSystems, AreTheRowsOfTheWhole) {
  std::vector<Cut> const cuts{{{7, 6, 9}, {1, 1, 2}, around_all},
                              {{7, 6, 9}, {2, 2, 1}, mixed_types},
                              {{9, 8, 10}, {3, 2, 2}, mixed_types},
                              {{6, 6, 2}, {2, 1, 1}, around_all},
                              {{7, 6, 9}, {1, 1, 2}, around_all, Format::matrix_free},
                              {{7, 6, 9}, {2, 2, 1}, mixed_types, Format::matrix_free},
                              {{9, 8, 10}, {3, 2, 2}, mixed_types, Format::matrix_free},
                              {{6, 6, 2}, {2, 1, 1}, around_all, Format::matrix_free}};
  for (Cut const& cut : cuts) {
    BoxSystem whole_system(*this->context, problem_of(cut.cells, {}, cut));
    CsrMatrix const csr = whole_system.matrix().to_csr();
    HostVector<double> const rhs = whole_system.take_rhs().take_host();
    RankBlocks blocks;
    std::vector<NodeBox> around;
    for (std::size_t d = 0; d < 3; ++d)
      blocks.nodes[d] = cut.cells[d] + 1;
    NodeBox const whole = blocks.whole();
    NodeBox{{}, cut.blocks}.for_all([&](Counts const& at) {
      NodeBox own, more;
      for (std::size_t d = 0; d < 3; ++d) {
        std::int64_t const low = cut.cells[d] * at[d] / cut.blocks[d], high = cut.cells[d] * (at[d] + 1) / cut.blocks[d];
        own.low[d] = low;
        own.high[d] = high + (high == cut.cells[d] ? 1 : 0);
        more.low[d] = std::max<std::int64_t>(low - 1, 0);
        more.high[d] = high + 1;
      }
      blocks.own.push_back(own);
      around.push_back(more);
    });
    auto const x = random_vector(csr.n_rows, 3), low = random_vector(csr.n_rows, 4);
    auto const product = naive_product(csr, x);
    std::vector<double> b(rhs.begin(), rhs.end()), x_low(low), residual(b.size());
    for (double& v : x_low)
      v *= 1e-17;
    CsrResidualCheck(csr).residual(x, x_low, b, residual);
    ThreadRanks::run(static_cast<int>(blocks.own.size()), [&](Communicator& ranks) {
      auto const me = static_cast<std::size_t>(ranks.rank());
      NodeBox const &own = blocks.own[me], &mine = around[me];
      // Ghosts by rank, then x fastest.
      std::vector<std::int32_t> places(static_cast<std::size_t>(mine.size()));
      std::vector<std::int64_t> number(static_cast<std::size_t>(own.size()));  // in the whole, of rows and then ghosts
      own.for_all([&](Counts const& node) {
        places[static_cast<std::size_t>(mine.index(node))] = static_cast<std::int32_t>(own.index(node));
        number[static_cast<std::size_t>(own.index(node))] = whole.index(node);
      });
      std::vector<RankNeighbor> neighbors;
      for (std::size_t other = 0; other < blocks.own.size(); ++other) {
        if (other == me)
          continue;
        RankNeighbor neighbor{static_cast<int>(other), {}, 0};
        common(own, around[other]).for_all([&](Counts const& node) {
          neighbor.sent.push_back(static_cast<std::int32_t>(own.index(node)));
        });
        common(blocks.own[other], mine).for_all([&](Counts const& node) {
          places[static_cast<std::size_t>(mine.index(node))] = static_cast<std::int32_t>(number.size());
          number.push_back(whole.index(node));
          ++neighbor.n_ghosts;
        });
        if (!neighbor.sent.empty() || neighbor.n_ghosts > 0)
          neighbors.push_back(neighbor);
      }
      auto const memory = make_context(this->context->backend());
      Counts cells{};
      for (std::size_t d = 0; d < 3; ++d)
        cells[d] = mine.count(d) - 1;
      BoxSystem system(*memory, problem_of(cells, mine.low, cut), cut.format);
      EXPECT_FALSE(system.pure_neumann());
      BlockPlaces const formulas(mine, blocks, me);
      ASSERT_EQ(formulas.size(), places.size());
      for (std::size_t i = 0; i < places.size(); ++i)
        ASSERT_EQ(formulas[i], places[i]) << i;
      BlockSystem block = take_block(system, formulas, *memory);
      ASSERT_EQ(block.local->format(), cut.format);
      auto const of_whole = [&](std::vector<double> const& all, std::size_t n) {
        std::vector<double> result;
        for (std::size_t i = 0; i < n; ++i)
          result.push_back(all[static_cast<std::size_t>(number[i])]);
        return result;
      };
      auto const n = static_cast<std::size_t>(own.size());
      auto const b_own = of_whole(b, n);
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_NEAR(block.rhs.host()[i], b_own[i], 1e-12);
      auto const field = [&](std::vector<double> const& all, std::size_t size) {
        auto const values = of_whole(all, size);
        return Field(HostVector<double>(values.begin(), values.end()));
      };
      Field const of_rank = stored_residual(*block.local, block.rim.formulas, *block.rim.couplings, field(b, n),
                                            field(x, number.size()), field(x_low, number.size()));
      std::span<double const> const r = of_rank.host();
      auto const expected_residual = of_whole(residual, n);
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_NEAR(r[i], expected_residual[i], 1e-12);
      RankMatrix const a(std::move(block.local), std::move(block.rim), neighbors, ranks);
      auto const x_own = of_whole(x, n);
      Array<double> const u(*memory, std::span<double const>(x_own));
      Array<double> y(*memory, own.size());
      a.product(1.0, u.data(), 0.0, y.data());
      std::vector<double> found(n);
      y.download(std::span<double>(found));
      auto const expected = of_whole(product, n);
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-12) << "row " << i << " of rank " << me;
      std::vector<DoubleDouble> const x_extended(x_own.begin(), x_own.end());
      Vector<DoubleDouble> const u_extended(*memory, std::span<DoubleDouble const>(x_extended));
      Vector<DoubleDouble> y_extended(*memory, own.size());
      a.product(DoubleDouble(1), u_extended.data(), DoubleDouble(0), y_extended.data());
      std::vector<DoubleDouble> found_extended(n);
      y_extended.download(std::span<DoubleDouble>(found_extended));
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_NEAR(found_extended[i].hi, expected[i], 1e-12) << "row " << i << " of rank " << me;
      // The rank has as many entries as these rows of the whole have.
      CsrMatrix const local = a.local().to_csr();
      std::int64_t entries = 0;
      for (std::size_t i = 0; i < n; ++i)
        entries += csr.row_ptr[number[i] + 1] - csr.row_ptr[number[i]];
      EXPECT_EQ(local.nnz() + a.couplings().nnz(), entries);
      // They are the entries of the whole, at the same places.
      HostVector<std::int32_t> const rim = a.rim();
      CsrMatrix const joined = join_rows(local, rim, rows_of_rim(local, rim, a.couplings()), a.n_ghosts());
      EXPECT_GT(rim.size(), 0U);
      for (std::size_t i = 0; i < n; ++i) {
        std::map<std::int64_t, double> row;
        for (std::int64_t e = csr.row_ptr[number[i]]; e < csr.row_ptr[number[i] + 1]; ++e)
          row[csr.columns[e]] = csr.values[e];
        ASSERT_EQ(joined.row_ptr[i + 1] - joined.row_ptr[i], std::ssize(row)) << "row " << i << " of rank " << me;
        for (std::int64_t e = joined.row_ptr[i]; e < joined.row_ptr[i + 1]; ++e) {
          ASSERT_TRUE(e == joined.row_ptr[i] || joined.columns[e - 1] < joined.columns[e]);
          auto const entry = row.find(number[static_cast<std::size_t>(joined.columns[e])]);
          ASSERT_NE(entry, row.end()) << "row " << i << " of rank " << me;
          EXPECT_NEAR(joined.values[e], entry->second, 1e-12);
        }
      }
    });
  }
}

}  // namespace poisson::testing
