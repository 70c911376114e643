/// Manufactured solutions: observed rates (L2: p + 1, H1: p), and solutions that the space contains.
#include "tests/convergence/rates.hpp"
#include "tests/source_dir.hpp"

#include "gpu/core/error.hpp"

#include <cstdlib>
#include <gtest/gtest.h>

namespace poisson::assembly {
namespace {

using namespace test;

template <class Change>
void expect_rates_on_box(int order, Change const& change) {
  std::vector<ProblemSpec> specs;
  for (int const n : resolutions(order)) {
    auto spec = waves(order, box(n, n, n));
    change(spec);
    specs.push_back(spec);
  }
  expect_rates(specs);
}

class Order : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Q, Order, testing::Values(1, 2, 3));

TEST_P(Order, BoxWithDirichletValues) {
  expect_rates_on_box(GetParam(), [](auto&) {});
}

TEST_P(Order, BoxWithNeumannAndRobin) {
  expect_rates_on_box(GetParam(), [](auto& spec) {
    spec.boundary = {dirichlet(Waves::u, {0}),
                     neumann(Waves::dx, {1}),
                     robin("1 + x", "-cos(2*x + y)*exp(z) + (1 + x)*sin(2*x + y)*exp(z)", {2}),
                     neumann("cos(2*x + y)*exp(z)", {3}),
                     neumann("-sin(2*x + y)*exp(z)", {4}),
                     robin("2", "3*sin(2*x + y)*exp(z)", {5})};
  });
}

TEST_P(Order, BoxWithRobinOnly) {
  expect_rates_on_box(GetParam(), [](auto& spec) {
    spec.boundary = {robin("1", "(-2*cos(2*x + y) + sin(2*x + y))*exp(z)", {0}),
                     robin("1", "(2*cos(2*x + y) + sin(2*x + y))*exp(z)", {1}),
                     robin("1", "(-cos(2*x + y) + sin(2*x + y))*exp(z)", {2}),
                     robin("1", "(cos(2*x + y) + sin(2*x + y))*exp(z)", {3}),
                     robin("1", "0", {4}),
                     robin("1", "2*sin(2*x + y)*exp(z)", {5})};
  });
}

TEST_P(Order, BoxWithVariableCoefficient) {
  expect_rates_on_box(GetParam(), [](auto& spec) {
    spec.coefficient = {{-1, {"1 + x + y*y"}}};
    spec.exact = "sin(x + y + z)";
    spec.source = "3*(1 + x + y*y)*sin(x + y + z) - (1 + 2*y)*cos(x + y + z)";
    spec.boundary = {dirichlet(*spec.exact)};
  });
}

TEST_P(Order, BoxWithOrthotropicCoefficient) {
  expect_rates_on_box(GetParam(), [](auto& spec) {
    spec.coefficient = {{-1, {"1 + x*x", "2", "3 + z"}}};
    spec.exact = "sin(x + y + z)";
    spec.source = "(6 + x*x + z)*sin(x + y + z) - (1 + 2*x)*cos(x + y + z)";
    spec.boundary = {dirichlet(*spec.exact)};
  });
}

/// A box of cells that grow, refined: every cell is halved.
template <class Change>
void expect_rates_on_graded_box(int order, Change const& change) {
  std::vector<ProblemSpec> specs;
  for (int const n : resolutions(order)) {
    auto mesh = box(4, 4, 4);
    mesh.set_coordinates(0, {0, 0.1, 0.4, 0.6, 1});
    mesh.growth = {1, 1.4, 0.7};
    mesh.growth_to[1] = GrowthTo::middle;
    mesh.refinements = n / 8;  // 4, 8 or 16 cells
    auto spec = waves(order, mesh);
    change(spec);
    specs.push_back(spec);
  }
  expect_rates(specs);
}

TEST_P(Order, GradedBoxWithDirichletValues) {
  expect_rates_on_graded_box(GetParam(), [](auto&) {});
}

TEST_P(Order, GradedBoxWithNeumannRobinAndVariableCoefficient) {
  expect_rates_on_graded_box(GetParam(), [](auto& spec) {
    spec.coefficient = {{-1, {"1 + x + y*y"}}};
    spec.exact = "sin(x + y + z)";
    spec.source = "3*(1 + x + y*y)*sin(x + y + z) - (1 + 2*y)*cos(x + y + z)";
    spec.boundary = {dirichlet(*spec.exact), neumann("(2 + y*y)*cos(1 + y + z)", {1}),
                     robin("2", "(2 + x)*cos(x + 1 + z) + 2*sin(x + 1 + z)", {3})};
  });
}

TEST_P(Order, GradedBoxWithNeumannOnly) {
  expect_rates_on_graded_box(GetParam(), [](auto& spec) {
    spec.exact = "3 + cos(pi*x)*cos(pi*y)*cos(pi*z)";
    spec.source = "3*pi^2*cos(pi*x)*cos(pi*y)*cos(pi*z)";
    spec.boundary = {neumann("0")};
  });
}

/// k = 1 for x < 1/2 and 5 beyond; u has a kink there, k du/dx has none.
TEST_P(Order, TwoMaterialsWithAlignedInterface) {
  std::vector<ProblemSpec> specs;
  std::vector<std::unique_ptr<MeshFile>> files;
  for (int const n : {4, 8}) {
    files.push_back(std::make_unique<MeshFile>());
    files.back()->add_block({0, 0, 0}, {1, 1, 1}, {n, n, n}, 0, [](double x, double, double) { return x < 0.5 ? 1 : 7; });
    auto spec = waves(GetParam(), files.back()->spec());
    spec.coefficient = {{1, {"1"}}, {-1, {"5"}}};
    spec.exact = "(x < 0.5 ? 5 : 1)*(x - 0.5)*cos(x)*cos(y)";
    spec.source = "10*cos(y)*(sin(x) + (x - 0.5)*cos(x))";
    spec.boundary = {dirichlet(*spec.exact)};
    specs.push_back(spec);
  }
  expect_rates(specs);
}

TEST_P(Order, PureNeumann) {
  // The mean of `exact` is not zero and does not matter.
  expect_rates_on_box(GetParam(), [](auto& spec) {
    spec.exact = "3 + cos(pi*x)*cos(pi*y)*cos(pi*z)";
    spec.source = "3*pi^2*cos(pi*x)*cos(pi*y)*cos(pi*z)";
    spec.boundary = {neumann("0")};
  });
}

TEST_P(Order, GeneratedBallWithCurvedCells) {
  std::vector<ProblemSpec> specs;
  for (int const r : {1, 2, 3})
    if (r < 3 || GetParam() < 3)
      specs.push_back(waves(GetParam(), generator("hyper_ball", r)));
  expect_rates(specs, 0.45);
}

TEST_P(Order, GeneratedBallWithNeumannOnTheCurvedBoundary) {
  // Isoparametric cells: the boundary is approximated well enough for the full rate of the flux too.
  std::vector<ProblemSpec> specs;
  for (int const r : {1, 2, 3})
    if (r < 3 || GetParam() < 3) {
      specs.push_back(waves(GetParam(), generator("hyper_ball", r)));
      specs.back().boundary = {
          robin("1", "(2*x*cos(2*x + y) + y*cos(2*x + y) + z*sin(2*x + y))*exp(z)/sqrt(x*x + y*y + z*z) + sin(2*x + y)*exp(z)")};
    }
  expect_rates(specs, 0.45);
}

TEST_P(Order, BallFromFile) {
  std::vector<ProblemSpec> specs;
  MeshSpec mesh;
  mesh.file = (source_dir() / "meshes/ball.msh").string();
  for (int const r : {0, 1}) {
    mesh.refinements = r;
    specs.push_back(waves(GetParam(), mesh));
  }
  expect_rates(specs);
}

TEST(RealMesh, Ball) {
  char const* const folder = std::getenv("POISSON_REAL_DATA");
  if (folder == nullptr)
    GTEST_SKIP() << "POISSON_REAL_DATA is not set";
  MeshSpec mesh;
  mesh.file = std::string(folder) + "/meshes/sphere_r6.msh";
  for (int const order : {1, 2}) {
    std::vector<ProblemSpec> specs;
    for (int const r : {0, 1}) {
      mesh.refinements = r;
      specs.push_back(waves(order, mesh));
    }
    expect_rates(specs);
  }
}

TEST(Patch, LinearSolutionIsExactOnDistortedCells) {
  MeshFile file;
  file.add_block({-1, 0, 2}, {2, 1, 3}, {4, 5, 3}, 0.25);
  for (int order = 1; order <= 4; ++order) {
    auto spec = waves(order, file.spec());
    spec.coefficient = {{-1, {"2", "3", "0.5"}}};
    spec.source = "0";
    spec.exact = "1 + 2*x - 3*y + z/2";
    spec.boundary = {dirichlet(*spec.exact)};
    auto const errors = solve_and_measure(spec);
    EXPECT_LT(errors.linf, 1e-11) << order;
    EXPECT_LT(errors.h1_seminorm, 1e-10) << order;
  }
}

TEST(Patch, PolynomialsOfTheElementsDegreeAreExactOnBoxes) {
  for (int order = 1; order <= 8; ++order) {
    auto const p = std::to_string(order), q = std::to_string(order - 1);
    auto spec = waves(order, order <= 4 ? box(3, 2, 2, {1, 2, 1.5}) : box(1, 2, 1));
    spec.exact = std::string("x^").append(p) + " - 2*y^" + p + "*z";
    spec.source = order == 1 ? "0"
                             : std::string("-").append(p) + "*" + q + "*(x^" + std::to_string(order - 2) + " - 2*z*y^" +
                                   std::to_string(order - 2) + ")";
    spec.boundary = {dirichlet(*spec.exact)};
    auto const errors = solve_and_measure(spec);
    EXPECT_LT(errors.linf, 1e-10) << order;
    EXPECT_LT(errors.l2, 1e-10) << order;
    EXPECT_LT(errors.h1_seminorm, 1e-9) << order;
  }
}

TEST(Patch, PolynomialsOfTheElementsDegreeAreExactOnGradedBoxes) {
  for (int order = 1; order <= 5; ++order) {
    auto const p = std::to_string(order), q = std::to_string(order - 1);
    auto mesh = box(3, 2, 2, {1, 2, 1.5});
    mesh.growth = {1, 3, 0.5};
    mesh.set_coordinates(0, {-0.5, 0, 0.1, 1});
    auto spec = waves(order, mesh);
    spec.exact = std::string("x^").append(p) + " - 2*y^" + p + "*z";
    spec.source = order == 1 ? "0"
                             : std::string("-").append(p) + "*" + q + "*(x^" + std::to_string(order - 2) + " - 2*z*y^" +
                                   std::to_string(order - 2) + ")";
    spec.boundary = {dirichlet(*spec.exact)};
    auto const errors = solve_and_measure(spec);
    EXPECT_LT(errors.linf, 1e-10) << order;
    EXPECT_LT(errors.l2, 1e-10) << order;
    EXPECT_LT(errors.h1_seminorm, 1e-9) << order;
  }
}

TEST(Patch, DirichletOverridesNeumannOnSharedEdgesAndTheEarlierEntryWins) {
  // u = 1 on -x, 2 on -y: the shared edge takes the entry that comes first.
  for (bool const swapped : {false, true}) {
    ProblemSpec spec;
    spec.mesh = box(2, 2, 2);
    auto const a = dirichlet("1", {0}), b = dirichlet("2", {2});
    spec.boundary = {neumann("5", {1, 3, 4, 5}), swapped ? b : a, swapped ? a : b};
    Discretization discretization(spec);
    auto const system = discretization.assemble();
    EXPECT_EQ(system.constraints.value(0), swapped ? 2 : 1);
    EXPECT_EQ(system.rhs[0], 0);
    EXPECT_EQ(system.constraints.value(3), 1);  // on -x only
    EXPECT_EQ(system.constraints.value(1), 2);  // on -y only
    EXPECT_EQ(system.matrix.row_ptr[1] - system.matrix.row_ptr[0], 1);
  }
}

}  // namespace
}  // namespace poisson::assembly
