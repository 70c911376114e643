#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/preconditioners/registry.hpp"
#include "gpu/preconditioners/triangular_solve.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

extern "C" {
void dposv_(char const* uplo, int const* n, int const* nrhs, double* a, int const* lda, double* b, int const* ldb, int* info);
void dgesv_(int const* n, int const* nrhs, double* a, int const* lda, int* ipiv, double* b, int const* ldb, int* info);
}

/// All methods with every preconditioner and precision, on every format and backend; solver_test.cpp has what they share, on plain
/// CG.
namespace poisson::testing {

namespace {

/// A dense matrix by columns, as LAPACK has it.
std::vector<double> dense_columns(CsrMatrix const& a) {
  std::vector<double> d(static_cast<std::size_t>(a.n_rows * a.n_columns), 0.0);
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[static_cast<std::size_t>(row)]; e < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++e)
      d[static_cast<std::size_t>(a.columns[static_cast<std::size_t>(e)] * a.n_rows + row)] = a.values[static_cast<std::size_t>(e)];
  return d;
}

/// Solves by dposv where `definite`, else by dgesv.
std::vector<double> lapack_solve(CsrMatrix const& a, std::vector<double> b, bool definite) {
  auto d = dense_columns(a);
  int const n = static_cast<int>(a.n_rows), one = 1;
  int info = 0;
  std::vector<int> pivots(b.size());
  if (definite)
    dposv_("L", &n, &one, d.data(), &n, b.data(), &n, &info);
  else
    dgesv_(&n, &one, d.data(), &n, pivots.data(), b.data(), &n, &info);
  EXPECT_EQ(info, 0);
  return b;
}

/// Convection and diffusion on nx x ny x nz points, upwind: unsymmetric, diagonally dominant, of seven diagonals.
std::shared_ptr<CsrMatrix> convection(int nx, int ny, int nz, double wind) {
  Entries entries;
  auto const index = [&](int x, int y, int z) { return (std::int64_t{z} * ny + y) * nx + x; };
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x) {
        std::int64_t const i = index(x, y, z);
        entries[{i, i}] = 6 + wind * (1 + 0.1 * std::sin(static_cast<double>(i)));
        if (x > 0)
          entries[{i, index(x - 1, y, z)}] = -1 - wind;
        if (x + 1 < nx)
          entries[{i, index(x + 1, y, z)}] = -1;
        if (y > 0)
          entries[{i, index(x, y - 1, z)}] = -1;
        if (y + 1 < ny)
          entries[{i, index(x, y + 1, z)}] = -1;
        if (z > 0)
          entries[{i, index(x, y, z - 1)}] = -1;
        if (z + 1 < nz)
          entries[{i, index(x, y, z + 1)}] = -1;
      }
  return to_csr(std::int64_t{nx} * ny * nz, entries);
}

/// The settings that suit a symmetric positive definite matrix, or any.
std::vector<SolverOptions> settings(bool symmetric) {
  std::vector<SolverOptions> all;
  for (auto const& method : Names<Method>::values)
    for (auto const& precision : Names<Precision>::values)
      for (auto const& preconditioner : Names<PreconditionerKind>::values)
        // direct is of the host only: general_matrix_test.cpp.
        if (preconditioner.value != PreconditionerKind::direct &&
            (symmetric || !(needs_symmetry(method.value) || needs_symmetry(preconditioner.value)))) {
          SolverOptions options;
          options.method = method.value;
          options.precision = precision.value;
          options.preconditioner = preconditioner.value;
          all.push_back(options);
          if (uses_ordering(options.preconditioner)) {
            options.ordering = Ordering::multicolor;
            all.push_back(options);
          }
        }
  return all;
}

/// Those of them that this format has (Deal).
std::vector<SolverOptions> settings_of(Format format, bool symmetric) {
  std::vector<SolverOptions> some = settings(symmetric);
  Deal deal(format, symmetric ? 6 : 5);  // half_cds, the last, holds symmetric matrices only
  std::erase_if(some, [&](SolverOptions const&) { return !deal.next(); });
  return some;
}

