#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/solvers/solver.hpp"

#include <limits>
#include <numbers>
#include <numeric>
#include <tuple>

namespace poisson::testing {

namespace {

/// Solves A x = b by a dense Cholesky factorisation in long double.
std::vector<double> cholesky_solve(CsrMatrix const& a, std::vector<double> const& b) {
  auto const n = static_cast<std::size_t>(a.n_rows);
  std::vector<std::vector<long double>> l(n, std::vector<long double>(n, 0));
  for (std::size_t row = 0; row < n; ++row)
    for (auto e = static_cast<std::size_t>(a.row_ptr[row]); e < static_cast<std::size_t>(a.row_ptr[row + 1]); ++e)
      l[row][static_cast<std::size_t>(a.columns[e])] = a.values[e];
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k)
      l[j][j] -= l[j][k] * l[j][k];
    EXPECT_GT(l[j][j], 0);
    l[j][j] = std::sqrt(l[j][j]);
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k)
        l[i][j] -= l[i][k] * l[j][k];
      l[i][j] /= l[j][j];
    }
  }
  std::vector<long double> y(b.begin(), b.end());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k)
      y[i] -= l[i][k] * y[k];
    y[i] /= l[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k)
      y[i] -= l[k][i] * y[k];
    y[i] /= l[i][i];
  }
  return {y.begin(), y.end()};
}

template <class C>
class Solve : public SolvesOnCase<C> {
protected:
  void SetUp() override {
    SolvesOnCase<C>::SetUp();
    clear_interrupt();
  }
  void TearDown() override { clear_interrupt(); }
};

TYPED_TEST_SUITE(Solve, Cases, CaseNames);

/// Nodes on a line between the values 1 and 0, with these conductances between neighbours: u falls where they are small.
std::shared_ptr<CsrMatrix> chain(std::vector<double> const& conductances) {
  Entries entries;
  auto const n = static_cast<std::int64_t>(conductances.size()) - 1;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = conductances[static_cast<std::size_t>(i)] + conductances[static_cast<std::size_t>(i + 1)];
    if (i > 0)
      entries[{i, i - 1}] = entries[{i - 1, i}] = -conductances[static_cast<std::size_t>(i)];
  }
  return to_csr(n, entries);
}

/// A layer that hardly conducts: ||b - A x|| says nothing of its rows. The drop is all in the layer.
TYPED_TEST(Solve, RowsWithSmallEntriesAreSolvedToo) {
  std::vector<double> conductances(12, 1.0);
  for (std::size_t i = 3; i < 6; ++i)
    conductances[i] = 0x1p-40;
  auto const csr = chain(conductances);
  std::vector<double> b(11, 0.0);
  b[0] = 1;
  double resistance = 0;
  for (double const c : conductances)
    resistance += 1 / c;
  for (Method const method : {Method::cg, Method::bicgstab})
    for (Precision const precision : {Precision::automatic, Precision::double_, Precision::refined, Precision::double_double}) {
      SCOPED_TRACE(std::string(name_of(method)) + ", " + std::string(name_of(precision)));
      auto const result =
          this->solve(csr, b, {.method = method, .precision = precision, .preconditioner = PreconditionerKind::jacobi});
      EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
      double drop = 0;
      for (std::size_t i = 0; i < b.size(); ++i) {
        drop += 1 / conductances[i] / resistance;
        EXPECT_NEAR(this->solution[i], 1 - drop, 1e-9) << i;
      }
    }
}

/// cg on a matrix that is not positive definite, stopped where its residual is enormous.
TYPED_TEST(Solve, WhatCgLeavesIsNoWorseThanZero) {
  Entries entries;
  for (std::int64_t i = 0; i < 30; ++i) {
    entries[{i, i}] = i % 2 == 0 ? 1 : -1.0001;
    if (i > 0)
      entries[{i, i - 1}] = entries[{i - 1, i}] = 0.3;
  }
  auto const csr = to_csr(30, entries);
  std::vector<double> const b = random_vector(30, 3);
  int worse = 0;
  for (std::int64_t limit = 1; limit < 30; ++limit) {
    auto const result = this->solve(csr, b, {.precision = Precision::double_, .max_iterations = limit});
    if (result.status == SolverStatus::converged)
      continue;
    worse += result.history.back() > 1 ? 1 : 0;
    EXPECT_LE(true_residual(*csr, this->solution, b), 1 + 1e-14) << result.reason;
  }
  EXPECT_GT(worse, 0) << "no residual was larger than that of 0: no test";
}

