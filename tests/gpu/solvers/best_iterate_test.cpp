#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"

#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <cmath>
#include <string>

/// Residuals that climb, and what is returned of solves that do not converge.
namespace poisson::testing {

namespace {

/// Convection and diffusion by central differences: far from normal, and for BiCGStab the harder the more points and wind.
std::shared_ptr<CsrMatrix> central_convection(std::int64_t n, double wind) {
  Entries entries;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] = 2;
    if (i > 0) {
      entries[{i, i - 1}] = -1 - wind;
      entries[{i - 1, i}] = -1 + wind;
    }
  }
  return to_csr(n, entries);
}

template <class C>
class BestIterate : public SolvesOnCase<C> {};
TYPED_TEST_SUITE(BestIterate, Cases, CaseNames);

TYPED_TEST(BestIterate, ResidualsThatClimbAreWaitedFor) {
  if (TestFixture::symmetric_only)
    GTEST_SKIP() << "half_cds holds symmetric matrices only";
  for (auto const& [n, wind] : {std::pair{48, 0.5}, {32, 0.7}}) {
    SCOPED_TRACE(n);
    auto const csr = central_convection(n, wind);
    std::vector<double> const b(static_cast<std::size_t>(n), 1.0);
    auto const result = this->solve(csr, b, {.method = Method::bicgstab, .tolerance = 1e-8});
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_GT(*std::max_element(result.history.begin(), result.history.end()), 2e7) << "it does not climb: no test";
    EXPECT_LE(true_residual(*csr, this->solution, b), 2.1e-8);
  }
}

TYPED_TEST(BestIterate, IsNeverWorseThanZeroAndHasTheResidualThatIsTold) {
  if (TestFixture::symmetric_only)
    GTEST_SKIP() << "half_cds holds symmetric matrices only";
  int not_converged = 0;
  for (double const wind : {0.5, 0.9, 5.0})
    for (std::int64_t const n : {40, 60, 200})
      for (auto const& precision : Names<Precision>::values)
        for (std::int64_t const limit : {9, 20, 60, 1000}) {
          SCOPED_TRACE(std::string(precision.name) + ", n = " + std::to_string(n) + ", " + std::to_string(limit) + " iterations");
          auto const csr = central_convection(n, wind);
          std::vector<double> const b(static_cast<std::size_t>(n), 1.0);
          auto const result =
              this->solve(csr, b, {.method = Method::bicgstab, .precision = precision.value, .max_iterations = limit});
          double const residual = true_residual(*csr, this->solution, b, result.x_low);
          EXPECT_LE(residual, 1 + 1e-14) << result.reason;
          if (result.status == SolverStatus::converged)
            continue;
          ++not_converged;
          if (result.status != SolverStatus::stagnated) {
            EXPECT_NEAR(residual, result.residual_recursive, 0.06 * residual) << result.reason;
          }
        }
  EXPECT_GT(not_converged, 20);
}

TYPED_TEST(BestIterate, IsThatOfBeforeAnInconsistentSystemDiverges) {
  // Rows of zeros with a right-hand side: the residual falls to their part and rises after that.
  Entries entries;
  std::int64_t const n = 200;
  for (std::int64_t i = 0; i < n; ++i)
    if (i % 50 != 3)
      entries[{i, i}] = 1.0 + static_cast<double>(i);
  auto const csr = to_csr(n, entries);
  std::vector<double> b(static_cast<std::size_t>(n), 1.0);
  for (std::size_t i = 3; i < b.size(); i += 50)
    b[i] = 1e-3;
  double const least = 2e-3 / std::sqrt(static_cast<double>(n - 4));
  for (Method const method : {Method::cg, Method::bicgstab}) {
    auto const result = this->solve(csr, b, {.method = method, .tolerance = 1e-12, .max_iterations = 100000});
    EXPECT_NE(result.status, SolverStatus::converged);
    EXPECT_LE(true_residual(*csr, this->solution, b), 100 * least) << result.reason;
  }
}

}  // namespace
}  // namespace poisson::testing
