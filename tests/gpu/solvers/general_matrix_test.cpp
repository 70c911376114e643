// `auto` of matrices of which nothing is known, and complete factors.

#include "gpu/formats/matrix.hpp"
#include "gpu/preconditioners/registry.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"

#include <gtest/gtest.h>
#include <set>

namespace poisson::testing {
namespace {

struct Answer {
  SolverResult result;
  std::vector<double> x;
  double residual = 0;  ///< ||b - A x|| / ||b||
};

Answer answer_of(std::shared_ptr<CsrMatrix const> const& csr, std::vector<double> const& b, SolverOptions options) {
  auto const context = make_cpu_context();
  auto const matrix = make_matrix(Format::csr, csr, *context);
  options.csr = [&] { return csr; };
  options.general = true;
  Answer answer;
  answer.x.assign(b.size(), 0);
  answer.result = solve(*matrix, b, answer.x, options);
  std::vector<double> r = b;
  for (std::size_t i = 0; i < r.size(); ++i)
    for (std::int64_t e = csr->row_ptr[i]; e < csr->row_ptr[i + 1]; ++e)
      r[i] -=
          csr->values[static_cast<std::size_t>(e)] * answer.x[static_cast<std::size_t>(csr->columns[static_cast<std::size_t>(e)])];
  answer.residual = norm(r) / norm(b);
  return answer;
}

SolverOptions automatic(Method method, bool falls_back = true) {
  SolverOptions options;
  options.method = method;
  options.preconditioner = PreconditionerKind::automatic;
  options.falls_back = falls_back;
  return options;
}

SolverOptions direct(Method method, Precision precision = Precision::double_) {
  SolverOptions options;
  options.method = method;
  options.precision = precision;
  options.preconditioner = PreconditionerKind::direct;
  return options;
}

std::vector<double> counted(std::int64_t n) {
  std::vector<double> b;
  for (std::int64_t i = 0; i < n; ++i)
    b.push_back(1 + static_cast<double>(i % 7));
  return b;
}

/// Unsymmetric, with entries far from the diagonal.
std::shared_ptr<CsrMatrix> scattered(std::int64_t n) {
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 3;
    entries[{i, (i * 7 + 3) % n}] += 1.5;
    entries[{i, (i * 13 + 5) % n}] -= 1.25;
  }
  return to_csr(n, entries);
}

TEST(Direct, SolvesByHand) {
  // 2 x + y = 5, x + 3 z = 10, 4 y - z = 5.
  auto const csr = to_csr(3, {{{0, 0}, 2}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 2}, 3}, {{2, 1}, 4}, {{2, 2}, -1}});
  Answer const answer = answer_of(csr, {5, 10, 5}, direct(Method::bicgstab));
  EXPECT_EQ(answer.result.status, SolverStatus::converged) << answer.result.reason;
  // From the first x = (5 - y) / 2, from the third z = 4 y - 5, and in the second 2.5 - y / 2 + 12 y - 15 = 10: y = 22.5 / 11.5.
  double const y = 22.5 / 11.5;
  EXPECT_NEAR(answer.x[0], (5 - y) / 2, 1e-14);
  EXPECT_NEAR(answer.x[1], y, 1e-14);
  EXPECT_NEAR(answer.x[2], 4 * y - 5, 1e-14);
  EXPECT_LE(answer.result.iterations, 2);
}

TEST(Direct, EveryPrecision) {
  auto const unsymmetric = scattered(500);
  auto const symmetric = box27(7, 6, 5, false, 0.3);
  for (auto const& precision : Names<Precision>::values) {
    SCOPED_TRACE(precision.name);
    SolverOptions options = direct(Method::bicgstab, precision.value);
    options.tolerance = precision.value == Precision::double_ || precision.value == Precision::automatic ? 1e-13 : 1e-27;
    Answer const general = answer_of(unsymmetric, counted(500), options);
    EXPECT_EQ(general.result.status, SolverStatus::converged) << general.result.reason;
    EXPECT_LE(general.result.iterations, 4);
    EXPECT_LE(general.residual, 1e-13);
    options.method = Method::cg;
    Answer const definite = answer_of(symmetric, counted(symmetric->n_rows), options);
    EXPECT_EQ(definite.result.status, SolverStatus::converged) << definite.result.reason;
    EXPECT_LE(definite.result.iterations, 4);
  }
}

/// Its null space is that of the constants: the solution is the one without mean.
TEST(Direct, KnowsTheNullSpaceOfConstants) {
  auto const csr = box27(5, 4, 6, true, 0.2);
  std::vector<double> b = counted(csr->n_rows);
  double mean = 0;
  for (double const value : b)
    mean += value / static_cast<double>(b.size());
  for (double& value : b)
    value -= mean;
  SolverOptions options = direct(Method::cg);
  options.constant_null_space = true;
  Answer const answer = answer_of(csr, b, options);
  EXPECT_EQ(answer.result.status, SolverStatus::converged) << answer.result.reason;
  EXPECT_LE(answer.result.iterations, 3);
  EXPECT_LE(answer.residual, 1e-12);
}

