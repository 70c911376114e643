#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"

#include "gpu/kernels/gmres.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

/// GMRES and MINRES, which make the residual least in every Krylov space: against that least residual, found in long double.
namespace poisson::testing {

namespace {

using Wide = std::vector<long double>;

long double wide_dot(Wide const& a, Wide const& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0L);
}

/// a -= the part of it in the span of the orthonormal `basis`, three times over. Returns the norm of what is left.
long double remove_span(Wide& a, std::vector<Wide> const& basis) {
  for (int time = 0; time < 3; ++time)
    for (Wide const& q : basis) {
      long double const share = wide_dot(a, q);
      for (std::size_t i = 0; i < a.size(); ++i)
        a[i] -= share * q[i];
    }
  return std::sqrt(wide_dot(a, a));
}

void scale(Wide& a, long double factor) {
  for (long double& value : a)
    value *= factor;
}

Wide wide_product(CsrMatrix const& a, Wide const& x) {
  Wide y(x.size(), 0.0L);
  for (std::size_t row = 0; row < y.size(); ++row)
    for (auto e = static_cast<std::size_t>(a.row_ptr[row]); e < static_cast<std::size_t>(a.row_ptr[row + 1]); ++e)
      y[row] += static_cast<long double>(a.values[e]) * x[static_cast<std::size_t>(a.columns[e])];
  return y;
}

/// Relative residuals b - A M^-1 y that are least for y in span{b, A M^-1 b, ...}, which begins anew after every `restart`
/// dimensions; M is the main diagonal, or none. An orthonormal basis of the images is kept, and b loses its part in their span.
std::vector<double> least_residuals(CsrMatrix const& a, std::vector<double> const& b, int count, bool jacobi = false,
                                    int restart = 1000) {
  Wide r(b.begin(), b.end()), diagonal(b.size(), 1.0L);
  if (jacobi)
    for (std::size_t row = 0; row < b.size(); ++row)
      for (auto e = static_cast<std::size_t>(a.row_ptr[row]); e < static_cast<std::size_t>(a.row_ptr[row + 1]); ++e)
        if (static_cast<std::size_t>(a.columns[e]) == row)
          diagonal[row] = a.values[e];
  long double const b_norm = std::sqrt(wide_dot(r, r));
  std::vector<double> norms{1.0};
  std::vector<Wide> space, images;
  for (int k = 0; k < count; ++k) {
    Wide v = k % restart == 0 ? r : space.back();
    if (k % restart == 0) {
      space.clear();
      images.clear();
    } else {
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] /= diagonal[i];
      v = wide_product(a, v);
    }
    long double const length = remove_span(v, space);
    if (!(length > 0))
      break;
    scale(v, 1 / length);
    space.push_back(v);
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] /= diagonal[i];
    Wide image = wide_product(a, v);
    long double const image_length = std::sqrt(wide_dot(image, image)), left = remove_span(image, images);
    if (left > 1e-15L * image_length) {
      scale(image, 1 / left);
      images.push_back(image);
    }
    norms.push_back(static_cast<double>(remove_span(r, images) / b_norm));
  }
  return norms;
}

/// Second differences less `shift` on the diagonal; `wind` makes them unsymmetric.
std::shared_ptr<CsrMatrix> differences(std::int64_t n, double shift, double wind = 0) {
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 2 - shift + 0.1 * std::cos(static_cast<double>(i));
    if (i > 0) {
      entries[{i, i - 1}] = -1 - wind;
      entries[{i - 1, i}] = -1 + wind;
    }
  }
  return to_csr(n, entries);
}

/// [[A, B^T], [B, 0]] with A = second differences + 1 of n rows and B of m < n rows.
std::shared_ptr<CsrMatrix> saddle_point(std::int64_t n, std::int64_t m) {
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 3;
    if (i > 0)
      entries[{i, i - 1}] = entries[{i - 1, i}] = -1;
  }
  for (std::int64_t i = 0; i < m; ++i) {
    entries[{n + i, 2 * i}] = entries[{2 * i, n + i}] = 1;
    entries[{n + i, 2 * i + 1}] = entries[{2 * i + 1, n + i}] = -0.5;
  }
  return to_csr(n + m, entries);
}

