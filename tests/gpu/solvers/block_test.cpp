#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/elements/box_operator.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/elements/functions.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

/// Several right-hand sides at once against each of them alone.
namespace poisson::testing {

namespace {

using Columns = std::vector<std::vector<double>>;

/// Columns that converge at different times, are zero, equal, tiny, or far from each other in size.
Columns columns_of(std::int64_t n, std::size_t count = 8) {
  Columns all;
  all.push_back(random_vector(n, 5));
  all.emplace_back(static_cast<std::size_t>(n), 0.0);
  all.emplace_back(static_cast<std::size_t>(n), 1.0);
  all.push_back(all[0]);
  all.emplace_back(static_cast<std::size_t>(n), 0.0);
  all.back()[static_cast<std::size_t>(n) / 3] = 1e-200;
  all.push_back(random_vector(n, 6));
  for (double& value : all.back())
    value *= 1e150;
  all.emplace_back(static_cast<std::size_t>(n), 0.0);
  for (std::int64_t i = 0; i < n; ++i)
    all.back()[static_cast<std::size_t>(i)] = std::sin(0.1 * static_cast<double>(i));
  all.push_back(random_vector(n, 7));
  all.push_back(random_vector(n, 8));
  all.resize(count);
  return all;
}

struct Solved {
  std::vector<SolverResult> results;
  Columns x, x_low;
};

std::vector<double> brought_back(Array<double> const& x) {
  std::vector<double> host(static_cast<std::size_t>(x.size()));
  x.download(std::span<double>(host));
  return host;
}

Solved solve_one_by_one(MultiPrecisionOperator const& a, Columns const& b, SolverOptions const& options) {
  Solved solved;
  for (std::vector<double> const& column : b) {
    Array<double> x, x_low;
    solved.results.push_back(solve(a, Array<double>(a.context(), std::span<double const>(column)), x, x_low, options));
    solved.x.push_back(brought_back(x));
    solved.x_low.push_back(brought_back(x_low));
  }
  return solved;
}

Solved solve_at_once(MultiPrecisionOperator const& a, Columns const& b, SolverOptions const& options, int at_once = most_columns) {
  std::vector<Array<double>> of_b, x(b.size()), x_low(b.size());
  for (std::vector<double> const& column : b)
    of_b.emplace_back(a.context(), std::span<double const>(column));
  Solved solved;
  solved.results = solve_block(a, of_b, x, x_low, options, at_once);
  for (std::size_t j = 0; j < b.size(); ++j) {
    solved.x.push_back(brought_back(x[j]));
    solved.x_low.push_back(brought_back(x_low[j]));
  }
  return solved;
}

bool same_bits(std::vector<double> const& a, std::vector<double> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), sizeof(double) * a.size()) == 0);
}

/// Every column is what it is alone: to the last bit, or to what the tolerance allows.
void expect_alike(Solved const& block, Solved const& alone, bool to_the_bit) {
  ASSERT_EQ(block.results.size(), alone.results.size());
  for (std::size_t j = 0; j < block.results.size(); ++j) {
    SCOPED_TRACE("column " + std::to_string(j));
    SolverResult const &found = block.results[j], &expected = alone.results[j];
    EXPECT_EQ(found.status, expected.status) << found.reason << " | " << expected.reason;
    EXPECT_EQ(found.precision, expected.precision);
    EXPECT_EQ(found.preconditioner, expected.preconditioner);
    EXPECT_EQ(found.tolerance, expected.tolerance);
    if (to_the_bit) {
      EXPECT_TRUE(same_bits(block.x[j], alone.x[j]));
      EXPECT_TRUE(same_bits(block.x_low[j], alone.x_low[j]));
      EXPECT_TRUE(same_bits(found.history, expected.history));
      EXPECT_EQ(found.reason, expected.reason);
      EXPECT_EQ(found.notes, expected.notes);
      EXPECT_EQ(found.iterations, expected.iterations);
      EXPECT_EQ(found.cycles, expected.cycles);
      EXPECT_EQ(found.extended_from, expected.extended_from);
    } else if (expected.status == SolverStatus::converged) {
      EXPECT_LE(distance(block.x[j], alone.x[j]), 1e-8 * norm(alone.x[j]));
      EXPECT_NEAR(static_cast<double>(found.iterations), static_cast<double>(expected.iterations),
                  2 + 0.2 * static_cast<double>(expected.iterations));
    }
  }
}