TYPED_TEST(Solve, AgreesWithCholesky) {
  for (auto const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi})
    for (auto const& csr : {banded(200, {1, 14}, 1, true), box27(7, 7, 7, false, 0.3), banded(33, {1}, 2, true)}) {
      auto const b = random_vector(csr->n_rows, 5);
      auto const expected = cholesky_solve(*csr, b);
      auto const result = this->solve(csr, b, {.preconditioner = preconditioner, .tolerance = 1e-13});
      EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
      EXPECT_EQ(result.reason, "");
      EXPECT_LE(result.residual_recursive, 1e-13);
      EXPECT_LE(distance(this->solution, expected), 1e-11 * norm(expected));
      EXPECT_LE(true_residual(*csr, this->solution, b), 1e-12);
      ASSERT_EQ(result.history.size(), static_cast<std::size_t>(result.iterations) + 1);
      EXPECT_DOUBLE_EQ(result.history.front(), 1);
      EXPECT_EQ(result.history.back(), result.residual_recursive);
      for (std::size_t i = 0; i + 1 < result.history.size(); ++i)
        EXPECT_GT(result.history[i], 1e-13);
    }
}

TYPED_TEST(Solve, KnownSolutionOfALargerSystem) {
  auto const csr = box27(24, 23, 22);
  auto const expected = random_vector(csr->n_rows, 8);
  auto const b = naive_product(*csr, expected);
  auto const result = this->solve(csr, b);
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_LE(distance(this->solution, expected), 1e-9 * norm(expected));
  EXPECT_GT(result.seconds, 0);
}

TYPED_TEST(Solve, EigenvectorConvergesInOneStep) {
  // -u'' by second differences: sin(pi i / (n + 1)) is an eigenvector with the eigenvalue 2 - 2 cos(pi / (n + 1)).
  std::int64_t const n = 500;
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 2;
    if (i > 0)
      entries[{i, i - 1}] = entries[{i - 1, i}] = -1;
  }
  std::vector<double> b(static_cast<std::size_t>(n));
  double const h = std::numbers::pi / static_cast<double>(n + 1);
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] = std::sin(h * static_cast<double>(i + 1));
  auto const result = this->solve(to_csr(n, entries), b, {.tolerance = 1e-8});
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_EQ(result.iterations, 1);
  double const eigenvalue = 2 - 2 * std::cos(h);
  EXPECT_NEAR(this->solution[250] * eigenvalue, b[250], 1e-8);
}

TYPED_TEST(Solve, JacobiUndoesDiagonalScaling) {
  // Conjugate gradients with Jacobi do not see a symmetric diagonal scaling; without it they do.
  auto const csr = box27(10, 10, 10);
  auto scaled = std::make_shared<CsrMatrix>(*csr);
  auto const weight = [](std::int64_t i) { return std::exp2(static_cast<double>(i * 7919 % 13)); };
  for (std::int64_t row = 0; row < csr->n_rows; ++row)
    for (auto e = static_cast<std::size_t>(csr->row_ptr[static_cast<std::size_t>(row)]);
         e < static_cast<std::size_t>(csr->row_ptr[static_cast<std::size_t>(row) + 1]); ++e)
      scaled->values[e] *= weight(row) * weight(csr->columns[e]);
  auto const b = random_vector(csr->n_rows, 5);
  auto scaled_b = b;
  for (std::size_t i = 0; i < b.size(); ++i)
    scaled_b[i] *= weight(static_cast<std::int64_t>(i));
  SolverOptions options{.preconditioner = PreconditionerKind::jacobi, .tolerance = 1e-13, .max_iterations = 20};
  static_cast<void>(this->solve(csr, b, options));
  auto const plain = this->solution;
  static_cast<void>(this->solve(scaled, scaled_b, options));
  auto unscaled = this->solution;
  for (std::size_t i = 0; i < b.size(); ++i)
    unscaled[i] *= weight(static_cast<std::int64_t>(i));
  EXPECT_LE(distance(unscaled, plain), 1e-12 * norm(plain));
}