std::string text_of(SolverOptions const& options) {
  return std::string(name_of(options.method)) + " " + std::string(name_of(options.precision)) + " " +
         std::string(name_of(options.preconditioner)) + " " + std::string(name_of(options.ordering));
}

template <class C>
class Krylov : public SolvesOnCase<C> {};

TYPED_TEST_SUITE(Krylov, Cases, CaseNames);

TYPED_TEST(Krylov, AgreesWithLapackOnDefiniteSystems) {
  for (auto const& csr : {banded(150, {1, 14}, 1, true), box27(6, 5, 7, false, 0.3)}) {
    auto const b = random_vector(csr->n_rows, 5);
    auto const expected = lapack_solve(*csr, b, true);
    for (SolverOptions options : settings(true)) {
      SCOPED_TRACE(text_of(options));
      options.tolerance = 1e-13;
      auto const result = this->solve(csr, b, options);
      EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
      EXPECT_EQ(result.reason, "");
      EXPECT_LE(distance(this->solution, expected), 1e-10 * norm(expected));
      EXPECT_LE(true_residual(*csr, this->solution, b, result.x_low), 4e-13);
      ASSERT_EQ(result.history.size(), static_cast<std::size_t>(result.iterations) + 1);
      EXPECT_EQ(result.history.back(), result.residual_recursive);
    }
  }
}

