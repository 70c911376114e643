// multigrid [N] [cpu|cuda]: solves A x = b by cg with multigrid. A is the seven-point matrix of N x N x N points, given as CSR;
// nothing else is known of it. b is made from a known x, so that the error is known, too.
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

namespace {

/// 6 on the diagonal, -1 for each of up to six neighbours; x fastest.
std::shared_ptr<poisson::CsrMatrix const> seven_point_matrix(std::int64_t n) {
  auto a = std::make_shared<poisson::CsrMatrix>();
  a->n_rows = a->n_columns = n * n * n;
  std::vector<std::int64_t> row_ptr{0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  for (std::int64_t z = 0; z < n; ++z)
    for (std::int64_t y = 0; y < n; ++y)
      for (std::int64_t x = 0; x < n; ++x) {
        auto const add = [&](std::int64_t i, std::int64_t j, std::int64_t k, double value) {
          if (std::min({i, j, k}) >= 0 && std::max({i, j, k}) < n) {
            columns.push_back(static_cast<std::int32_t>((k * n + j) * n + i));
            values.push_back(value);
          }
        };
        add(x, y, z - 1, -1);
        add(x, y - 1, z, -1);
        add(x - 1, y, z, -1);
        add(x, y, z, 6);
        add(x + 1, y, z, -1);
        add(x, y + 1, z, -1);
        add(x, y, z + 1, -1);
        row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
      }
  a->row_ptr.assign(row_ptr.begin(), row_ptr.end());
  a->columns.assign(columns.begin(), columns.end());
  a->values.assign(values.begin(), values.end());
  return a;
}

}  // namespace

int main(int argc, char** argv) try {
  std::int64_t const n = argc > 1 ? std::atoll(argv[1]) : 32;
  auto const backend = argc > 2 && std::string(argv[2]) == "cuda" ? poisson::Backend::cuda : poisson::Backend::cpu;
  auto const csr = seven_point_matrix(n);
  auto const rows = static_cast<std::size_t>(csr->n_rows);

  std::vector<double> known(rows), b(rows, 0), x(rows);
  for (std::size_t i = 0; i < rows; ++i)
    known[i] = std::sin(0.37 * static_cast<double>(i));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::int64_t at = csr->row_ptr[i]; at < csr->row_ptr[i + 1]; ++at)
      b[i] +=
          csr->values[static_cast<std::size_t>(at)] * known[static_cast<std::size_t>(csr->columns[static_cast<std::size_t>(at)])];

  auto const context = poisson::make_context(backend);
  auto const matrix = poisson::make_matrix(poisson::Format::csr, csr, *context);
  poisson::SolverOptions options;
  options.preconditioner = poisson::PreconditionerKind::multigrid;
  options.csr = [&] { return csr; };  // what levels are made from
  options.tolerance = 1e-12;
  poisson::SolverResult const result = poisson::solve(*matrix, b, x, options);

  double error = 0;
  for (std::size_t i = 0; i < rows; ++i)
    error = std::max(error, std::abs(x[i] - known[i]));
  std::printf("%s after %lld iterations, %zu levels, largest error %.1e\n", std::string(poisson::name_of(result.status)).c_str(),
              static_cast<long long>(result.iterations), result.multigrid_levels.size(), error);
  return result.status == poisson::SolverStatus::converged && error < 1e-9 ? 0 : 1;
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
