// double_double [N] [cpu|cuda]: cg in double-double arithmetic. A has 2 on the diagonal and -1 beside it, and b is 1: then
// x_i = i (N + 1 - i) / 2 exactly, for i from 1 to N. In double its error would be that of the condition number, N^2 / 2.5, times
// 1e-16.
#include "gpu/core/double_double.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
  std::int64_t const n = argc > 1 ? std::atoll(argv[1]) : 1000;
  auto const backend = argc > 2 && std::string(argv[2]) == "cuda" ? poisson::Backend::cuda : poisson::Backend::cpu;
  auto csr = std::make_shared<poisson::CsrMatrix>();
  csr->n_rows = csr->n_columns = n;
  csr->row_ptr.push_back(0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = std::max<std::int64_t>(i - 1, 0); j <= std::min(i + 1, n - 1); ++j) {
      csr->columns.push_back(static_cast<std::int32_t>(j));
      csr->values.push_back(i == j ? 2 : -1);
    }
    csr->row_ptr.push_back(static_cast<std::int64_t>(csr->columns.size()));
  }

  auto const context = poisson::make_context(backend);
  auto const matrix = poisson::make_matrix(poisson::Format::csr, csr, *context);
  poisson::SolverOptions options;
  options.precision = poisson::Precision::double_double;
  options.tolerance = 1e-28;
  std::vector<double> const b(static_cast<std::size_t>(n), 1);
  std::vector<double> x(b.size());
  poisson::SolverResult const result = poisson::solve(*matrix, b, x, options);

  double error = 0;  // relative to the largest entry
  for (std::int64_t i = 1; i <= n; ++i) {
    poisson::DoubleDouble const exact(0.5 * static_cast<double>(i * (n + 1 - i)));
    auto const at = static_cast<std::size_t>(i - 1);
    error = std::max(error, std::abs((poisson::DoubleDouble(x[at], result.x_low[at]) - exact).hi));
  }
  error /= static_cast<double>((n + 1) * (n + 1)) / 8;
  std::printf("%s after %lld iterations, residual %.1e, relative error %.1e\n",
              std::string(poisson::name_of(result.status)).c_str(), static_cast<long long>(result.iterations),
              result.residual_recursive, error);
  return result.status == poisson::SolverStatus::converged && error < 1e-22 ? 0 : 1;
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