TYPED_TEST(Krylov, AgreesWithLapackOnUnsymmetricSystems) {
  if (TestFixture::symmetric_only)
    GTEST_SKIP() << "half_cds holds symmetric matrices only";
  auto const csr = convection(6, 7, 5, 3);
  auto const b = random_vector(csr->n_rows, 5);
  auto const expected = lapack_solve(*csr, b, false);
  for (SolverOptions options : settings(false)) {
    SCOPED_TRACE(text_of(options));
    options.tolerance = 1e-13;
    auto const result = this->solve(csr, b, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_LE(distance(this->solution, expected), 1e-11 * norm(expected));
    EXPECT_LE(true_residual(*csr, this->solution, b, result.x_low), 4e-13);
  }
}

TYPED_TEST(Krylov, KnownSolutionOfALargerUnsymmetricSystem) {
  if (TestFixture::symmetric_only)
    GTEST_SKIP() << "half_cds holds symmetric matrices only";
  auto const csr = convection(21, 13, 17, 0.7);
  auto const expected = random_vector(csr->n_rows, 8);
  auto const b = naive_product(*csr, expected);
  for (SolverOptions const& options : settings_of(TypeParam::format, false)) {
    SCOPED_TRACE(text_of(options));
    auto const result = this->solve(csr, b, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_LE(distance(this->solution, expected), 1e-9 * norm(expected));
  }
}

TYPED_TEST(Krylov, IncompleteFactorsSaveIterations) {
  auto const csr = box27(14, 14, 14);
  auto const b = random_vector(csr->n_rows, 3);
  for (auto const& [method, name] : Names<Method>::values) {
    SCOPED_TRACE(name);
    std::int64_t const plain = this->solve(csr, b, {.method = method}).iterations;
    for (auto const preconditioner : {PreconditionerKind::ic0, PreconditionerKind::ilu0}) {
      auto const natural = this->solve(csr, b, {.method = method, .preconditioner = preconditioner, .ordering = Ordering::natural});
      EXPECT_EQ(natural.status, SolverStatus::converged) << natural.reason;
      EXPECT_LT(2 * natural.iterations, plain);
      auto const colored =
          this->solve(csr, b, {.method = method, .preconditioner = preconditioner, .ordering = Ordering::multicolor});
      EXPECT_EQ(colored.status, SolverStatus::converged) << colored.reason;
      EXPECT_LT(3 * colored.iterations, 2 * plain);
    }
  }
}

TYPED_TEST(Krylov, ExaggeratedDiagonal) {
  // HPCG's check: with a diagonal of 1e6 (i + 1), i < 10, and 1e6 for all other rows, Jacobi leaves eleven clusters of eigenvalues,
  // near 1, and CG needs no more than a dozen iterations; without it the diagonal's eleven values still make few.
  auto const csr = box27(12, 12, 12);
  auto exaggerated = std::make_shared<CsrMatrix>(*csr);
  for (std::int64_t row = 0; row < csr->n_rows; ++row)
    for (auto e = static_cast<std::size_t>(csr->row_ptr[static_cast<std::size_t>(row)]);
         e < static_cast<std::size_t>(csr->row_ptr[static_cast<std::size_t>(row) + 1]); ++e)
      if (csr->columns[e] == row)
        exaggerated->values[e] = 1e6 * static_cast<double>(row < 9 ? row + 2 : 1);
  std::vector<double> const b(static_cast<std::size_t>(csr->n_rows), 1.0);
  auto const plain = this->solve(exaggerated, b, {.tolerance = 1e-12});
  EXPECT_EQ(plain.status, SolverStatus::converged) << plain.reason;
  EXPECT_LE(plain.iterations, 12);
  for (auto const preconditioner : {PreconditionerKind::jacobi, PreconditionerKind::ic0, PreconditionerKind::ilu0}) {
    auto const result = this->solve(exaggerated, b, {.preconditioner = preconditioner, .tolerance = 1e-12});
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_LE(result.iterations, 3);
  }
}

TYPED_TEST(Krylov, SameBitsEveryTime) {
  auto const csr = box27(9, 10, 11, false, 0.3);
  auto const b = random_vector(csr->n_rows, 3);
  for (SolverOptions const& options : settings_of(TypeParam::format, true)) {
    SCOPED_TRACE(text_of(options));
    auto const first = this->solve(csr, b, options);
    auto const x = this->solution;
    auto const again = this->solve(csr, b, options);
    EXPECT_EQ(this->solution, x);
    EXPECT_EQ(again.x_low, first.x_low);
    EXPECT_EQ(again.history, first.history);
  }
}

TYPED_TEST(Krylov, SmallAndOddSizes) {
  for (std::int64_t const n : {1, 2, 3, 31, 33, 257}) {
    auto const csr = banded(n, {1}, 4, true);
    auto const b = random_vector(n, 9);
    auto const expected = lapack_solve(*csr, b, true);
    for (SolverOptions const& options : settings_of(TypeParam::format, true)) {
      SCOPED_TRACE(text_of(options) + ", n = " + std::to_string(n));
      auto const result = this->solve(csr, b, options);
      EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
      EXPECT_LE(distance(this->solution, expected), 1e-11 * norm(expected));
    }
  }
  for (SolverOptions const& options : settings_of(TypeParam::format, true))
    EXPECT_EQ(this->solve(to_csr(0, {}), {}, options).status, SolverStatus::converged);
}

TYPED_TEST(Krylov, SolutionIsThatOfTheStoppingIteration) {
  auto const csr = box27(12, 12, 12);
  auto const b = random_vector(csr->n_rows, 3);
  for (Method const method : {Method::bicgstab, Method::gmres, Method::minres})
    for (auto const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::ilu0}) {
      SCOPED_TRACE(std::string(name_of(method)) + " " + std::string(name_of(preconditioner)));
      SolverOptions options{.method = method, .preconditioner = preconditioner, .tolerance = 1e-9};
      auto const by_tolerance = this->solve(csr, b, options);
      ASSERT_EQ(by_tolerance.status, SolverStatus::converged);
      auto const x = this->solution;
      options.tolerance = 1e-15;
      options.max_iterations = by_tolerance.iterations;
      auto const by_count = this->solve(csr, b, options);
      ASSERT_EQ(by_count.status, SolverStatus::max_iterations);
      EXPECT_EQ(this->solution, x);
      EXPECT_EQ(by_count.history, by_tolerance.history);
    }
}

TYPED_TEST(Krylov, ConstantNullSpaceWithEverySetting) {
  auto const csr = box27(9, 10, 8, true, 0.4);
  auto expected = random_vector(csr->n_rows, 8);
  double mean = 0;
  for (double const v : expected)
    mean += v / static_cast<double>(expected.size());
  for (double& v : expected)
    v -= mean;
  auto const b = naive_product(*csr, expected);
  for (SolverOptions options : settings_of(TypeParam::format, true)) {
    SCOPED_TRACE(text_of(options));
    options.constant_null_space = true;
    options.shift = 1e-3;  // the last pivot of a singular matrix is zero to rounding
    auto const result = this->solve(csr, b, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_LE(distance(this->solution, expected), 1e-9 * norm(expected));
  }
}

TYPED_TEST(Krylov, ConvergedMeansTheTrueResidual) {
  // Ill-conditioned by scaling of rows and columns: the recursion of plain CG runs away from the residual of x.
  std::int64_t const n = 300;
  Entries entries;
  auto const weight = [](std::int64_t i) { return std::exp2(static_cast<double>(i * 37 % 12)); };
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 2.001 * weight(i) * weight(i);
    if (i > 0)
      entries[{i, i - 1}] = entries[{i - 1, i}] = -weight(i) * weight(i - 1);
  }
  auto const csr = to_csr(n, entries);
  std::vector<double> const b(static_cast<std::size_t>(n), 1.0);
  int converged = 0, stagnated = 0;
  for (double const tolerance : {1e-6, 1e-8, 1e-10, 1e-12, 1e-14}) {
    auto const result = this->solve(csr, b, {.tolerance = tolerance, .max_iterations = 100000});
    double const residual = true_residual(*csr, this->solution, b);
    if (result.status == SolverStatus::converged) {
      ++converged;
      EXPECT_LE(residual, 2.5 * tolerance);
    } else {
      ++stagnated;
      EXPECT_EQ(result.status, SolverStatus::stagnated);
      EXPECT_GT(residual, tolerance);
      expect_contains(result.reason, {"double precision", "refined"});
    }
  }
  EXPECT_GT(converged, 0);
  EXPECT_GT(stagnated, 0);
}

TYPED_TEST(Krylov, ToleranceBelowTheArithmeticEndsSoon) {
  auto const csr = box27(12, 12, 12);
  auto const b = random_vector(csr->n_rows, 3);
  for (auto const& [method, name] : Names<Method>::values)
    for (auto const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::ic0}) {
      SCOPED_TRACE(std::string(name) + " " + std::string(name_of(preconditioner)));
      SolverOptions options{.method = method, .preconditioner = preconditioner, .tolerance = 1e-12, .max_iterations = 1000000};
      std::int64_t const reachable = this->solve(csr, b, options).iterations;
      options.tolerance = 1e-28;
      auto const result = this->solve(csr, b, options);
      EXPECT_EQ(result.status, SolverStatus::stagnated);
      expect_contains(result.reason, {"double precision", "precision refined"});
      EXPECT_LE(result.iterations, 2 * reachable + 10);
      EXPECT_LE(true_residual(*csr, this->solution, b), 1e-14);
    }
}

