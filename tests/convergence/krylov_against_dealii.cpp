/// Our solvers beside deal.II's on the same systems: the same iterations, the same solution.
#include "tests/convergence/support.hpp"

#include "gpu/core/context.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"

#include <cmath>
#include <deal.II/lac/solver_bicgstab.h>
#include <gtest/gtest.h>
#include <memory>

namespace poisson::assembly {
namespace {

using namespace test;

LinearSystem variable_coefficient() {
  ProblemSpec spec;
  spec.mesh.cells = {14, 12, 13};
  spec.coefficient = {{-1, {"1 + x*y"}}};
  spec.source = "exp(x)*sin(3*y) + z";
  spec.boundary = {dirichlet("x")};
  return Discretization(spec).assemble();
}

DealVector as_deal(std::span<double const> v) {
  DealVector result(static_cast<unsigned>(v.size()));
  std::copy(v.begin(), v.end(), result.begin());
  return result;
}

/// Our solution in compressed rows on the host, and what the solver says.
SolverResult ours(std::shared_ptr<CsrMatrix const> const& a, std::span<double const> b, SolverOptions const& options,
                  DealVector& x) {
  auto const context = make_context(Backend::cpu);
  std::vector<double> solution(b.size());
  SolverResult const result = poisson::solve(*make_matrix(Format::csr, a, *context), b, solution, options);
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  x = as_deal(solution);
  return result;
}

TEST(AgainstDealII, ConjugateGradients) {
  LinearSystem const system = variable_coefficient();
  auto const a = std::make_shared<CsrMatrix const>(system.matrix);
  DealVector const b = as_deal(system.rhs);
  for (bool const jacobi : {false, true}) {
    DealVector expected(b.size()), x;
    dealii::ReductionControl control(10000, 1e-300, 1e-12);
    dealii::SolverCG<DealVector> cg(control);
    if (jacobi)
      cg.solve(CsrOperator{*a}, expected, b, JacobiPreconditioner(*a));
    else
      cg.solve(CsrOperator{*a}, expected, b, dealii::PreconditionIdentity());
    SolverOptions options;
    options.preconditioner = jacobi ? PreconditionerKind::jacobi : PreconditionerKind::none;
    SolverResult const result = ours(a, system.rhs, options, x);
    EXPECT_NEAR(static_cast<double>(result.iterations), control.last_step(), 1);
    x -= expected;
    EXPECT_LE(x.l2_norm(), 1e-9 * expected.l2_norm());
  }
}

TEST(AgainstDealII, Bicgstab) {
  LinearSystem const system = variable_coefficient();
  auto unsymmetric = std::make_shared<CsrMatrix>(system.matrix);
  for (std::int64_t row = 0; row < unsymmetric->n_rows; ++row)
    for (auto e = unsymmetric->row_ptr[row]; e < unsymmetric->row_ptr[row + 1]; ++e)
      if (unsymmetric->columns[e] > row)
        unsymmetric->values[e] *= 0.8;
  DealVector const b = as_deal(system.rhs);
  for (bool const jacobi : {false, true}) {
    DealVector expected(b.size()), x;
    dealii::ReductionControl control(10000, 1e-300, 1e-12);
    dealii::SolverBicgstab<DealVector> bicgstab(control);
    if (jacobi)
      bicgstab.solve(CsrOperator{*unsymmetric}, expected, b, JacobiPreconditioner(*unsymmetric));
    else
      bicgstab.solve(CsrOperator{*unsymmetric}, expected, b, dealii::PreconditionIdentity());
    SolverOptions options;
    options.method = Method::bicgstab;
    options.preconditioner = jacobi ? PreconditionerKind::jacobi : PreconditionerKind::none;
    SolverResult const result = ours(unsymmetric, system.rhs, options, x);
    EXPECT_NEAR(static_cast<double>(result.iterations), control.last_step(), 2 + 0.1 * control.last_step());
    x -= expected;
    EXPECT_LE(x.l2_norm(), 1e-9 * expected.l2_norm());
  }
}

}  // namespace
}  // namespace poisson::assembly
