/// What gpu/elements assembles on boxes against the assembly into CSR, entry by entry, and what it computes of a solution against
/// what this layer computes: equal and graded cells, values by material and functions of a place.
#include "gpu/core/box_problem.hpp"

#include "assembly/discretization.hpp"
#include "gpu/core/error.hpp"
#include "gpu/elements/box_solution.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "tests/convergence/support.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace poisson::assembly {
namespace {

using namespace test;

void expect_equal(ProblemSpec const& spec, bool on_host) {
  Discretization discretization(spec);
  LinearSystem const expected = discretization.assemble();
  auto const problem = discretization.box_problem();
  ASSERT_TRUE(problem);
  EXPECT_TRUE(discretization.summary().box_for_elements);
  EXPECT_EQ(problem->coefficient_on_host || problem->source_on_host, on_host);
  auto const context = make_context(Backend::cpu);
  BoxSystem system(*context, *problem);
  CsrMatrix const matrix = system.matrix().to_csr();
  ASSERT_EQ(matrix.row_ptr, expected.matrix.row_ptr);
  ASSERT_EQ(matrix.columns, expected.matrix.columns);
  for (std::int64_t i = 0; i < matrix.n_rows; ++i) {
    double largest = 0;
    for (auto a = matrix.row_ptr[i]; a < matrix.row_ptr[i + 1]; ++a)
      largest = std::max(largest, std::abs(expected.matrix.values[a]));
    for (auto a = matrix.row_ptr[i]; a < matrix.row_ptr[i + 1]; ++a)
      ASSERT_NEAR(matrix.values[a], expected.matrix.values[a], 1e-14 * largest) << "row " << i;
  }
  HostVector<double> const rhs = system.take_rhs().take_host();
  double scale = 0;
  for (double const b : expected.rhs)
    scale = std::max(scale, std::abs(b));
  for (std::int64_t i = 0; i < matrix.n_rows; ++i)
    ASSERT_NEAR(rhs[i], expected.rhs[i], 1e-13 * scale) << "row " << i;
  HostVector<double> x(rhs.size(), 0.0), y(rhs.size(), 0.0);
  system.set_dirichlet(x);
  expected.constraints.expand(y);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], 1e-14 * (1 + std::abs(y[i])));
  EXPECT_EQ(system.pure_neumann(), expected.pure_neumann);
  EXPECT_NEAR(system.source().sum, expected.integral_f, 1e-12 * (1 + system.source().absolute));
}

std::vector<MeshSpec> meshes() {
  MeshSpec graded = box(12, 5, 6, {1, 2, 1.5});
  graded.growth = {1.2, 1, 0.7};
  graded.set_coordinates(1, {0, 0.1, 0.5, 1, 1.5, 2});
  return {box(12, 5, 6, {1, 2, 1.5}), graded};
}

ProblemSpec problem_on(MeshSpec const& mesh) {
  ProblemSpec spec;
  spec.mesh = mesh;
  spec.coefficient = {{-1, {"2 + sin(x + y)"}}};
  spec.source = "1 + x - 2*y*z";
  spec.boundary = {dirichlet("1 + x*y - z", {0}), robin("1 + x", "y", {1, 2}), neumann("x*y", {3, 4}), dirichlet("1 + x", {5})};
  return spec;
}

TEST(BoxProblem, IsTheAssembledSystem) {
  for (MeshSpec const& mesh : meshes()) {
    ProblemSpec spec = problem_on(mesh);
    expect_equal(spec, false);
    spec.coefficient = {{-1, {"1", "2 + z", "0.5"}}};
    expect_equal(spec, false);
    spec.source = "2";
    spec.coefficient = {{-1, {"3"}}};
    expect_equal(spec, false);
  }
}

TEST(BoxProblem, ValuesByMaterial) {
  for (MeshSpec mesh : meshes()) {
    mesh.regions = {{"die", "z < 0.5"}, {"core", "x > 0.4 && y < 1"}};
    ProblemSpec spec = problem_on(mesh);
    expect_equal(spec, false);  // no value depends on the material
    spec.coefficient = {{-1, {"2 + x"}}};
    spec.coefficient_of_name = {{"die", {"100"}}, {"core", {"1", "2 + y", "3"}}};
    expect_equal(spec, true);
    spec.source_of_name = {{"core", "5*x"}};
    expect_equal(spec, true);
    spec.coefficient_of_name.clear();
    spec.source = "0";
    spec.source_of_name = {{"die", "3"}};
    expect_equal(spec, true);
    spec.boundary = {neumann("x - 0.5")};  // alone: the sources are made compatible
    spec.source_of_name = {{"die", "1e-3*(z - 0.2)"}, {"core", "-1e-5"}};
    EXPECT_NO_THROW(expect_equal(spec, true));
  }
}