TYPED_TEST(Krylov, ZeroPivotIsNamed) {
  // Elimination of row 0 takes all of the pivot of row 2 (counted from 1: 3).
  auto const csr = to_csr(4, {{{0, 0}, 2.0}, {{0, 2}, 2.0}, {{2, 0}, 2.0}, {{2, 2}, 2.0}, {{1, 1}, 1.0}, {{3, 3}, 1.0}});
  for (auto const preconditioner : {PreconditionerKind::ic0, PreconditionerKind::ilu0}) {
    auto const result = this->solve(csr, {1, 1, 1, 1}, {.method = Method::bicgstab, .preconditioner = preconditioner});
    EXPECT_EQ(result.status, SolverStatus::breakdown);
    EXPECT_EQ(result.iterations, 0);
    expect_contains(result.reason, {name_of(preconditioner).data(), "row 3", "diagonal shift"});
    EXPECT_EQ(this->solution, std::vector<double>(4, 0));
    auto const shifted =
        this->solve(csr, {1, 1, 1, 1}, {.method = Method::bicgstab, .preconditioner = preconditioner, .shift = 0.1});
    EXPECT_EQ(shifted.status, SolverStatus::converged) << shifted.reason;
  }
  auto const missing = to_csr(3, {{{0, 0}, 1.0}, {{2, 2}, 1.0}});
  auto const result = this->solve(missing, {1, 1, 1}, {.preconditioner = PreconditionerKind::ilu0});
  EXPECT_EQ(result.status, SolverStatus::breakdown);
  expect_contains(result.reason, {"pivot 0 in row 2 (counted from 1)"});
}