TYPED_TEST(Solve, ZeroRightHandSide) {
  auto const csr = banded(100, {1}, 1, true);
  auto const result = this->solve(csr, std::vector<double>(100, 0));
  EXPECT_EQ(result.status, SolverStatus::converged);
  EXPECT_EQ(result.iterations, 0);
  EXPECT_EQ(result.residual_recursive, 0);
  EXPECT_EQ(this->solution, std::vector<double>(100, 0));
}

TYPED_TEST(Solve, NoRowAndOneRow) {
  EXPECT_EQ(this->solve(to_csr(0, {}), {}).status, SolverStatus::converged);
  auto const one = this->solve(to_csr(1, {{{0, 0}, 4.0}}), {10});
  EXPECT_EQ(one.status, SolverStatus::converged);
  EXPECT_EQ(one.iterations, 1);
  EXPECT_EQ(this->solution[0], 2.5);
}

TYPED_TEST(Solve, EmptyRowsWithoutLoad) {
  auto csr = to_csr(5, {{{0, 0}, 2.0}, {{2, 2}, 3.0}, {{4, 4}, 5.0}});
  auto const result = this->solve(csr, {2, 0, 6, 0, 10});
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(this->solution[i], (std::vector<double>{1, 0, 2, 0, 2})[i], 1e-12);
}

TYPED_TEST(Solve, HugeAndTinyRightHandSides) {
  auto const csr = box27(6, 6, 6);
  auto const b = random_vector(csr->n_rows, 3);
  auto const reference = this->solve(csr, b);
  auto const x = this->solution;
  for (int const exponent : {900, -900}) {
    auto scaled = b;
    for (double& v : scaled)
      v = std::scalbn(v, exponent);
    auto const result = this->solve(csr, scaled);
    EXPECT_EQ(result.history, reference.history) << exponent;
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(this->solution[i], std::scalbn(x[i], exponent));
  }
}