TEST(Direct, SaysThatAMatrixIsSingular) {
  for (auto const& csr : {to_csr(2, {{{0, 0}, 1}, {{0, 1}, 2}, {{1, 0}, 2}, {{1, 1}, 4}}),  // by its numbers
                          to_csr(2, {{{0, 0}, 1}, {{1, 0}, 2}})}) {                         // by its pattern
    Answer const answer = answer_of(csr, {1, 1}, direct(Method::bicgstab));
    EXPECT_EQ(answer.result.status, SolverStatus::breakdown);
    EXPECT_NE(answer.result.reason.find("singular"), std::string::npos) << answer.result.reason;
    EXPECT_EQ(answer.x, std::vector<double>(2, 0.0));
  }
}

/// Kershaw's (1978): positive definite, and its incomplete factors have a negative pivot.
TEST(GeneralMatrix, IncompleteFactorsGetTheShiftThatTheyNeed) {
  auto const csr = to_csr(4, {{{0, 0}, 3},
                              {{0, 1}, -2},
                              {{0, 3}, 2},
                              {{1, 0}, -2},
                              {{1, 1}, 3},
                              {{1, 2}, -2},
                              {{2, 1}, -2},
                              {{2, 2}, 3},
                              {{2, 3}, -2},
                              {{3, 0}, 2},
                              {{3, 2}, -2},
                              {{3, 3}, 3}});
  SolverOptions alone;
  alone.preconditioner = PreconditionerKind::ic0;
  EXPECT_EQ(answer_of(csr, {1, 2, 3, 4}, alone).result.status, SolverStatus::breakdown);
  Answer const answer = answer_of(csr, {1, 2, 3, 4}, automatic(Method::cg));
  EXPECT_EQ(answer.result.status, SolverStatus::converged) << answer.result.reason;
  EXPECT_LE(answer.residual, 2e-12);
  if (answer.result.preconditioner == PreconditionerKind::ic0) {
    EXPECT_GT(answer.result.shift, 0);
    ASSERT_FALSE(answer.result.notes.empty());
    EXPECT_NE(answer.result.notes[0].find("took the diagonal shift"), std::string::npos) << answer.result.notes[0];
  }
}

/// A saddle point: symmetric, neither definite nor with a full diagonal.
TEST(GeneralMatrix, AnIndefiniteMatrixIsSolvedAllTheSame) {
  std::int64_t const n = 60, m = 25;
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i)
    entries[{i, i}] = 2 + static_cast<double>(i % 5);
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t const i : {2 * j, 2 * j + 1, (7 * j + 3) % n})
      entries[{n + j, i}] = entries[{i, n + j}] = 1 + 0.1 * static_cast<double>(j % 3);
  auto const csr = to_csr(n + m, entries);
  for (Method const method : {Method::cg, Method::bicgstab}) {
    Answer const answer = answer_of(csr, counted(n + m), automatic(method));
    EXPECT_EQ(answer.result.status, SolverStatus::converged) << answer.result.reason;
    EXPECT_EQ(answer.result.method, Method::bicgstab);
    EXPECT_LE(answer.residual, 2e-12);
  }
  SolverOptions given = automatic(Method::cg);
  given.preconditioner = PreconditionerKind::direct;
  EXPECT_EQ(answer_of(csr, counted(n + m), given).result.status, SolverStatus::converged);
  Answer const stays = answer_of(csr, counted(n + m), automatic(Method::cg, false));
  EXPECT_EQ(stays.result.method, Method::cg);
}

/// Every preconditioner fails, and none is tried twice.
TEST(GeneralMatrix, WhatHasFailedIsNotTriedAgain) {
  auto const csr = to_csr(3, {{{0, 1}, 1}, {{1, 0}, 1}, {{2, 0}, 1}, {{2, 1}, 1}});  // singular, without a diagonal
  Answer const answer = answer_of(csr, {1, 1, 5}, automatic(Method::bicgstab));
  EXPECT_NE(answer.result.status, SolverStatus::converged);
  std::set<std::string> left;
  for (std::string const& note : answer.result.notes) {
    std::size_t const begin = note.find("went on with ");
    if (begin == std::string::npos)  // of a shift
      continue;
    EXPECT_TRUE(left.insert(note.substr(begin)).second) << note;
  }
  EXPECT_LE(answer.residual, 1 + 1e-12);
}

/// Rows of one aggregate each: nothing is coarsened, and inverting all of them would take seconds.
TEST(GeneralMatrix, CoarseningThatStopsIsGivenUp) {
  std::int64_t const n = 3000;
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 1;
    for (std::int64_t k = 1; k < 12; ++k)
      entries[{i, (i + 251 * k) % n}] = entries[{(i + 251 * k) % n, i}] = 1e-4 * static_cast<double>(k);
  }
  auto const csr = to_csr(n, entries);
  auto const context = make_cpu_context();
  auto const matrix = make_matrix(Format::csr, csr, *context);
  PreconditionerOptions options;
  options.kind = PreconditionerKind::multigrid;
  options.csr = [&] { return csr; };
  options.only_if_cheap = true;
  auto const setup = make_preconditioner(*matrix, options);
  EXPECT_NE(setup->failure().find("coarsening by aggregation stops at 3000 unknowns"), std::string::npos) << setup->failure();
  EXPECT_EQ(answer_of(csr, counted(n), automatic(Method::cg)).result.status, SolverStatus::converged);
}

}  // namespace
}  // namespace poisson::testing