TYPED_TEST(Krylov, NegativePivotBelongsToIlu) {
  Entries entries;
  for (std::int64_t i = 0; i < 50; ++i) {
    entries[{i, i}] = i == 31 ? -5.0 : 5.0;
    if (i > 0)
      entries[{i, i - 1}] = entries[{i - 1, i}] = 1;
  }
  auto const csr = to_csr(50, entries);
  auto const b = random_vector(50, 2);
  auto const refused = this->solve(csr, b, {.preconditioner = PreconditionerKind::ic0});
  EXPECT_EQ(refused.status, SolverStatus::breakdown);
  expect_contains(refused.reason, {"ic0 has the pivot -5", "row 32", "not positive"});
  auto const right = this->solve(csr, b, {.method = Method::bicgstab, .preconditioner = PreconditionerKind::ilu0});
  EXPECT_EQ(right.status, SolverStatus::converged) << right.reason;
  EXPECT_LE(true_residual(*csr, this->solution, b), 4e-12);
}

TYPED_TEST(Krylov, BreakdownOfBicgstab) {
  if (TestFixture::symmetric_only)
    GTEST_SKIP() << "half_cds holds symmetric matrices only";
  // A rotation by 90 degrees: A r is orthogonal to r.
  auto const skew = to_csr(2, {{{0, 1}, 1.0}, {{1, 0}, -1.0}});
  auto const result = this->solve(skew, {1, 1}, {.method = Method::bicgstab});
  EXPECT_EQ(result.status, SolverStatus::breakdown);
  expect_contains(result.reason, {"bicgstab broke down at iteration 1", "alpha"});
  // t = A s is orthogonal to s once the first half step has left s = (0, 1, -1).
  auto const zero = to_csr(2, {{{0, 0}, 1.0}, {{0, 1}, 0.0}, {{1, 0}, 0.0}});
  auto const singular = this->solve(zero, {1, 1}, {.method = Method::bicgstab});
  EXPECT_EQ(singular.status, SolverStatus::breakdown);
  EXPECT_NE(singular.reason, "");
  for (double const v : this->solution)
    EXPECT_TRUE(std::isfinite(v));
}

TYPED_TEST(Krylov, SingularConsistentAndInconsistent) {
  // Rows of zeros: consistent where b is 0 there.
  Entries entries;
  for (std::int64_t i = 0; i < 60; ++i)
    if (i % 7 != 3)
      entries[{i, i}] = 1.0 + static_cast<double>(i);
  auto const csr = to_csr(60, entries);
  std::vector<double> consistent(60, 1.0);
  for (std::size_t i = 3; i < 60; i += 7)
    consistent[i] = 0;
  for (Method const method : {Method::cg, Method::bicgstab}) {
    auto const good = this->solve(csr, consistent, {.method = method});
    EXPECT_EQ(good.status, SolverStatus::converged) << good.reason;
    EXPECT_LE(true_residual(*csr, this->solution, consistent), 4e-12);
    auto const bad = this->solve(csr, std::vector<double>(60, 1.0), {.method = method, .max_iterations = 1000000});
    EXPECT_NE(bad.status, SolverStatus::converged);
    EXPECT_NE(bad.status, SolverStatus::max_iterations);
    EXPECT_NE(bad.reason, "");
  }
}

