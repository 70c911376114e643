#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/matrices.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace poisson::testing {
namespace {

/// One system solved on both backends in every format that holds it: the same iterations, the same solution to rounding.
TEST(CpuAgainstCuda, SolveABox) {
  if (std::string const why = why_no_cuda(); !why.empty())
    GTEST_SKIP() << why;
  std::shared_ptr<CsrMatrix const> const csr = box27(70, 66, 8);  // planes that the CUDA half_cds product walks through
  auto const n = static_cast<std::size_t>(csr->n_rows);
  std::vector<double> b(n);
  for (std::size_t i = 0; i < n; ++i)
    b[i] = std::sin(0.37 * static_cast<double>(i)) + 0.1;
  for (FormatEstimate const& format : estimate_formats(shape_of(*csr))) {
    if (!format.refusal.empty())
      continue;
    SCOPED_TRACE(name_of(format.format));
    std::vector<double> x[2] = {std::vector<double>(n), std::vector<double>(n)};
    SolverResult result[2];
    for (Backend const backend : {Backend::cpu, Backend::cuda}) {
      auto const which = backend == Backend::cuda;
      auto const context = make_context(backend);
      auto const matrix = make_matrix(format.format, csr, *context);
      result[which] = solve(*matrix, b, x[which], SolverOptions{});
      EXPECT_EQ(result[which].status, SolverStatus::converged) << result[which].reason;
      EXPECT_LE(true_residual(*csr, x[which], b), 1e-11);
    }
    EXPECT_NEAR(static_cast<double>(result[0].iterations), static_cast<double>(result[1].iterations), 2);
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < n; ++i) {
      difference += (x[0][i] - x[1][i]) * (x[0][i] - x[1][i]);
      norm += x[0][i] * x[0][i];
    }
    EXPECT_GT(norm, 0);
    EXPECT_LE(std::sqrt(difference / norm), 1e-9);
  }
}

}  // namespace
}  // namespace poisson::testing
