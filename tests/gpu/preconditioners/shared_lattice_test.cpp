#include "gpu/core/dot_sum.hpp"
#include "gpu/elements/lattice_rows.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/solvers/solver.hpp"
#include "gpu/solvers/true_residual.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/lattice_cases.hpp"
#include "tests/gpu/rank_devices.hpp"
#include "tests/gpu/shared_lattices.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// Lattices that ranks share, against those of one rank.
namespace poisson::testing {

namespace {

struct Shared {
  LatticeCase lattices;
  std::vector<int> rank_of;
  std::int32_t cut = 1;  ///< pieces a side of larger lattices, which one rank has
};

std::vector<Shared> shared_cases() {
  auto const jumping = [](std::int64_t lattice) { return lattice % 2 == 0 ? 1.0 : 1e3; };
  std::vector<Shared> result;
  result.push_back({{{2, 1, 1}, 4}, {0, 1}});
  result.push_back({{{2, 2, 1}, 4, on_first_face}, {0, 1, 1, 0}});  // own unknowns that meet in another rank's lattice only
  result.push_back({{{3, 1, 2}, 8, all_around, jumping}, {0, 1, 2, 2, 0, 1}});
  result.push_back({{{2, 2, 2}, 8}, {1, 1, 0, 0, 1, 0, 1, 0}});
  result.push_back({{{2, 2, 2}, 8}, {1, 1, 0, 0, 1, 0, 1, 0}, 2});
  result.push_back({{{4, 2, 2}, 4, on_first_face}, {0, 1, 2, 2, 2, 1, 1, 0, 0, 0, 1, 1, 2, 2, 0, 1}, 2});
  result.push_back({{{3, 2, 2}, 6, on_first_face}, {4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 4, 4}});
  return result;
}

int ranks_of(Shared const& which) {
  return 1 + *std::max_element(which.rank_of.begin(), which.rank_of.end());
}

/// The rows of a rank.
struct RankCase {
  test::ShareOfBox share;
  std::unique_ptr<RankMatrix> matrix;
  HostVector<double> rhs;  ///< of a 1 from every lattice of the rank's, in all of their unknowns
};
RankCase rank_case(Shared const& which, Communicator& ranks, Context& context) {
  auto const box = test::make_lattice_box(which.lattices.lattices, which.lattices.cells);
  RankCase result;
  result.share = test::share_of(box, which.rank_of, ranks.rank(), which.cut);
  std::vector<double> const values = test::values_of(box, result.share.own, laplacian(box, which.lattices));
  auto lattices = std::make_shared<SharedLattices>(result.share.lattices);
  HostVector<std::uint8_t> fixed;
  auto const is_fixed = [&](std::int32_t unknown) {
    std::int64_t const node = std::find(box.unknown_of.begin(), box.unknown_of.end(), unknown) - box.unknown_of.begin();
    return which.lattices.fixed({node % box.nodes[0], node / box.nodes[0] % box.nodes[1], node / (box.nodes[0] * box.nodes[1])},
                                {box.nodes[0] - 1, box.nodes[1] - 1, box.nodes[2] - 1});
  };
  for (std::int64_t row = lattices->layout.n_inner(); row < lattices->n_rows; ++row)
    fixed.push_back(is_fixed(result.share.rows[static_cast<std::size_t>(row)]) ? 1 : 0);
  for (std::int32_t const unknown : result.share.ghosts)
    fixed.push_back(is_fixed(unknown) ? 1 : 0);
  BlockSystem rows =
      rows_of_lattices(ranks, lattices,
                       LatticeHalfCds::from_diagonals(context, LatticeArrays(context, lattices->layout),
                                                      Array<double>(context, std::span<double const>(values))),
                       Field(HostVector<double>(static_cast<std::size_t>(lattices->layout.n_unknowns), 1.0)), std::move(fixed));
  result.rhs = rows.rhs.take_host();
  result.matrix = std::make_unique<RankMatrix>(std::move(rows.local), lattices, ranks);
  return result;
}

std::unique_ptr<Matrix> whole_matrix(Shared const& which, Context& context) {
  auto const box = test::make_lattice_box(which.lattices.lattices, which.lattices.cells);
  HostVector<double> const values = laplacian(box, which.lattices);
  return LatticeHalfCds::from_diagonals(context, LatticeArrays(context, box.layout),
                                        Array<double>(context, std::span<double const>(values)));
}

double entry_of_vector(std::int64_t i) {
  return std::sin(static_cast<double>(7 * i % 1001));
}

/// Products, dots and diagonals are those of one rank.
void test_products(Shared const& which, Communicator& ranks, Context& context) {
  RankCase const rank = rank_case(which, ranks, context);
  auto const host = make_context(Backend::cpu);
  auto const whole = whole_matrix(which, *host);
  auto const n = static_cast<std::size_t>(whole->n_rows());
  HostVector<double> x(n), expected(n), diagonal(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = entry_of_vector(static_cast<std::int64_t>(i));
  double dot_of_whole = 0;
  std::int32_t const running = 0;
  whole->product_dot(x.data(), expected.data(), &dot_of_whole, &running);
  whole->diagonal(diagonal.data());

  std::vector<double> mine, none(rank.share.rows.size(), std::nan(""));
  for (std::int32_t const unknown : rank.share.rows)
    mine.push_back(x[static_cast<std::size_t>(unknown)]);
  Array<double> const x_here(context, std::span<double const>(mine));
  Array<double> y(context, std::span<double const>(none)), dot(context, 1);
  Array<std::int32_t> const go_on(context, std::span<std::int32_t const>(&running, 1));
  RankMatrix const& matrix = *rank.matrix;
  auto const expect_rows = [&](HostVector<double> const& of_whole, double factor, std::string const& what) {
    std::vector<double> found(mine.size());
    y.download(found);
    for (std::size_t row = 0; row < found.size(); ++row)
      ASSERT_NEAR(found[row], factor * of_whole[static_cast<std::size_t>(rank.share.rows[row])], 1e-11)
          << what << " of " << which.lattices.text() << ", rank " << ranks.rank() << ", row " << row;
  };
  matrix.product(2.0, x_here.data(), 0.0, y.data());  // whatever y was
  expect_rows(expected, 2, "product");
  matrix.product_dot(x_here.data(), y.data(), dot.data(), go_on.data());
  expect_rows(expected, 1, "product with dot");
  std::vector<double> found(1);
  dot.download(found);
  EXPECT_NEAR(sum_over(ranks, found[0]), dot_of_whole, 1e-9);
  matrix.diagonal(y.data());
  expect_rows(diagonal, 1, "diagonal");

  // Products in double-double are checked too.
  Array<double> const low(context, static_cast<std::int64_t>(mine.size()));
  context.set_zero(const_cast<double*>(low.data()), low.bytes());
  Array<double> y_low(context, static_cast<std::int64_t>(mine.size()));
  matrix.product(DoubleDouble(1), ConstPointer<DoubleDouble>{x_here.data(), low.data()}, DoubleDouble(0),
                 Pointer<DoubleDouble>{y.data(), y_low.data()});
  expect_rows(expected, 1, "product in double-double");

  // Rows by entries; what ranks contribute to a row is added.
  CsrMatrix const csr = whole->to_csr(), own = matrix.rows_of_lattices();
  std::vector<std::int32_t> unknowns = rank.share.rows;
  unknowns.insert(unknowns.end(), rank.share.ghosts.begin(), rank.share.ghosts.end());
  ASSERT_EQ(own.n_rows, std::ssize(mine));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    auto const row = static_cast<std::size_t>(rank.share.rows[i]);
    ASSERT_EQ(own.row_ptr[i + 1] - own.row_ptr[i], csr.row_ptr[row + 1] - csr.row_ptr[row]);
    for (auto e = static_cast<std::size_t>(own.row_ptr[i]); e < static_cast<std::size_t>(own.row_ptr[i + 1]); ++e) {
      std::int32_t const column = unknowns[static_cast<std::size_t>(own.columns[e])];
      auto const end = csr.columns.begin() + csr.row_ptr[row + 1];
      auto const match = std::find(csr.columns.begin() + csr.row_ptr[row], end, column);
      ASSERT_NE(match, end);
      EXPECT_NEAR(own.values[e], csr.values[static_cast<std::size_t>(match - csr.columns.begin())], 1e-11);
    }
  }
  // The residual is made by other loops: with b = A x it is what the product in double-double is rounded by.
  std::vector<double> high(mine.size()), rounded(mine.size()), r(mine.size()), whole_x = mine;
  y.download(high);
  y_low.download(rounded);
  for (std::int32_t const ghost : rank.share.ghosts)
    whole_x.push_back(x[static_cast<std::size_t>(ghost)]);
  StoredResidualCheck(matrix.local()).residual(whole_x, {}, high, r);
  for (std::size_t row = 0; row < r.size(); ++row)
    ASSERT_NEAR(r[row], -rounded[row], 1e-25) << which.lattices.text() << ", rank " << ranks.rank() << ", row " << row;
  // Each rank that has a row as a ghost adds 1 to it.
  HostVector<double> ghosts_of(static_cast<std::size_t>(rank.share.lattices.n_rows), 1.0);
  for (RankNeighbor const& neighbor : rank.share.lattices.neighbors)
    for (std::int32_t const row : neighbor.sent)
      ghosts_of[static_cast<std::size_t>(row)] += 1;
  EXPECT_EQ(rank.rhs, ghosts_of);
}

/// Iterations to 1e-10 on one rank, which has the lattices that are not cut.
std::int64_t iterations_of_whole(Shared const& which, Context& context, SolverOptions const& options) {
  LatticeCase uncut = which.lattices;
  for (std::int64_t& lattices : uncut.lattices)
    lattices /= which.cut;
  uncut.cells *= which.cut;
  auto const pieces = test::make_lattice_box(which.lattices.lattices, which.lattices.cells),
             box = test::make_lattice_box(uncut.lattices, uncut.cells);
  HostVector<double> const values = laplacian(box, uncut);
  auto const matrix = LatticeHalfCds::from_diagonals(context, LatticeArrays(context, box.layout),
                                                     Array<double>(context, std::span<double const>(values)));
  HostVector<double> b(static_cast<std::size_t>(matrix->n_rows())), x(b.size());
  for (std::size_t node = 0; node < b.size(); ++node)
    b[static_cast<std::size_t>(box.unknown_of[node])] = entry_of_vector(pieces.unknown_of[node]);
  return solve(*matrix, b, x, options).iterations;
}

void test_solve(Shared const& which, Communicator& ranks, Context& context, SolverOptions options, std::int64_t expected) {
  RankCase const rank = rank_case(which, ranks, context);
  options.ranks = ranks;
  HostVector<double> b, x(rank.share.rows.size());
  for (std::int32_t const unknown : rank.share.rows)
    b.push_back(entry_of_vector(unknown));
  SolverResult const result = solve(*rank.matrix, b, x, options);
  EXPECT_EQ(result.status, SolverStatus::converged) << which.lattices.text() << ": " << result.reason;
  EXPECT_EQ(result.preconditioner, PreconditionerKind::multigrid);
  EXPECT_LE(std::abs(result.iterations - expected), 1) << which.lattices.text();
  // The equations hold.
  Array<double> const solution(context, std::span<double const>(x));
  Array<double> y(context, std::ssize(x));
  rank.matrix->product(1.0, solution.data(), 0.0, y.data());
  std::vector<double> ax(x.size());
  y.download(ax);
  double residual = 0, norm = 0;
  for (std::size_t i = 0; i < ax.size(); ++i) {
    residual += (b[i] - ax[i]) * (b[i] - ax[i]);
    norm += b[i] * b[i];
  }
  EXPECT_LE(std::sqrt(sum_over(ranks, residual) / sum_over(ranks, norm)), 2e-10) << which.lattices.text();
}

SolverOptions multigrid_options() {
  SolverOptions options;
  options.preconditioner = PreconditionerKind::multigrid;
  options.tolerance = 1e-10;
  options.multigrid.coarse_size = 20;
  return options;
}

}  // namespace

TEST(SharedLattices, ProductsAreThoseOfOneRank) {
  for (Shared const& which : shared_cases())
    ThreadRanks::run(ranks_of(which), [&](Communicator& ranks) {
      auto const context = make_context(Backend::cpu);
      test_products(which, ranks, *context);
    });
}

// Levels on ranks down to the last that halving makes, from the first or second on gathered, and in double.
TEST(SharedLattices, MultigridTakesTheIterationsOfOneRank) {
  for (Shared const& which : shared_cases())
    for (std::int64_t const gathered : {0, 200, 1 << 20})
      for (auto const precision : {MultigridPrecision::single, MultigridPrecision::double_}) {
        SolverOptions options = multigrid_options();
        options.multigrid.precision = precision;
        options.multigrid.gathered_size = gathered;
        auto const host = make_context(Backend::cpu);
        std::int64_t const expected = iterations_of_whole(which, *host, options);
        SCOPED_TRACE("gathered from " + std::to_string(gathered));
        ThreadRanks::run(ranks_of(which), [&](Communicator& ranks) {
          auto const context = make_context(Backend::cpu);
          test_solve(which, ranks, *context, options, expected);
        });
      }
}

// Every run gives the same bits.
TEST(SharedLattices, RunsAreRepeated) {
  Shared const which = shared_cases()[2];
  std::vector<HostVector<double>> solutions(2);
  for (auto& solution : solutions)
    ThreadRanks::run(ranks_of(which), [&](Communicator& ranks) {
      auto const context = make_context(Backend::cpu);
      RankCase const rank = rank_case(which, ranks, *context);
      SolverOptions options = multigrid_options();
      options.ranks = ranks;
      HostVector<double> const b(rank.share.rows.size(), 1.0);
      HostVector<double> x(b.size());
      EXPECT_EQ(solve(*rank.matrix, b, x, options).status, SolverStatus::converged);
      if (ranks.rank() == 1)
        solution = x;
    });
  EXPECT_EQ(solutions[0], solutions[1]);
}

class SharedLatticesOnDevices : public OnDevices {};

TEST_F(SharedLatticesOnDevices, ProductsAndIterationsAreThoseOfOneRank) {
  for (Way const way : ways)
    for (Shared const& which : shared_cases()) {
      if (ranks_of(which) > n_devices)
        continue;
      SolverOptions options = multigrid_options();
      options.multigrid.gathered_size = 200;
      auto const host = make_context(Backend::cpu);
      std::int64_t const expected = iterations_of_whole(which, *host, options);
      run(ranks_of(which), way, [&](Communicator& ranks, Context& context) {
        test_products(which, ranks, context);
        test_solve(which, ranks, context, options, expected);
      });
    }
}

#ifdef POISSON_TEST_CUDA
// Ranks that share a device, through host memory.
TEST(SharedLatticesCuda, ProductsAndIterationsAreThoseOfOneRank) {
  if (cuda_device_count() == 0)
    GTEST_SKIP() << "there is no CUDA device";
  for (Shared const& which : shared_cases())
    for (std::int64_t const gathered : {0, 200}) {
      SolverOptions options = multigrid_options();
      options.multigrid.gathered_size = gathered;
      auto const host = make_context(Backend::cpu);
      std::int64_t const expected = iterations_of_whole(which, *host, options);
      ThreadRanks::run(ranks_of(which), [&](Communicator& ranks) {
        auto const context = make_context(Backend::cuda);
        test_products(which, ranks, *context);
        test_solve(which, ranks, *context, options, expected);
      });
    }
}
#endif

}  // namespace poisson::testing