TYPED_TEST(Krylov, JacobiOfBicgstabTakesNegativeDiagonals) {
  auto const csr = to_csr(3, {{{0, 0}, 2.0}, {{1, 1}, -3.0}, {{2, 2}, 4.0}, {{0, 1}, 0.5}, {{1, 0}, 0.5}});
  auto const result = this->solve(csr, {1, 2, 3}, {.method = Method::bicgstab, .preconditioner = PreconditionerKind::jacobi});
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  auto const zero = this->solve(to_csr(2, {{{0, 0}, 1.0}, {{0, 1}, 1.0}, {{1, 0}, 1.0}}), {1, 1},
                                {.method = Method::bicgstab, .preconditioner = PreconditionerKind::jacobi});
  EXPECT_EQ(zero.status, SolverStatus::breakdown);
  expect_contains(zero.reason, {"non-zero diagonal", "row 2"});
}

TYPED_TEST(Krylov, SymmetricProduct) {
  // HPCG's check: x . A y = y . A x, and the same of the preconditioner.
  auto const csr = box27(11, 9, 8, false, 0.4);
  auto const matrix = this->make(csr);
  std::int64_t const n = csr->n_rows;
  Context& device = *this->context;
  auto const x = random_vector(n, 1), y = random_vector(n, 2);
  Array<double> const device_x(device, std::span<double const>(x)), device_y(device, std::span<double const>(y));
  Array<double> ax(device, n), ay(device, n);
  auto const dot = [&](std::vector<double> const& u, Array<double> const& device_v) {
    std::vector<double> v(u.size());
    device_v.download(v);
    double sum = 0;
    for (std::size_t i = 0; i < u.size(); ++i)
      sum += u[i] * v[i];
    return sum;
  };
  matrix->product(1, device_x.data(), 0, ax.data());
  matrix->product(1, device_y.data(), 0, ay.data());
  double const bound = 1e-13 * norm(x) * norm(y);
  EXPECT_NEAR(dot(y, ax), dot(x, ay), 4 * bound);
  auto const setup = make_preconditioner(*matrix, {.kind = PreconditionerKind::ic0, .csr = [&] { return csr; }});
  ASSERT_EQ(setup->failure(), "");
  auto const m = setup->applied_in(double{});
  std::vector<std::int32_t> const running{0};
  Array<std::int32_t> const stop(device, std::span<std::int32_t const>(running));
  m->apply(device_x.data(), ax.data(), stop.data());
  m->apply(device_y.data(), ay.data(), stop.data());
  EXPECT_NEAR(dot(y, ax), dot(x, ay), bound);
  EXPECT_GT(dot(x, ax), 0);
}

