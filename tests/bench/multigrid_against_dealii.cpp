// multigrid_against_dealii [REFINEMENTS] [ROUNDS]
// cg with geometric multigrid on a box of 2^REFINEMENTS cells a side (default 6), u = 0 all around, f = 1, to 1e-12, on the host:
// ours (half_cds and matrix_free) beside deal.II's matrix-free one with Chebyshev smoothers in single precision, as its tutorial 37
// has it, with the same threads, in turns. Setup: from the mesh to the first iteration; deal.II's mesh itself is not counted.
#include "gpu/core/threads.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/elements/functions.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deal.II/base/function.h>
#include <deal.II/base/mpi.h>
#include <deal.II/base/multithread_info.h>
#include <deal.II/base/quadrature_lib.h>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/tria.h>
#include <deal.II/lac/affine_constraints.h>
#include <deal.II/lac/la_parallel_vector.h>
#include <deal.II/lac/precondition.h>
#include <deal.II/lac/solver_cg.h>
#include <deal.II/matrix_free/fe_evaluation.h>
#include <deal.II/matrix_free/matrix_free.h>
#include <deal.II/matrix_free/operators.h>
#include <deal.II/multigrid/mg_coarse.h>
#include <deal.II/multigrid/mg_constrained_dofs.h>
#include <deal.II/multigrid/mg_matrix.h>
#include <deal.II/multigrid/mg_smoother.h>
#include <deal.II/multigrid/mg_tools.h>
#include <deal.II/multigrid/mg_transfer_matrix_free.h>
#include <deal.II/multigrid/multigrid.h>
#include <deal.II/numerics/vector_tools.h>
#include <memory>
#include <set>
#include <vector>

using namespace poisson;