CoefficientExpressions along_frame(std::initializer_list<std::string> principal) {
  CoefficientExpressions k(principal);
  k.frame = "bedding";
  return k;
}

TEST(BoxProblem, FullTensors) {
  CoefficientExpressions const six{"3", "2 + x", "4", "0.5", "-0.3*y", "0.2"}, turned = along_frame({"x > 0.4 ? 5 : 2", "1", "2"});
  for (MeshSpec mesh : meshes()) {
    ProblemSpec spec = problem_on(mesh);
    spec.frames = {{"bedding", {1, 2, 0.5}, 30}};
    for (CoefficientExpressions const& k : {six, turned, along_frame({"5", "1", "2"}), {"3", "2", "4", "0.5", "-0.3", "0.2"}}) {
      spec.coefficient = {{-1, k}};
      expect_equal(spec, false);
    }
    spec.mesh.regions = {{"die", "z < 0.5"}, {"core", "x > 0.4 && y < 1"}};
    spec.coefficient_of_name = {{"die", {"100"}}, {"core", {"1", "2", "3"}}};
    for (CoefficientExpressions const& k : {six, along_frame({"5", "1", "2"})}) {
      spec.coefficient = {{-1, k}};
      expect_equal(spec, true);
    }
    spec.coefficient_of_name = {{"die", turned}, {"core", six}};
    expect_equal(spec, true);
  }
}

TEST(BoxProblem, FunctionsOfAPlace) {
  for (MeshSpec const& mesh : meshes()) {
    ProblemSpec spec = problem_on(mesh);
    spec.fields["measured"] = [](std::array<double, 3> const& x) { return 1 + x[0] * x[2]; };
    spec.coefficient = {{-1, {"2*measured + y"}}};
    expect_equal(spec, true);
    spec.source = "measured - x";
    expect_equal(spec, true);
    spec.coefficient = {{-1, {"1", "measured", "3"}}};
    spec.source_total = 7;
    expect_equal(spec, true);
    spec.boundary[0].value = "measured";  // on the boundary the code alone counts
    EXPECT_FALSE(Discretization(spec).box_problem());
    EXPECT_FALSE(estimate(spec).mesh.box_for_elements);
  }
}

TEST(BoxProblem, BadValuesAreReportedAsByTheOtherAssembly) {
  ProblemSpec spec = problem_on(meshes()[1]);
  spec.mesh.regions = {{"die", "z < 0.5"}};
  spec.coefficient_of_name = {{"die", {"x - 0.5"}}};
  Discretization discretization(spec);
  auto const key_and_words = [](auto const& action) {
    try {
      action();
    } catch (InputError const& error) {
      return error.key() + ": " + std::string(error.what()).substr(0, 20);
    }
    return std::string();
  };
  auto const context = make_context(Backend::cpu);
  std::string const expected = key_and_words([&] { static_cast<void>(discretization.assemble()); });
  EXPECT_EQ(key_and_words([&] { BoxSystem(*context, *discretization.box_problem()); }), expected);
  EXPECT_TRUE(expected.starts_with("problem.coefficient.die: ")) << expected;
}

TEST(BoxProblem, OfOrderTwoAndWithNamedSidesItIsNone) {
  ProblemSpec spec = problem_on(meshes()[0]);
  spec.order = 2;
  EXPECT_FALSE(Discretization(spec).box_problem());
  spec.order = 1;
  spec.mesh.boundaries = {{"spot", "z > 1.4 && x < 0.3"}};
  spec.boundary = {dirichlet("0")};
  EXPECT_FALSE(Discretization(spec).box_problem());
}

std::vector<double> values_at_nodes(std::int64_t n) {
  std::vector<double> u;
  for (std::int64_t i = 0; i < n; ++i)
    u.push_back(std::sin(0.37 * static_cast<double>(i * i % 1013)));
  return u;
}

/// Values at the nodes of a box, which both layers are asked about.
struct BoxWithValues {
  explicit BoxWithValues(ProblemSpec const& spec)
      : discretization(spec),
        context(make_context(Backend::cpu)),
        solution(*context, discretization.box_problem().value()),
        u(values_at_nodes(discretization.summary().dofs)) {}
  Discretization discretization;
  std::unique_ptr<Context> context;
  BoxSolution solution;
  std::vector<double> u;
};