TYPED_TEST(Krylov, TolerancesFarBelowDouble) {
  auto const csr = box27(9, 10, 8);
  auto const b = random_vector(csr->n_rows, 3);
  for (SolverOptions options : settings_of(TypeParam::format, true)) {
    if (options.precision == Precision::double_)
      continue;
    SCOPED_TRACE(text_of(options));
    options.tolerance = 1e-28;
    auto const result = this->solve(csr, b, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_LE(result.residual_recursive, 2e-28);
    ASSERT_EQ(result.x_low.size(), b.size());
    EXPECT_LE(true_residual(*csr, this->solution, b, result.x_low), 2.1e-28);
    EXPECT_GT(true_residual(*csr, this->solution, b), 1e-20) << "x by itself cannot have that residual";
    EXPECT_EQ(result.extended_from, -1);
  }
}

TYPED_TEST(Krylov, RefinedTakesLittleMoreThanDouble) {
  auto const csr = box27(14, 13, 12);
  auto const b = random_vector(csr->n_rows, 3);
  for (auto const preconditioner : {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::ic0}) {
    SolverOptions options{.preconditioner = preconditioner, .tolerance = 1e-12};
    std::int64_t const in_double = this->solve(csr, b, options).iterations;
    options.tolerance = 1e-18;
    options.precision = Precision::double_double;
    std::int64_t const extended = this->solve(csr, b, options).iterations;
    options.precision = Precision::refined;
    auto const refined = this->solve(csr, b, options);
    EXPECT_EQ(refined.status, SolverStatus::converged) << refined.reason;
    EXPECT_LE(true_residual(*csr, this->solution, b, refined.x_low), 2.1e-18);
    EXPECT_GE(refined.cycles, 2);
    EXPECT_LE(refined.iterations, extended + 5) << "search directions are kept from cycle to cycle";
    EXPECT_LE(refined.iterations, 2 * in_double);
  }
}

TYPED_TEST(Krylov, MixedGoesOnWhereDoubleStalls) {
  // Second differences to the sixth power, whose entries are exact: a condition of 4e22.
  std::int64_t const n = 120;
  double const binomial[] = {924, -792, 495, -220, 66, -12, 1};
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t d = -6; d <= 6; ++d)
      if (i + d >= 0 && i + d < n)
        entries[{i, i + d}] = binomial[std::abs(d)];
  auto const csr = to_csr(n, entries);
  std::vector<double> const b(static_cast<std::size_t>(n), 1.0);
  SolverOptions options{.tolerance = 1e-8, .max_iterations = 100000};
  EXPECT_NE(this->solve(csr, b, options).status, SolverStatus::converged);
  options.precision = Precision::double_double;
  auto const extended = this->solve(csr, b, options);
  EXPECT_EQ(extended.status, SolverStatus::converged) << extended.reason;
  EXPECT_LE(true_residual(*csr, this->solution, b, extended.x_low), 2.1e-8);
  options.precision = Precision::mixed;
  auto const mixed = this->solve(csr, b, options);
  EXPECT_EQ(mixed.status, SolverStatus::converged) << mixed.reason;
  EXPECT_GT(mixed.extended_from, 0);
  EXPECT_LT(mixed.extended_from, mixed.iterations);
  EXPECT_LE(true_residual(*csr, this->solution, b, mixed.x_low), 2.1e-8);
  options.precision = Precision::refined;
  EXPECT_NE(this->solve(csr, b, options).status, SolverStatus::converged) << "nothing is left to go on from";
}

// ---- the factorisation by itself

template <class B>
class IncompleteFactors : public OnBackend<B::value> {};

TYPED_TEST_SUITE(IncompleteFactors, Backends, BackendNames);

/// ILU(0) by the definition: Gaussian elimination of a dense matrix that leaves entries outside the pattern alone.
std::vector<double> dense_ilu0(CsrMatrix const& a) {
  auto const n = static_cast<std::size_t>(a.n_rows);
  auto d = dense_columns(a);
  std::vector<bool> stored(n * n, false);
  for (std::size_t row = 0; row < n; ++row)
    for (auto e = static_cast<std::size_t>(a.row_ptr[row]); e < static_cast<std::size_t>(a.row_ptr[row + 1]); ++e)
      stored[static_cast<std::size_t>(a.columns[e]) * n + row] = true;
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = k + 1; i < n; ++i)
      if (stored[k * n + i]) {
        d[k * n + i] /= d[k * n + k];
        for (std::size_t j = k + 1; j < n; ++j)
          if (stored[j * n + i])
            d[j * n + i] -= d[k * n + i] * d[j * n + k];
      }
  return d;
}

TYPED_TEST(IncompleteFactors, AreThoseOfTheDefinition) {
  for (auto const& csr : {box27(6, 5, 4, false, 0.4), banded(90, {1, 2, 17}, 3, true), convection(5, 4, 6, 2)}) {
    auto const n = static_cast<std::size_t>(csr->n_rows);
    IncompleteLu const factors({{{}, csr}}, 0, false, Ordering::natural, *this->context);
    EXPECT_EQ(factors.bad_pivot().row, -1);
    auto const expected = dense_ilu0(*csr);
    std::vector<double> values(csr->values.size());
    this->context->download(values.data(), factors.view().values, static_cast<std::int64_t>(values.size() * sizeof(double)));
    for (std::size_t row = 0; row < n; ++row)
      for (auto e = static_cast<std::size_t>(csr->row_ptr[row]); e < static_cast<std::size_t>(csr->row_ptr[row + 1]); ++e) {
        auto const column = static_cast<std::size_t>(csr->columns[e]);
        double const value = column == row ? 1 / values[e] : values[e];
        ASSERT_NEAR(value, expected[column * n + row], 1e-13 * (1 + std::abs(value))) << row << ", " << column;
      }
  }
}