/// Whether passes for several columns add the sums of a column as those for one do. On a device levels of multigrid may have such
/// passes, whatever the format of the matrix.
bool keeps_order(Format format, Backend backend, PreconditionerKind preconditioner) {
  bool const one_by_one = format != Format::half_cds && format != Format::csr && format != Format::crs_t;
  bool const has_levels = preconditioner == PreconditionerKind::multigrid || preconditioner == PreconditionerKind::automatic;
  return backend == Backend::cpu || (one_by_one && !has_levels);
}

template <class C>
class Blocks : public OnCase<C> {
protected:
  [[nodiscard]] std::unique_ptr<Matrix> made(std::shared_ptr<CsrMatrix const> csr, SolverOptions& options) {
    auto matrix = this->make(csr);
    options.csr = [csr] { return csr; };
    return matrix;
  }
  static bool to_the_bit(SolverOptions const& options) { return keeps_order(C::format, C::backend, options.preconditioner); }
};
TYPED_TEST_SUITE(Blocks, Cases, CaseNames);

TYPED_TEST(Blocks, AreTheirColumnsWithEveryMethodPrecisionAndPreconditioner) {
  auto const csr = box27(6, 5, 7, false, 0.3);
  Columns const b = columns_of(csr->n_rows);
  Deal deal(TypeParam::format);
  for (auto const& method : Names<Method>::values)
    for (auto const& precision : Names<Precision>::values)
      for (auto const& preconditioner : Names<PreconditionerKind>::values)
        for (Ordering const ordering : {Ordering::natural, Ordering::multicolor}) {
          if (ordering == Ordering::multicolor && !uses_ordering(preconditioner.value))
            continue;
          if (preconditioner.value == PreconditionerKind::direct && this->context->backend() != Backend::cpu)
            continue;
          if (!deal.next())
            continue;
          SolverOptions options;
          options.method = method.value;
          options.precision = precision.value;
          options.preconditioner = preconditioner.value;
          options.ordering = ordering;
          SCOPED_TRACE(std::string(method.name) + " " + std::string(precision.name) + " " + std::string(preconditioner.name));
          auto const matrix = this->made(csr, options);
          Solved const alone = solve_one_by_one(*matrix, b, options);
          expect_alike(solve_at_once(*matrix, b, options), alone, this->to_the_bit(options));
        }
}

/// One column after another, each with what the first has left, is each by itself; tolerances differ.
TYPED_TEST(Blocks, OneByOneWithTheSameSetup) {
  auto const csr = box27(6, 5, 7, false, 0.3);
  Columns const b = columns_of(csr->n_rows);
  Deal deal(TypeParam::format);
  for (auto const& precision : Names<Precision>::values)
    for (auto const& preconditioner : Names<PreconditionerKind>::values) {
      if (preconditioner.value == PreconditionerKind::direct && this->context->backend() != Backend::cpu)
        continue;
      if (!deal.next())
        continue;
      SolverOptions options;
      options.precision = precision.value;
      options.preconditioner = preconditioner.value;
      SCOPED_TRACE(std::string(precision.name) + " " + std::string(preconditioner.name));
      auto const matrix = this->made(csr, options);
      KeptSetup kept;
      Solved with, without;
      for (std::size_t j = 0; j < b.size(); ++j) {
        options.tolerance = j % 3 == 2 ? 1e-4 : 1e-11;
        auto const take = [&](KeptSetup* setup, Solved& all) {
          options.kept = setup;
          Solved const one = solve_one_by_one(*matrix, {b[j]}, options);
          all.results.push_back(one.results[0]);
          all.x.push_back(one.x[0]);
          all.x_low.push_back(one.x_low[0]);
        };
        take(&kept, with);
        take(nullptr, without);
        if (j > 0 && preconditioner.value != PreconditionerKind::automatic) {
          EXPECT_EQ(with.results[j].setup_seconds, 0) << "it was made again";
        }
      }
      EXPECT_GT(with.results[0].setup_seconds, 0);
      expect_alike(with, without, true);
    }
}

TYPED_TEST(Blocks, ColumnsStopByTheirOwnCriterion) {
  auto const csr = box27(12, 11, 10, false, 0.2);
  Columns b = columns_of(csr->n_rows);

  SolverOptions options;
  options.preconditioner = PreconditionerKind::none;
  options.precision = Precision::double_;
  options.tolerance = 1e-10;
  auto const matrix = this->made(csr, options);
  for (int const at_once : {8, 3, 1}) {
    Solved const block = solve_at_once(*matrix, b, options, at_once);
    std::set<std::int64_t> counts;
    for (std::size_t j = 0; j < b.size(); ++j) {
      EXPECT_EQ(block.results[j].status, SolverStatus::converged);
      counts.insert(block.results[j].iterations);
      auto r = naive_product(*csr, block.x[j]);
      EXPECT_LE(distance(r, b[j]), 2.1e-10 * norm(b[j]));
    }
    EXPECT_GE(counts.size(), 4U) << "the test's columns should converge at different times";
    EXPECT_EQ(block.results[1].iterations, 0);
    EXPECT_EQ(norm(block.x[1]), 0);
    EXPECT_TRUE(same_bits(block.x[0], block.x[3])) << "equal columns";
    expect_alike(block, solve_one_by_one(*matrix, b, options), this->to_the_bit(options));
  }
}