/// From near the solution there is little to do, whatever the scale; the negative of the solution is farther than 0.
TYPED_TEST(Solve, BeginsAtAGivenSolution) {
  auto const csr = box27(12, 11, 10);
  auto const b = random_vector(csr->n_rows, 3);
  auto const reference = this->solve(csr, b);
  auto const x = this->solution;
  auto const matrix = this->make(csr);
  for (auto const& [exponent, factor, is_near] : {std::tuple{0, 1.001, true}, {900, 1.001, true}, {0, -1.0, false}}) {
    auto scaled = b, near = x;
    for (std::size_t i = 0; i < b.size(); ++i) {
      scaled[i] = std::scalbn(b[i], exponent);
      near[i] = std::scalbn(factor * x[i], exponent);
    }
    Array<double> const start(matrix->context(), std::span<double const>(near));
    SolverOptions options;
    options.initial = InitialGuess::neighbour;
    options.start = &start;
    auto const result = this->solve(csr, scaled, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_EQ(result.began_at_start, is_near);
    if (is_near) {
      EXPECT_NEAR(result.history.front(), 0.001, 1e-6);
      EXPECT_LT(result.iterations, reference.iterations);
    } else {
      EXPECT_EQ(result.history, reference.history);
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(std::scalbn(this->solution[i], -exponent), x[i], 1e-9 * norm(x));
  }
}

TYPED_TEST(Solve, MaxIterations) {
  auto const csr = box27(12, 12, 12);
  auto const b = random_vector(csr->n_rows, 3);
  auto const result = this->solve(csr, b, {.max_iterations = 10});
  EXPECT_EQ(result.status, SolverStatus::max_iterations);
  EXPECT_EQ(result.iterations, 10);
  EXPECT_EQ(result.history.size(), 11U);
  expect_contains(result.reason, {"10 iterations", "1e-12"});
  EXPECT_NEAR(true_residual(*csr, this->solution, b), result.residual_recursive, 1e-10);
  EXPECT_EQ(this->solve(csr, b, {.max_iterations = 0}).iterations, 0);
}

TYPED_TEST(Solve, SolutionIsThatOfTheStoppingIteration) {
  // What the host enqueued beyond the end of the run must not have moved x: stopping by the count must give the same bits.
  auto const csr = box27(12, 12, 12);
  auto const b = random_vector(csr->n_rows, 3);
  auto const by_tolerance = this->solve(csr, b, {.tolerance = 1e-9});
  ASSERT_EQ(by_tolerance.status, SolverStatus::converged);
  auto const x = this->solution;
  auto const by_count = this->solve(csr, b, {.tolerance = 1e-15, .max_iterations = by_tolerance.iterations});
  ASSERT_EQ(by_count.status, SolverStatus::max_iterations);
  EXPECT_EQ(this->solution, x);
  EXPECT_EQ(by_count.history, by_tolerance.history);
}

TYPED_TEST(Solve, BreakdownOfAnIndefiniteMatrix) {
  Entries entries;
  for (std::int64_t i = 0; i < 50; ++i)
    entries[{i, i}] = i == 31 ? -50.0 : 1.0 + static_cast<double>(i);
  auto const result = this->solve(to_csr(50, entries), std::vector<double>(50, 1));
  EXPECT_EQ(result.status, SolverStatus::breakdown);
  expect_contains(result.reason,
                  {"not positive definite: curvature -", ("at iteration " + std::to_string(result.iterations + 1)).c_str()});
  for (double const v : this->solution)
    EXPECT_TRUE(std::isfinite(v));
}

TYPED_TEST(Solve, BreakdownAtOnceLeavesZero) {
  auto const result = this->solve(to_csr(3, {{{0, 0}, -1.0}, {{1, 1}, -1.0}, {{2, 2}, -2.0}}), {1, 1, 1});
  EXPECT_EQ(result.status, SolverStatus::breakdown);
  EXPECT_EQ(result.iterations, 0);
  expect_contains(result.reason, {"curvature -4 at iteration 1"});
  EXPECT_EQ(this->solution, std::vector<double>(3, 0));
}

TYPED_TEST(Solve, JacobiNamesTheRowOfABadDiagonal) {
  auto const result = this->solve(to_csr(3, {{{0, 0}, 1.0}, {{1, 1}, 2.0}, {{2, 2}, -0.5}}), {1, 1, 1},
                                  {.preconditioner = PreconditionerKind::jacobi});
  EXPECT_EQ(result.status, SolverStatus::breakdown);
  expect_contains(result.reason, {"row 3 (counted from 1)", "-0.5"});
}

TYPED_TEST(Solve, DivergenceIsSeen) {
  // A nearly singular step: p.Ap is tiny in the first iteration, so that the residual jumps beyond all digits of double.
  Entries entries{{{0, 0}, 1.0}, {{1, 1}, -1.0 + 0x1p-53}, {{0, 1}, 0.0}, {{1, 0}, 0.0}};
  auto const result = this->solve(to_csr(2, entries), {1, 1});
  EXPECT_EQ(result.status, SolverStatus::diverged);
  EXPECT_EQ(result.iterations, 1);
  expect_contains(result.reason, {"grew beyond", "x = 0"});
  EXPECT_EQ(result.residual_recursive, 1);
  EXPECT_EQ(this->solution, std::vector<double>(2, 0)) << "no iterate was better";
}

TYPED_TEST(Solve, InconsistentSystemStagnates) {
  // Singular with b outside its range: the residual cannot fall below the part of b in the null space.
  auto const csr = box27(6, 6, 6, true);
  std::vector<double> b = random_vector(csr->n_rows, 3);
  for (double& v : b)
    v += 1;
  auto const result = this->solve(csr, b, {.max_iterations = 1000000});
  EXPECT_NE(result.status, SolverStatus::converged);
  EXPECT_NE(result.status, SolverStatus::max_iterations);
  EXPECT_NE(result.reason, "");
}

TYPED_TEST(Solve, ToleranceBelowTheArithmetic) {
  auto const csr = box27(8, 8, 8);
  auto const result = this->solve(csr, random_vector(csr->n_rows, 3), {.tolerance = 1e-28, .max_iterations = 1000000});
  EXPECT_EQ(result.status, SolverStatus::stagnated);
  expect_contains(result.reason, {"double precision"});
}

TYPED_TEST(Solve, ConstantNullSpace) {
  for (auto const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
    auto const csr = box27(11, 10, 9, true, 0.5);
    auto expected = random_vector(csr->n_rows, 8);
    double const mean = std::accumulate(expected.begin(), expected.end(), 0.0) / static_cast<double>(expected.size());
    for (double& v : expected)
      v -= mean;
    auto const b = naive_product(*csr, expected);
    auto const result = this->solve(csr, b, {.preconditioner = preconditioner, .constant_null_space = true});
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_LE(distance(this->solution, expected), 1e-9 * norm(expected));
    EXPECT_NEAR(std::accumulate(this->solution.begin(), this->solution.end(), 0.0), 0, 1e-11);
    EXPECT_LE(true_residual(*csr, this->solution, b), 2e-12);
  }
}

TYPED_TEST(Solve, NullSpaceProjectionLastsThroughALongRun) {
  // 1e-9 of b lies in the null space and the run is long: without the projection the mean of x would drift.
  auto const csr = box27(60, 5, 3, true);
  auto b = random_vector(csr->n_rows, 8);
  double const mean = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(b.size());
  for (double& v : b)
    v += 1e-9 - mean;
  auto const result = this->solve(csr, b, {.tolerance = 1e-12, .constant_null_space = true});
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_NEAR(std::accumulate(this->solution.begin(), this->solution.end(), 0.0), 0, 1e-10 * norm(this->solution));
  auto projected = b;
  for (double& v : projected)
    v -= 1e-9;
  EXPECT_LE(true_residual(*csr, this->solution, projected), 1e-11);
}

TYPED_TEST(Solve, SameBitsEveryTimeAndForAnyThreadCount) {
  int const threads = thread_count();
  auto const csr = box27(20, 20, 20, false, 0.3);
  auto const b = random_vector(csr->n_rows, 3);
  for (auto const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
    std::vector<double> first_x, first_history;
    for (int const count : {2, 2, 1, 5}) {
      set_thread_count(count);
      auto const result = this->solve(csr, b, {.preconditioner = preconditioner});
      if (first_x.empty()) {
        first_x = this->solution;
        first_history = result.history;
      }
      EXPECT_EQ(this->solution, first_x) << count << " threads";
      EXPECT_EQ(result.history, first_history);
    }
  }
  set_thread_count(threads);
}

TYPED_TEST(Solve, MonitorAndInterrupt) {
  auto const csr = box27(14, 14, 14);
  auto const b = random_vector(csr->n_rows, 3);
  std::int64_t calls = 0, last = 0;
  double last_residual = 2;
  SolverOptions options{.tolerance = 1e-13};
  options.monitor = [&](std::int64_t iteration, double residual) {
    EXPECT_GT(iteration, last);
    last = iteration;
    last_residual = residual;
    ++calls;
  };
  auto const result = this->solve(csr, b, options);
  EXPECT_GE(calls, 1);
  EXPECT_LT(calls, result.iterations);
  EXPECT_EQ(last, result.iterations);
  EXPECT_EQ(last_residual, result.residual_recursive);

  options.monitor = [](std::int64_t, double) { request_interrupt(); };
  auto const stopped = this->solve(csr, b, options);
  EXPECT_EQ(stopped.status, SolverStatus::interrupted);
  EXPECT_GT(stopped.iterations, 0);
  EXPECT_LT(stopped.iterations, result.iterations);
  expect_contains(stopped.reason, {"interrupted after"});
  EXPECT_NEAR(true_residual(*csr, this->solution, b), stopped.residual_recursive, 1e-10);
}

TYPED_TEST(Solve, InterruptBeforeTheFirstIteration) {
  auto const csr = box27(5, 5, 5);
  for (auto const& method : Names<Method>::values)
    for (auto const& precision : Names<Precision>::values) {
      SCOPED_TRACE(std::string(method.name) + " " + std::string(precision.name));
      request_interrupt();
      auto const result = this->solve(csr, random_vector(csr->n_rows, 3), {.method = method.value, .precision = precision.value});
      clear_interrupt();
      EXPECT_EQ(result.status, SolverStatus::interrupted);
      EXPECT_EQ(result.iterations, 0);
      EXPECT_NEAR(result.residual_recursive, 1, 1e-14);
      EXPECT_EQ(result.history.size(), 1U);
      EXPECT_EQ(this->solution, std::vector<double>(this->solution.size(), 0));
    }
}

TYPED_TEST(Solve, BreakdownLeavesTheLastGoodIterate) {
  // Positive in the first two directions of the Krylov space, indefinite in the third: x keeps exactly its first steps.
  auto const csr = to_csr(3, {{{0, 0}, 1.0}, {{1, 1}, 2.0}, {{2, 2}, -0.01}});
  std::vector<double> const b{1, 1, 0.01};
  auto const result = this->solve(csr, b);
  ASSERT_EQ(result.status, SolverStatus::breakdown);
  ASSERT_GE(result.iterations, 1);
  EXPECT_NEAR(true_residual(*csr, this->solution, b), result.history.back(), 1e-14);
  EXPECT_LT(result.residual_recursive, 1);
}

TYPED_TEST(Solve, NotFiniteInput) {
  auto const csr = banded(100, {1}, 1, true);
  std::vector<double> b(100, 1);
  for (double const bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    b[37] = bad;
    try {
      static_cast<void>(this->solve(csr, b));
      FAIL() << "no InputError";
    } catch (InputError const& error) {
      expect_contains(error.what(), {"row 38 (counted from 1)"});
    }
    b[37] = 1;
    auto broken = std::make_shared<CsrMatrix>(*csr);
    broken->values[static_cast<std::size_t>(broken->row_ptr[63]) + 1] = bad;  // the diagonal entry
    try {
      static_cast<void>(this->solve(broken, b));
      FAIL() << "no InputError";
    } catch (InputError const& error) {
      expect_contains(error.what(), {"matrix", "row 64 (counted from 1)"});
    }
  }
}

/// Counted by hand.
TEST(SolverBytes, AreThoseOfVectorsAndPreconditioner) {
  std::int64_t const n = 1000, nnz = 5000, vector = 8 * n, factors = 12 * nnz + 24 * n;
  auto const bytes = [&](Method method, Precision precision, PreconditionerKind preconditioner,
                         Ordering ordering = Ordering::natural) {
    return solver_bytes(n, nnz, {.method = method, .precision = precision, .preconditioner = preconditioner, .ordering = ordering});
  };
  // x, r; p, A p; the best iterate
  EXPECT_EQ(bytes(Method::cg, Precision::double_, PreconditionerKind::none), 5 * vector);
  EXPECT_EQ(bytes(Method::cg, Precision::double_, PreconditionerKind::jacobi), 6 * vector);
  // ... z, and what lies between the two triangular solves
  EXPECT_EQ(bytes(Method::cg, Precision::double_, PreconditionerKind::ic0), 7 * vector + factors);
  // ... and z in the order of the factors, and that order
  EXPECT_EQ(bytes(Method::cg, Precision::double_, PreconditionerKind::ic0, Ordering::multicolor), 8 * vector + factors + 4 * n);
  // b, x, r in twice the precision; p, A p and what a cycle adds to x, and the best of that
  EXPECT_EQ(bytes(Method::cg, Precision::refined, PreconditionerKind::none), 2 * 3 * vector + 4 * vector);
  EXPECT_EQ(bytes(Method::cg, Precision::double_double, PreconditionerKind::jacobi), 2 * 6 * vector + vector);
  // x, r; the shadow residual, p, v, t; p and s behind the preconditioner
  EXPECT_EQ(bytes(Method::bicgstab, Precision::double_, PreconditionerKind::none), 7 * vector);
  EXPECT_EQ(bytes(Method::bicgstab, Precision::double_double, PreconditionerKind::jacobi), 2 * 10 * vector + vector);
  EXPECT_EQ(bytes(Method::bicgstab, Precision::double_double, PreconditionerKind::ilu0), 2 * 11 * vector + factors);
}

TYPED_TEST(Solve, WrongSizes) {
  auto const matrix = this->make(banded(10, {1}, 1, true));
  std::vector<double> b(9, 1), ten(10);
  EXPECT_THROW(static_cast<void>(poisson::solve(*matrix, b, ten, {})), InputError);
}

TYPED_TEST(Solve, BytesOfAnIterationAreCompulsory) {
  auto const csr = box27(6, 6, 6);
  auto const b = random_vector(csr->n_rows, 3);
  auto const matrix = this->make(csr);
  auto const n = static_cast<double>(csr->n_rows);
  EXPECT_EQ(this->solve(csr, b).bytes_per_iteration, static_cast<double>(matrix->bytes_per_product()) + 64 * n);
  EXPECT_EQ(this->solve(csr, b, {.preconditioner = PreconditionerKind::jacobi}).bytes_per_iteration,
            static_cast<double>(matrix->bytes_per_product()) + 80 * n);
  if (TypeParam::format == Format::half_cds) {
    EXPECT_EQ(this->solve(csr, b).bytes_per_iteration, 192 * n + 56);
  }
}

}  // namespace
}  // namespace poisson::testing