TYPED_TEST(IncompleteFactors, OfATriangleAreTheTriangle) {
  // Nothing is dropped of a lower bidiagonal matrix, whose rows are one level each: a solve is exact.
  std::int64_t const n = 700;
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 4;
    if (i > 0)
      entries[{i, i - 1}] = 2;
  }
  auto const csr = to_csr(n, entries);
  IncompleteLu const factors({{{}, csr}}, 0, false, Ordering::natural, *this->context);
  EXPECT_EQ(factors.levels(), n);
  TriangularSolve<double> solve(factors, *this->context);
  std::vector<std::int32_t> const running{0}, stopped{1};
  Array<std::int32_t> const stop(*this->context, std::span<std::int32_t const>(running)),
      stop_set(*this->context, std::span<std::int32_t const>(stopped));
  auto const x = random_vector(n, 4);
  auto const b = naive_product(*csr, x);
  Array<double> const r(*this->context, std::span<double const>(b));
  Array<double> z(*this->context, n);
  std::vector<double> result(static_cast<std::size_t>(n));
  for (int repeat = 0; repeat < 3; ++repeat) {
    solve.apply(r.data(), z.data(), stop.data());
    z.download(result);
    EXPECT_LE(distance(result, x), 1e-14 * norm(x));
  }
  std::vector<double> const kept(static_cast<std::size_t>(n), 7.0);
  z.upload(kept);
  solve.apply(r.data(), z.data(), stop_set.data());
  z.download(result);
  EXPECT_EQ(result, kept) << "a solve that was told to stop has written";
}

TYPED_TEST(IncompleteFactors, SameBitsOnBothBackends) {
  auto const csr = large_box27(40, 30, 20);
  auto const host = make_context(Backend::cpu);
  IncompleteLu const here({{{}, csr}}, 0.01, false, Ordering::natural, *this->context),
      there({{{}, csr}}, 0.01, false, Ordering::natural, *host);
  std::vector<double> values(csr->values.size()), expected(csr->values.size());
  auto const bytes = static_cast<std::int64_t>(values.size() * sizeof(double));
  this->context->download(values.data(), here.view().values, bytes);
  host->download(expected.data(), there.view().values, bytes);
  EXPECT_EQ(values, expected);
}

TEST(IncompleteFactorsOfTheHost, DoNotDependOnThreads) {
  int const threads = thread_count();
  auto const context = make_context(Backend::cpu);
  // Random couplings of few levels, so that threads share them.
  std::int64_t const n = 20000;
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 4;
    if (i >= n / 2)
      entries[{i, i - n / 2}] = entries[{i - n / 2, i}] = -1 + 1e-3 * static_cast<double>(i % 11);
  }
  auto const csr = to_csr(n, entries);
  auto const b = random_vector(n, 4);
  std::vector<double> first;
  for (int const count : {1, 2, 3}) {
    set_thread_count(count);
    IncompleteLu const factors({{{}, csr}}, 0, true, Ordering::natural, *context);
    EXPECT_EQ(factors.levels(), 2);
    TriangularSolve<double> solve(factors, *context);
    std::int32_t const stop = 0;
    std::vector<double> z(b.size());
    solve.apply(b.data(), z.data(), &stop);
    if (first.empty())
      first = z;
    EXPECT_EQ(z, first);
  }
  set_thread_count(threads);
}

}  // namespace
}  // namespace poisson::testing