TYPED_TEST(Blocks, OfEverySize) {
  auto const csr = box27(7, 6, 5, false, 0.2);
  SolverOptions options;
  options.preconditioner = PreconditionerKind::jacobi;
  options.tolerance = 1e-11;
  auto const matrix = this->made(csr, options);
  for (std::size_t count = 0; count <= 9; ++count) {
    Columns const b = columns_of(csr->n_rows, count);
    expect_alike(solve_at_once(*matrix, b, options), solve_one_by_one(*matrix, b, options), this->to_the_bit(options));
  }
}

TYPED_TEST(Blocks, EndAsTheyDoAlone) {
  SolverOptions options;
  options.preconditioner = PreconditionerKind::none;
  options.precision = Precision::double_;
  {  // not enough iterations for most
    auto const csr = box27(8, 7, 6, false, 0.3);
    options.max_iterations = 9;
    auto const matrix = this->made(csr, options);
    Columns const b = columns_of(csr->n_rows);
    Solved const alone = solve_one_by_one(*matrix, b, options);
    EXPECT_EQ(alone.results[0].status, SolverStatus::max_iterations);
    expect_alike(solve_at_once(*matrix, b, options), alone, this->to_the_bit(options));
  }
  {  // a negative curvature, which some meet sooner than others
    auto indefinite = box27(5, 5, 5, false, 0.2);
    for (std::int64_t e = indefinite->row_ptr[60]; e < indefinite->row_ptr[61]; ++e)
      if (indefinite->columns[static_cast<std::size_t>(e)] == 60)
        indefinite->values[static_cast<std::size_t>(e)] = -50;
    options.max_iterations = 1000;
    auto const matrix = this->made(indefinite, options);
    Columns const b = columns_of(indefinite->n_rows);
    Solved const alone = solve_one_by_one(*matrix, b, options);
    EXPECT_EQ(alone.results[0].status, SolverStatus::breakdown);
    expect_alike(solve_at_once(*matrix, b, options), alone, this->to_the_bit(options));
  }
}

TYPED_TEST(Blocks, WithAConstantNullSpace) {
  auto const csr = box27(6, 7, 5, true, 0.2);
  SolverOptions options;
  options.constant_null_space = true;
  options.tolerance = 1e-9;
  for (PreconditionerKind const kind : {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::multigrid}) {
    options.preconditioner = kind;
    auto const matrix = this->made(csr, options);
    Columns b = columns_of(csr->n_rows);
    for (std::vector<double>& column : b) {
      double mean = 0;
      for (double const value : column)
        mean += value / static_cast<double>(column.size());
      for (double& value : column)
        value -= mean;
    }
    b.resize(4);
    b[2] = random_vector(csr->n_rows, 11);  // the one of constants has nothing left
    expect_alike(solve_at_once(*matrix, b, options), solve_one_by_one(*matrix, b, options), this->to_the_bit(options));
  }
}

template <class B>
class BlockInput : public OnBackend<B::value> {};
TYPED_TEST_SUITE(BlockInput, Backends, BackendNames);

TYPED_TEST(BlockInput, WrongOnesAreNamed) {
  auto const csr = box27(4, 4, 4);
  auto const matrix = make_matrix(Format::csr, csr, *this->context);
  auto const message = [&](Columns const& b, std::size_t n_x, int at_once) -> std::string {
    std::vector<Array<double>> of_b, x(n_x), x_low(n_x);
    for (std::vector<double> const& column : b)
      of_b.emplace_back(*this->context, std::span<double const>(column));
    try {
      static_cast<void>(solve_block(*matrix, of_b, x, x_low, {}, at_once));
    } catch (InputError const& error) {
      return error.what();
    }
    return "";
  };
  Columns b = columns_of(csr->n_rows, 3);
  expect_contains(message(b, 2, 8), {"3 right-hand sides", "2 solutions"});
  expect_contains(message(b, 3, 9), {"9 right-hand sides at once", "1 to 8"});
  expect_contains(message(b, 3, 0), {"0 right-hand sides at once"});
  b[2][7] = std::numeric_limits<double>::infinity();
  expect_contains(message(b, 3, 8), {"right-hand side 3 is inf", "row 8"});
  b[2].pop_back();
  expect_contains(message(b, 3, 8), {"right-hand side 3 has 63 entries", "64 rows"});
}

