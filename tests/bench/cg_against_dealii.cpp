// cg_against_dealii [CELLS] [ROUNDS]
// CG to 1e-12 on a box of CELLS^3 cells (default 63, that is 64^3 nodes), on the host: ours in csr and half_cds beside deal.II's
// SolverCG with its SparseMatrix, with the same threads, in turns. Prints the seconds of every round and the ratios of the medians.
#include "assembly/discretization.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deal.II/base/multithread_info.h>
#include <deal.II/lac/precondition.h>
#include <deal.II/lac/solver_cg.h>
#include <deal.II/lac/solver_control.h>
#include <deal.II/lac/sparse_matrix.h>
#include <deal.II/lac/sparsity_pattern.h>
#include <deal.II/lac/vector.h>
#include <memory>
#include <vector>

using namespace poisson;
using namespace poisson::assembly;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  unsigned const cells = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 63;
  int const rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  set_thread_count(0);
  dealii::MultithreadInfo::set_thread_limit(static_cast<unsigned>(thread_count()));
  ProblemSpec spec;
  spec.mesh.cells = {cells, cells, cells};
  spec.source = "1";
  spec.boundary.push_back(BoundaryCondition{true, {}, {}, BoundaryType::dirichlet, "0", "0"});
  LinearSystem const system = Discretization(spec).assemble();
  auto const csr = std::make_shared<CsrMatrix const>(system.matrix);
  auto const n = static_cast<unsigned>(csr->n_rows);

  std::vector<unsigned> lengths(n);
  for (unsigned row = 0; row < n; ++row)
    lengths[row] = static_cast<unsigned>(csr->row_ptr[row + 1] - csr->row_ptr[row]);
  dealii::SparsityPattern pattern(n, n, lengths);
  for (unsigned row = 0; row < n; ++row)
    for (auto e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; ++e)
      pattern.add(row, static_cast<unsigned>(csr->columns[e]));
  pattern.compress();
  dealii::SparseMatrix<double> matrix(pattern);
  for (unsigned row = 0; row < n; ++row)
    for (auto e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; ++e)
      matrix.set(row, static_cast<unsigned>(csr->columns[e]), csr->values[e]);
  dealii::Vector<double> b(n), x(n);
  std::copy(system.rhs.begin(), system.rhs.end(), b.begin());

  auto const context = make_context(Backend::cpu);
  auto const in_csr = make_matrix(Format::csr, csr, *context), in_half_cds = make_matrix(Format::half_cds, csr, *context);
  std::vector<double> solution(n), dealii_seconds, csr_seconds, half_cds_seconds;
  auto const ours = [&](Matrix const& a) {
    double const start = now();
    SolverResult const result = solve(a, system.rhs, solution, {});
    std::printf("  %lld iterations %.3f s", static_cast<long long>(result.iterations), now() - start);
    return now() - start;
  };
  std::printf("%u unknowns, %d threads\n", n, thread_count());
  for (int round = 0; round < rounds; ++round) {
    x = 0;
    double const start = now();
    dealii::ReductionControl control(10000, 1e-300, 1e-12);
    dealii::SolverCG<dealii::Vector<double>>(control).solve(matrix, x, b, dealii::PreconditionIdentity());
    dealii_seconds.push_back(now() - start);
    std::printf("deal.II %u iterations %.3f s; csr", control.last_step(), dealii_seconds.back());
    csr_seconds.push_back(ours(*in_csr));
    std::printf("; half_cds");
    half_cds_seconds.push_back(ours(*in_half_cds));
    std::printf("\n");
  }
  std::printf("deal.II / ours: csr %.2f, half_cds %.2f\n", median(dealii_seconds) / median(csr_seconds),
              median(dealii_seconds) / median(half_cds_seconds));
}