void expect_equal_quantities(ProblemSpec const& spec) {
  BoxWithValues const box(spec);
  auto const& [discretization, context, solution, u] = box;
  Quantities const expected = discretization.quantities(u);
  auto const integrals = solution.integrals(u.data());
  EXPECT_NEAR(integrals.u, expected.integral_u, 1e-14);
  EXPECT_NEAR(0.5 * integrals.gradients, expected.energy, 1e-13 * expected.energy);
  EXPECT_NEAR(integrals.u / integrals.volume, expected.mean, 1e-14);
  ValueRange const range = solution.range(u.data());
  EXPECT_EQ(range.min, expected.min);
  EXPECT_EQ(range.max, expected.max);
  ExtremeNodes const places = solution.first_places(u.data(), expected.most_low(), expected.least_high());
  auto const points = nodes_of(discretization).points;
  for (std::size_t d = 0; d < 3; ++d) {
    EXPECT_EQ(points[3 * static_cast<std::size_t>(places.low) + d], expected.min_at[d]);
    EXPECT_EQ(points[3 * static_cast<std::size_t>(places.high) + d], expected.max_at[d]);
  }
}

TEST(BoxProblem, HasTheQuantitiesOfThisLayer) {
  for (MeshSpec mesh : meshes()) {
    expect_equal_quantities(problem_on(mesh));
    ProblemSpec spec = problem_on(mesh);
    spec.coefficient = {{-1, {"1", "2 + z", "0.5"}}};
    expect_equal_quantities(spec);
    spec.coefficient = {{-1, {"3"}}};
    expect_equal_quantities(spec);
    spec.fields["measured"] = [](std::array<double, 3> const& x) { return 1 + x[0] * x[2]; };
    spec.coefficient = {{-1, {"1", "measured", "3"}}};
    expect_equal_quantities(spec);
    mesh.regions = {{"die", "z < 0.5"}, {"core", "x > 0.4 && y < 1"}};
    spec = problem_on(mesh);
    spec.coefficient_of_name = {{"die", {"100"}}, {"core", {"1", "2 + y", "3"}}};
    expect_equal_quantities(spec);
  }
}

TEST(BoxProblem, HasTheErrorsOfThisLayer) {
  for (MeshSpec const& mesh : meshes()) {
    ProblemSpec spec = problem_on(mesh);
    spec.exact = "sin(3*x)*cos(y)*exp(z) + 0.5";
    BoxWithValues const box(spec);
    auto const& [discretization, context, solution, u] = box;
    auto const [exact, points] = discretization.exact_code().value();
    ErrorNorms const expected = discretization.errors(u);
    auto const found = solution.errors(u.data(), exact, 0, points);
    EXPECT_NEAR(std::sqrt(found.squares), expected.l2, 1e-13 * expected.l2);
    EXPECT_NEAR(std::sqrt(found.squares_of_gradients), expected.h1_seminorm, 1e-12 * expected.h1_seminorm);
    EXPECT_NEAR(found.largest, expected.linf, 1e-13 * expected.linf);
    ExactMean const mean = discretization.mean_of_exact();
    auto const of_exact = solution.mean_of_exact(exact, points);
    EXPECT_NEAR(of_exact.integral, mean.integral, 1e-13);
    EXPECT_NEAR(of_exact.volume, mean.volume, 1e-13);
  }
}

TEST(BoxProblem, AnExactSolutionThatIsNotFiniteIsToldInTheSameWords) {
  ProblemSpec spec = problem_on(meshes()[1]);
  spec.exact = "sqrt(0.7 - x)";
  BoxWithValues const box(spec);
  auto const& [discretization, context, solution, u] = box;
  auto const message_of = [](auto const& call) {
    try {
      call();
    } catch (InputError const& error) {
      return error.key() + ": " + error.what();
    }
    return std::string();
  };
  std::string const expected = message_of([&] { static_cast<void>(discretization.errors(u)); });
  EXPECT_NE(expected, "");
  EXPECT_EQ(message_of([&] {
              try {
                auto const [exact, points] = discretization.exact_code().value();
                static_cast<void>(solution.errors(u.data(), exact, 0, points));
              } catch (DataError const& error) {
                discretization.refuse(error);
              }
            }),
            expected);
}

}  // namespace
}  // namespace poisson::assembly