TYPED_TEST(BlockInput, AnInterruptEndsAllColumns) {
  auto const csr = box27(9, 9, 9);
  auto const matrix = make_matrix(Format::csr, csr, *this->context);
  SolverOptions options;
  options.preconditioner = PreconditionerKind::none;
  options.tolerance = 1e-13;
  options.monitor = [](std::int64_t iteration, double) {
    if (iteration >= 16)
      request_interrupt();
  };
  Solved const block = solve_at_once(*matrix, {random_vector(csr->n_rows, 1), random_vector(csr->n_rows, 2)}, options);
  clear_interrupt();
  for (SolverResult const& result : block.results) {
    EXPECT_EQ(result.status, SolverStatus::interrupted);
    EXPECT_EQ(result.iterations, 16);
  }
}

/// Boxes and their multigrid on the levels of the box, stored and matrix-free.
template <class B>
class BlocksOnBoxes : public OnBackend<B::value> {};
TYPED_TEST_SUITE(BlocksOnBoxes, Backends, BackendNames);

TYPED_TEST(BlocksOnBoxes, WithMultigridInEveryPrecisionAndCycle) {
  using Type = BoxProblem::Face::Type;
  std::array<std::int64_t, 3> const cells{16, 12, 20};
  BoxProblem problem{cells, {0, 0, 0}, {1, 1, 1}, {constant(1).code}, constant(1).code, {}};
  for (std::size_t i = 0; i < 6; ++i)
    problem.faces[i] = {i < 5 ? Type::dirichlet : Type::neumann, static_cast<int>(i), constant(0).code, constant(2).code};
  for (Format const format : {Format::half_cds, Format::matrix_free}) {
    BoxSystem system(*this->context, problem, format);
    Columns b = columns_of(system.matrix().n_rows());
    for (MultigridPrecision const precision : {MultigridPrecision::single, MultigridPrecision::double_})
      for (MultigridCycle const cycle : {MultigridCycle::v, MultigridCycle::w})
        for (MultigridSmoother const smoother : {MultigridSmoother::chebyshev, MultigridSmoother::jacobi})
          for (InitialGuess const initial : {InitialGuess::zero, InitialGuess::nested}) {
            SolverOptions options;
            options.preconditioner = PreconditionerKind::multigrid;
            options.box_nodes = {cells[0] + 1, cells[1] + 1, cells[2] + 1};
            options.multigrid.precision = precision;
            options.multigrid.cycle = cycle;
            options.multigrid.smoother = smoother;
            options.initial = initial;
            Solved const alone = solve_one_by_one(system.matrix(), b, options);
            EXPECT_EQ(alone.results[0].status, SolverStatus::converged);
            expect_alike(solve_at_once(system.matrix(), b, options), alone, TypeParam::value == Backend::cpu);
          }
  }
}

TEST(BlocksOnRanks, AreTheirColumns) {
  auto const csr = box27(3, 3, 40, false, 0.4);
  Columns const b = columns_of(csr->n_rows, 5);
  for (int const n_ranks : {2, 3}) {
    std::vector<std::int64_t> first;
    for (int r = 0; r <= n_ranks; ++r)
      first.push_back(csr->n_rows * r / n_ranks);
    for (PreconditionerKind const kind : {PreconditionerKind::none, PreconditionerKind::ic0, PreconditionerKind::multigrid})
      ThreadRanks::run(n_ranks, [&](Communicator& ranks) {
        auto const context = make_context(Backend::cpu);
        RankRows const rows = rows_of_rank(*csr, first, ranks.rank());
        SplitRows const parts = split(rows);
        RankMatrix const matrix(make_matrix(Format::half_cds, parts.local, *context), parts, rows.neighbors, ranks);
        SolverOptions options;
        options.preconditioner = kind;
        options.ranks = ranks;
        options.rows_of_rank = [&] { return NumberedRows{rows_of_rank(*csr, first, ranks.rank())}; };
        Columns own;
        for (std::vector<double> const& column : b)
          own.emplace_back(column.begin() + first[static_cast<std::size_t>(ranks.rank())],
                           column.begin() + first[static_cast<std::size_t>(ranks.rank()) + 1]);
        Solved const alone = solve_one_by_one(matrix, own, options);
        EXPECT_EQ(alone.results[0].status, SolverStatus::converged) << alone.results[0].reason;
        expect_alike(solve_at_once(matrix, own, options), alone, true);
      });
  }
}

}  // namespace

}  // namespace poisson::testing