template <class B>
class MinimalResiduals : public OnBackend<B::value> {
protected:
  SolverResult solve(std::shared_ptr<CsrMatrix const> const& csr, std::vector<double> const& b, SolverOptions options) {
    auto const matrix = make_matrix(Format::csr, csr, *this->context);
    options.csr = [&] { return csr; };
    solution.assign(b.size(), std::numeric_limits<double>::quiet_NaN());
    return poisson::solve(*matrix, b, solution, options);
  }
  void expect_history(SolverResult const& result, std::vector<double> const& expected, double error) {
    for (std::size_t k = 0; k < std::min(result.history.size(), expected.size()); ++k)
      EXPECT_NEAR(result.history[k], expected[k], error) << "iteration " << k;
  }
  /// Stopped after 0, 1, ... iterations, the solver tells the residual of the x that it returns.
  void expect_residuals_of_x(std::shared_ptr<CsrMatrix const> const& csr, std::vector<double> const& b, SolverOptions options,
                             std::initializer_list<std::int64_t> counts, double error) {
    options.tolerance = 1e-15;
    for (std::int64_t const count : counts) {
      SCOPED_TRACE("after " + std::to_string(count));
      options.max_iterations = count;
      auto const result = solve(csr, b, options);
      ASSERT_EQ(result.status, SolverStatus::max_iterations) << result.reason;
      ASSERT_EQ(result.iterations, count);
      EXPECT_NEAR(true_residual(*csr, solution, b), result.history.back(), error);
      EXPECT_NEAR(result.residual_recursive, result.history.back(), error);
    }
  }
  std::vector<double> solution;
};

template <class B>
class Gmres : public MinimalResiduals<B> {};
TYPED_TEST_SUITE(Gmres, Backends, BackendNames);

template <class B>
class Minres : public MinimalResiduals<B> {};
TYPED_TEST_SUITE(Minres, Backends, BackendNames);

