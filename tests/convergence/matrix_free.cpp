/// Rates with matrix_free: assembled by gpu/elements, solved by our cg on the CPU backend, without any matrix.
#include "tests/convergence/rates.hpp"
#include "tests/source_dir.hpp"

#include "gpu/elements/box_system.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"

#include <filesystem>
#include <memory>
#include <ostream>
#include <tuple>

namespace poisson::assembly {
namespace {

using namespace test;

/// Solves as a run does it: boxes with constant k by their stencil, all else by tensors at Gauss points.
ErrorNorms solve_matrix_free(ProblemSpec const& spec) {
  Discretization discretization(spec, AssembledInto::matrix_free_on_host);
  auto const context = make_context(Backend::cpu);
  std::unique_ptr<ElementSystem> system;
  auto const box = discretization.box_problem();
  if (box && BoxSystem::can_assemble(*box, Format::matrix_free))
    system = std::make_unique<BoxSystem>(*context, *box, Format::matrix_free);
  else
    system = std::make_unique<LatticeSystem>(*context, discretization.lattice_problem(), Format::matrix_free);
  EXPECT_EQ(system->matrix().format(), Format::matrix_free);
  HostVector<double> const rhs = system->take_rhs().take_host();
  HostVector<double> x(rhs.size());
  SolverOptions options;
  options.preconditioner = PreconditionerKind::jacobi;
  options.tolerance = 1e-12;
  options.constant_null_space = system->pure_neumann();
  SolverResult const result = poisson::solve(system->matrix(), rhs, x, options);
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  system->set_dirichlet(x);
  if (system->pure_neumann())
    discretization.subtract_mean(x);
  return discretization.errors(x);
}

enum class Domain { box, box_with_variable_k, box_without_dirichlet, ball, shell, two_materials };
std::string name_of(Domain domain) {
  switch (domain) {
  case Domain::box:
    return "Box";
  case Domain::box_with_variable_k:
    return "BoxWithVariableK";
  case Domain::box_without_dirichlet:
    return "BoxWithoutDirichlet";
  case Domain::ball:
    return "Ball";
  case Domain::shell:
    return "Shell";
  case Domain::two_materials:
    break;
  }
  return "TwoMaterials";
}

class MatrixFreeRates : public testing::TestWithParam<std::tuple<Domain, int>> {};

TEST_P(MatrixFreeRates, AreThoseOfTheory) {
  auto const [domain, order] = GetParam();
  std::vector<ProblemSpec> specs;
  double above = 0.2;
  switch (domain) {
  case Domain::box:
  case Domain::box_with_variable_k:
  case Domain::box_without_dirichlet:
    for (int const n : resolutions(order)) {
      specs.push_back(waves(order, box(n, n, n)));
      ProblemSpec& spec = specs.back();
      if (domain == Domain::box_with_variable_k) {
        spec.coefficient = {{-1, {"1 + x*x", "2", "3 + z"}}};
        spec.exact = "sin(x + y + z)";
        spec.source = "(6 + x*x + z)*sin(x + y + z) - (1 + 2*x)*cos(x + y + z)";
        spec.boundary = {dirichlet(*spec.exact)};
      } else if (domain == Domain::box_without_dirichlet) {
        spec.exact = "3 + cos(pi*x)*cos(pi*y)*cos(pi*z)";
        spec.source = "3*pi^2*cos(pi*x)*cos(pi*y)*cos(pi*z)";
        spec.boundary = {neumann("0")};
      }
    }
    break;
  case Domain::ball:
  case Domain::shell:
    // The domains have half the usual size: u is smoother there, and few cells reach the rates. Lattices number the finer meshes.
    above = 0.45;
    for (int const r : order != 3 ? std::vector<int>{2, 3} : std::vector<int>{1, 2})
      specs.push_back(waves(order, domain == Domain::ball ? generator("hyper_ball", r, "0, 0, 0 : 0.5")
                                                          : generator("hyper_shell", r, "0, 0, 0 : 0.25 : 0.5")));
    break;
  case Domain::two_materials:
    // k = 1 for x < 1 and 5 beyond; u has a kink there, k du/dx has none.
    for (int const r : order == 1 ? std::vector<int>{1, 2} : std::vector<int>{0, 1}) {
      MeshSpec mesh;
      mesh.file = (source_dir() / "meshes/two_materials.msh").string();
      mesh.refinements = r;
      specs.push_back(waves(order, mesh));
      specs.back().coefficient = {{1, {"1"}}, {2, {"5"}}};
      specs.back().exact = "(x < 1 ? 5 : 1)*(x - 1)*cos(x)*cos(y)";
      specs.back().source = "10*cos(y)*(sin(x) + (x - 1)*cos(x))";
      specs.back().boundary = {dirichlet(*specs.back().exact)};
    }
    break;
  }
  expect_rates(specs, above, &solve_matrix_free);
}

INSTANTIATE_TEST_SUITE_P(Q, MatrixFreeRates,
                         testing::Combine(testing::Values(Domain::box, Domain::box_with_variable_k, Domain::box_without_dirichlet,
                                                          Domain::ball, Domain::shell, Domain::two_materials),
                                          testing::Values(1, 2, 3, 4)),
                         [](auto const& of) { return name_of(std::get<0>(of.param)) + std::to_string(std::get<1>(of.param)); });

}  // namespace
}  // namespace poisson::assembly