namespace {

constexpr int dim = 3;
using Vector64 = dealii::LinearAlgebra::distributed::Vector<double>;
using Vector32 = dealii::LinearAlgebra::distributed::Vector<float>;
using Operator = dealii::MatrixFreeOperators::LaplaceOperator<dim, 1, 2, 1, Vector64>;
using LevelOperator = dealii::MatrixFreeOperators::LaplaceOperator<dim, 1, 2, 1, Vector32>;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Times {
  std::vector<double> setup, solve;
  void print(char const* name, long long iterations) const {
    std::printf("%-12s %3lld iterations, setup %.3f s, solve %.3f s, together %.3f s\n", name, iterations, median(setup),
                median(solve), median(setup) + median(solve));
  }
};

template <class Number>
std::shared_ptr<dealii::MatrixFree<dim, Number>> matrix_free(dealii::DoFHandler<dim> const& dofs,
                                                             dealii::AffineConstraints<double> const& constraints, unsigned level) {
  typename dealii::MatrixFree<dim, Number>::AdditionalData data;
  data.tasks_parallel_scheme = dealii::MatrixFree<dim, Number>::AdditionalData::partition_partition;
  data.mapping_update_flags = dealii::update_gradients | dealii::update_JxW_values | dealii::update_quadrature_points;
  data.mg_level = level;
  auto result = std::make_shared<dealii::MatrixFree<dim, Number>>();
  result->reinit(dealii::MappingQ<dim>(1), dofs, constraints, dealii::QGauss<1>(2), data);
  return result;
}

/// Adds the times of one solve with deal.II, and returns its iterations.
unsigned with_dealii(dealii::DoFHandler<dim> const& dofs, Times& times) {
  double const start = now();
  dealii::AffineConstraints<double> constraints;
  dealii::DoFTools::make_zero_boundary_constraints(dofs, constraints);
  constraints.close();
  Operator a;
  a.initialize(matrix_free<double>(dofs, constraints, dealii::numbers::invalid_unsigned_int));
  Vector64 b, x;
  a.initialize_dof_vector(b);
  a.initialize_dof_vector(x);

  unsigned const n_levels = dofs.get_triangulation().n_global_levels();
  dealii::MGConstrainedDoFs constrained;
  constrained.initialize(dofs);
  constrained.make_zero_boundary_constraints(dofs, {0});
  dealii::MGLevelObject<LevelOperator> levels(0, n_levels - 1);
  for (unsigned level = 0; level < n_levels; ++level) {
    dealii::AffineConstraints<double> of_level;
    of_level.add_lines(constrained.get_boundary_indices(level));
    of_level.close();
    levels[level].initialize(matrix_free<float>(dofs, of_level, level), constrained, level);
    levels[level].compute_diagonal();
  }
  dealii::MGTransferMatrixFree<dim, float> transfer(constrained);
  transfer.build(dofs);
  using Smoother = dealii::PreconditionChebyshev<LevelOperator, Vector32>;
  dealii::MGSmootherPrecondition<LevelOperator, Smoother, Vector32> smoother;
  dealii::MGLevelObject<typename Smoother::AdditionalData> options(0, n_levels - 1);
  for (unsigned level = 0; level < n_levels; ++level) {
    options[level].smoothing_range = level > 0 ? 15 : 1e-3;
    options[level].degree = level > 0 ? 5 : dealii::numbers::invalid_unsigned_int;
    options[level].eig_cg_n_iterations = level > 0 ? 10 : levels[0].m();
    options[level].preconditioner = levels[level].get_matrix_diagonal_inverse();
  }
  smoother.initialize(levels, options);
  dealii::MGCoarseGridApplySmoother<Vector32> coarse;
  coarse.initialize(smoother);
  dealii::mg::Matrix<Vector32> const matrices(levels);
  dealii::Multigrid<Vector32> multigrid(matrices, coarse, transfer, smoother, smoother);
  dealii::PreconditionMG<dim, Vector32, dealii::MGTransferMatrixFree<dim, float>> const preconditioner(dofs, multigrid, transfer);
  times.setup.push_back(now() - start);

  dealii::FEEvaluation<dim, 1, 2> phi(*a.get_matrix_free());
  for (unsigned cell = 0; cell < a.get_matrix_free()->n_cell_batches(); ++cell) {
    phi.reinit(cell);
    for (unsigned q = 0; q < phi.n_q_points; ++q)
      phi.submit_value(dealii::make_vectorized_array<double>(1), q);
    phi.integrate_scatter(dealii::EvaluationFlags::values, b);
  }
  double const begin = now();
  dealii::ReductionControl control(100, 1e-300, 1e-12);
  dealii::SolverCG<Vector64>(control).solve(a, x, b, preconditioner);
  times.solve.push_back(now() - begin);
  return control.last_step();
}

SolverResult with_ours(Context& context, std::int64_t cells, Format format, Times& times) {
  double const start = now();
  BoxProblem problem{{cells, cells, cells}, {0, 0, 0}, {1, 1, 1}, {testing::constant(1).code}, testing::constant(1).code, {}};
  for (auto& face : problem.faces)
    face.value = testing::constant(0).code;
  BoxSystem system(context, problem, format);
  HostVector<double> const b = system.take_rhs().take_host();
  HostVector<double> x(b.size());
  SolverOptions options;
  options.preconditioner = PreconditionerKind::multigrid;
  options.box_nodes = {cells + 1, cells + 1, cells + 1};
  double const assembly = now() - start;
  SolverResult result = solve(system.matrix(), b, x, options);
  times.setup.push_back(assembly + result.setup_seconds);
  times.solve.push_back(result.seconds);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  dealii::Utilities::MPI::MPI_InitFinalize const mpi(argc, argv, dealii::numbers::invalid_unsigned_int);
  int const refinements = argc > 1 ? std::atoi(argv[1]) : 6, rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  set_thread_count(0);
  dealii::MultithreadInfo::set_thread_limit(static_cast<unsigned>(thread_count()));
  dealii::Triangulation<dim> mesh(dealii::Triangulation<dim>::limit_level_difference_at_vertices);
  dealii::GridGenerator::hyper_cube(mesh);
  mesh.refine_global(static_cast<unsigned>(refinements));
  dealii::FE_Q<dim> const element(1);
  dealii::DoFHandler<dim> dofs(mesh);
  dofs.distribute_dofs(element);
  dofs.distribute_mg_dofs();
  std::printf("%u unknowns, %d threads\n", static_cast<unsigned>(dofs.n_dofs()), thread_count());

  auto const context = make_context(Backend::cpu);
  std::int64_t const cells = std::int64_t{1} << refinements;
  Times dealii_times, half_cds, free;
  unsigned dealii_iterations = 0;
  SolverResult in_half_cds, matrix_free_result;
  for (int round = 0; round < rounds; ++round) {
    dealii_iterations = with_dealii(dofs, dealii_times);
    in_half_cds = with_ours(*context, cells, Format::half_cds, half_cds);
    matrix_free_result = with_ours(*context, cells, Format::matrix_free, free);
  }
  dealii_times.print("deal.II", dealii_iterations);
  half_cds.print("half_cds", in_half_cds.iterations);
  free.print("matrix_free", matrix_free_result.iterations);
}