TYPED_TEST(Gmres, TinySystems) {
  // The first direction b is mapped onto a vector orthogonal to b: nothing is gained until the second one. bicgstab fails here.
  auto const swap = to_csr(2, {{{0, 1}, 1.0}, {{1, 0}, 1.0}});
  auto const result = this->solve(swap, {2, 0}, {.method = Method::gmres});
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_EQ(result.history, (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(this->solution, (std::vector<double>{0, 2}));
  EXPECT_NE(this->solve(swap, {2, 0}, {.method = Method::bicgstab}).status, SolverStatus::converged);
  // A cycle of five rows takes all five dimensions.
  auto const cycle = to_csr(5, {{{0, 1}, 2.0}, {{1, 2}, 2.0}, {{2, 3}, 2.0}, {{3, 4}, 2.0}, {{4, 0}, 2.0}});
  auto const of_cycle = this->solve(cycle, {0, 0, 4, 0, 0}, {.method = Method::gmres});
  EXPECT_EQ(of_cycle.history, (std::vector<double>{1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(this->solution, (std::vector<double>{0, 0, 0, 2, 0}));
  // [[2, 1], [0, 1]] y = (1, 1): A b = (3, 1), so that the first residual is (1, 1) - 2/5 (3, 1), of norm sqrt(2/5).
  auto const triangle = to_csr(2, {{{0, 0}, 2.0}, {{0, 1}, 1.0}, {{1, 1}, 1.0}});
  auto const of_triangle = this->solve(triangle, {1, 1}, {.method = Method::gmres});
  ASSERT_EQ(of_triangle.history.size(), 3U);
  EXPECT_NEAR(of_triangle.history[1], std::sqrt(0.2), 1e-15);
  EXPECT_NEAR(this->solution[0], 0, 1e-15);
  EXPECT_NEAR(this->solution[1], 1, 1e-15);
}

TYPED_TEST(Gmres, EndsWithinNSteps) {
  for (std::int64_t const n : {1, 7, 20, 30}) {
    auto const csr = differences(n, 0, 0.7);
    auto const b = random_vector(n, 3);
    for (auto const& precision : Names<Precision>::values)
      for (auto const kind : {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::ilu0}) {
        SCOPED_TRACE(std::string(precision.name) + " " + std::string(name_of(kind)) + ", n = " + std::to_string(n));
        auto const result = this->solve(
            csr, b, {.method = Method::gmres, .precision = precision.value, .preconditioner = kind, .tolerance = 1e-13});
        EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
        EXPECT_LE(true_residual(*csr, this->solution, b, result.x_low), 2e-13);
        if (precision.value == Precision::double_ || precision.value == Precision::double_double) {
          EXPECT_LE(result.iterations, n);
        }
      }
  }
}

TYPED_TEST(Gmres, ResidualsAreTheLeast) {
  auto const csr = differences(60, 0.3, 0.4);
  auto const b = random_vector(60, 3);
  for (auto const kind : {PreconditionerKind::none, PreconditionerKind::jacobi})
    for (auto const precision : {Precision::double_, Precision::double_double}) {
      SCOPED_TRACE(std::string(name_of(kind)) + " " + std::string(name_of(precision)));
      auto const result = this->solve(
          csr, b,
          {.method = Method::gmres, .precision = precision, .preconditioner = kind, .tolerance = 1e-12, .max_iterations = 75});
      // Across two restarts.
      auto const least = least_residuals(*csr, b, 75, kind == PreconditionerKind::jacobi, gmres_restart);
      ASSERT_GE(result.history.size(), 65U);
      this->expect_history(result, least, 1e-12);
      for (std::size_t k = 1; k < result.history.size(); ++k)
        EXPECT_LE(result.history[k], result.history[k - 1] * (1 + 1e-12));
    }
}

TYPED_TEST(Gmres, NoOtherMethodHasSmallerResiduals) {
  auto const csr = box27(6, 5, 7, false, 0.3);
  auto const b = random_vector(csr->n_rows, 5);
  SolverOptions options{.method = Method::gmres, .tolerance = 1e-10};
  auto const least = this->solve(csr, b, options).history;
  ASSERT_LE(least.size(), gmres_restart + 1U);
  for (Method const other : {Method::cg, Method::minres, Method::bicgstab}) {
    options.method = other;
    auto const history = this->solve(csr, b, options).history;
    auto const products = static_cast<std::size_t>(products_per_iteration(other));
    for (std::size_t k = 0; k < history.size() && products * k < least.size(); ++k)
      EXPECT_GE(history[k], least[products * k] * (1 - 1e-10)) << name_of(other) << ", iteration " << k;
  }
}

TYPED_TEST(Gmres, XBelongsToTheResidual) {
  auto const csr = differences(200, 0, 0.05);
  auto const b = random_vector(200, 3);
  for (auto const kind : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
    SCOPED_TRACE(name_of(kind));
    this->expect_residuals_of_x(csr, b, {.method = Method::gmres, .preconditioner = kind}, {1, 2, 9, 29, 30, 31, 47, 60, 64},
                                1e-12);
  }
  auto const box = box27(20, 20, 20);
  auto const of_box = random_vector(box->n_rows, 3);
  this->expect_residuals_of_x(box, of_box, {.method = Method::gmres, .preconditioner = PreconditionerKind::ilu0}, {0, 1, 5, 17},
                              1e-12);
  // Levels in single: V-cycles are linear to seven digits only.
  this->expect_residuals_of_x(box, of_box, {.method = Method::gmres, .preconditioner = PreconditionerKind::multigrid}, {1, 3, 5},
                              1e-6);
}

TYPED_TEST(Gmres, SingularMatrices) {
  // b is not in the range, and its part (1, 0) is solved for: (0, 1) remains.
  auto const result = this->solve(to_csr(2, {{{0, 0}, 1.0}, {{1, 1}, 0.0}}), {1, 1}, {.method = Method::gmres});
  EXPECT_EQ(result.status, SolverStatus::breakdown);
  expect_contains(result.reason, {"gmres broke down", "singular"});
  EXPECT_NEAR(result.residual_recursive, std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(this->solution[0], 1, 1e-15);
  // Here it is, and the null space is not: x is found but for that.
  auto const consistent = to_csr(3, {{{0, 0}, 2.0}, {{0, 1}, 1.0}, {{1, 1}, 1.0}, {{2, 0}, 1.0}, {{2, 1}, 1.0}, {{2, 2}, 0.0}});
  auto const solved = this->solve(consistent, {4, 2, 3}, {.method = Method::gmres});
  EXPECT_EQ(solved.status, SolverStatus::converged) << solved.reason;
  EXPECT_NEAR(this->solution[0], 1, 1e-13);
  EXPECT_NEAR(this->solution[1], 2, 1e-13);
  auto const zero = this->solve(to_csr(2, {{{0, 0}, 0.0}, {{1, 1}, 0.0}}), {1, 1}, {.method = Method::gmres});
  EXPECT_EQ(zero.status, SolverStatus::breakdown);
  EXPECT_EQ(this->solution, std::vector<double>(2, 0.0));
}

TYPED_TEST(Gmres, NumbersTooLargeEndTheRun) {
  auto const result =
      this->solve(to_csr(2, {{{0, 0}, 1e300}, {{0, 1}, 1e200}, {{1, 1}, 1e300}}), {1, 2}, {.method = Method::gmres});
  EXPECT_NE(result.status, SolverStatus::converged);
  for (double const value : this->solution)
    EXPECT_TRUE(std::isfinite(value));
}

TYPED_TEST(Minres, TinySystems) {
  auto const swap = to_csr(2, {{{0, 1}, 1.0}, {{1, 0}, 1.0}});
  auto const result = this->solve(swap, {2, 0}, {.method = Method::minres});
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_EQ(result.history, (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(this->solution, (std::vector<double>{0, 2}));
  EXPECT_NE(this->solve(swap, {2, 0}, {.method = Method::cg}).status, SolverStatus::converged);
  // [[2, 1], [1, 1]]: A (1, 0) = (2, 1), so that the first residual is (1, 0) - 2/5 (2, 1), of norm sqrt(1/5); x = (1, -1).
  auto const definite = to_csr(2, {{{0, 0}, 2.0}, {{0, 1}, 1.0}, {{1, 0}, 1.0}, {{1, 1}, 1.0}});
  auto const of_definite = this->solve(definite, {1, 0}, {.method = Method::minres});
  ASSERT_EQ(of_definite.history.size(), 3U);
  EXPECT_NEAR(of_definite.history[1], std::sqrt(0.2), 1e-15);
  EXPECT_NEAR(this->solution[0], 1, 1e-14);
  EXPECT_NEAR(this->solution[1], -1, 1e-14);
}

TYPED_TEST(Minres, ResidualsAreThoseOfGmres) {
  for (double const shift : {0.0, 0.6, 1.7}) {
    auto const csr = differences(28, shift);
    auto const b = random_vector(28, 3);
    auto const least = least_residuals(*csr, b, 20);
    for (auto const precision : {Precision::double_, Precision::double_double}) {
      SCOPED_TRACE("shift " + std::to_string(shift) + " " + std::string(name_of(precision)));
      auto const by_minres = this->solve(csr, b, {.method = Method::minres, .precision = precision, .tolerance = 1e-10});
      auto const by_gmres = this->solve(csr, b, {.method = Method::gmres, .precision = precision, .tolerance = 1e-10});
      EXPECT_EQ(by_minres.status, SolverStatus::converged) << by_minres.reason;
      this->expect_history(by_minres, least, 1e-10);
      this->expect_history(by_minres, by_gmres.history, 1e-10);
    }
  }
}

TYPED_TEST(Minres, XBelongsToTheResidual) {
  auto const csr = differences(200, 0.4);
  auto const b = random_vector(200, 3);
  for (auto const kind : {PreconditionerKind::none, PreconditionerKind::jacobi}) {
    SCOPED_TRACE(name_of(kind));
    this->expect_residuals_of_x(csr, b, {.method = Method::minres, .preconditioner = kind}, {0, 1, 2, 3, 9, 40, 77}, 1e-11);
  }
  auto const box = box27(20, 20, 20);
  auto const of_box = random_vector(box->n_rows, 3);
  for (auto const kind : {PreconditionerKind::jacobi, PreconditionerKind::ic0, PreconditionerKind::multigrid}) {
    SCOPED_TRACE(name_of(kind));
    this->expect_residuals_of_x(box, of_box, {.method = Method::minres, .preconditioner = kind}, {1, 2, 5},
                                kind == PreconditionerKind::multigrid ? 1e-6 : 1e-12);
  }
}

TYPED_TEST(Minres, IndefiniteSystemsInEveryPrecision) {
  for (auto const& csr : {differences(120, 0.8), saddle_point(60, 20)}) {
    auto const expected = random_vector(csr->n_rows, 8);
    auto const b = naive_product(*csr, expected);
    EXPECT_NE(this->solve(csr, b, {.method = Method::cg}).status, SolverStatus::converged);
    for (auto const& precision : Names<Precision>::values) {
      SCOPED_TRACE(precision.name);
      double const tolerance = precision.value == Precision::double_ ? 1e-12 : 1e-20;
      auto const result = this->solve(csr, b, {.method = Method::minres, .precision = precision.value, .tolerance = tolerance});
      EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
      EXPECT_LE(true_residual(*csr, this->solution, b, result.x_low), 2.1 * tolerance);
      EXPECT_LE(distance(this->solution, expected), 1e-9 * norm(expected));
    }
  }
  // A positive diagonal makes a positive definite preconditioner of an indefinite matrix.
  auto const csr = differences(120, 0.8);
  auto const b = random_vector(120, 5);
  auto const result = this->solve(csr, b, {.method = Method::minres, .preconditioner = PreconditionerKind::jacobi});
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_LE(true_residual(*csr, this->solution, b), 2.1e-12);
}

TYPED_TEST(Minres, PreconditionersThatAreNotDefinite) {
  auto const csr = to_csr(2, {{{0, 0}, 2.0}, {{1, 1}, -3.0}});
  auto const by_ilu0 = this->solve(csr, {1, 2}, {.method = Method::minres, .preconditioner = PreconditionerKind::ilu0});
  EXPECT_EQ(by_ilu0.status, SolverStatus::breakdown);
  // z . v = 1/2 - 4/3, of vectors scaled by powers of two.
  expect_contains(by_ilu0.reason, {"the preconditioner is not positive definite, which minres needs: z.v is -", "iteration 0"});
  for (auto const kind : {PreconditionerKind::jacobi, PreconditionerKind::ic0}) {
    auto const result = this->solve(csr, {1, 2}, {.method = Method::minres, .preconditioner = kind});
    EXPECT_EQ(result.status, SolverStatus::breakdown);
    EXPECT_EQ(result.iterations, 0);
  }
  auto const without = this->solve(csr, {1, 2}, {.method = Method::minres});
  EXPECT_EQ(without.status, SolverStatus::converged);
  EXPECT_LE(without.iterations, 2);
}

TYPED_TEST(Minres, SingularMatrices) {
  auto const result = this->solve(to_csr(2, {{{0, 0}, 1.0}, {{1, 1}, 0.0}}), {1, 1}, {.method = Method::minres});
  EXPECT_EQ(result.status, SolverStatus::breakdown);
  expect_contains(result.reason, {"minres broke down", "singular"});
  EXPECT_NEAR(result.residual_recursive, std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(this->solution[0], 1, 1e-15);
  // b is in the range of this one, but for rounding.
  auto const consistent = to_csr(3, {{{0, 0}, 1.0}, {{0, 1}, -1.0}, {{1, 0}, -1.0}, {{1, 1}, 1.0}, {{2, 2}, -5.0}});
  auto const solved = this->solve(consistent, {1, -1, 3}, {.method = Method::minres});
  EXPECT_EQ(solved.status, SolverStatus::converged) << solved.reason;
  EXPECT_NEAR(this->solution[0] - this->solution[1], 1, 1e-14);
}

TYPED_TEST(Minres, ZeroRightHandSideOfBothMethods) {
  auto const csr = differences(20, 0.8);
  for (Method const method : {Method::gmres, Method::minres}) {
    auto const result = this->solve(csr, std::vector<double>(20, 0.0), {.method = method});
    EXPECT_EQ(result.status, SolverStatus::converged);
    EXPECT_EQ(result.iterations, 0);
    EXPECT_EQ(this->solution, std::vector<double>(20, 0.0));
  }
}

}  // namespace
}  // namespace poisson::testing
