#include "gpu/core/lattice_problem.hpp"

#include "assembly/discretization.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/space/space_partition.hpp"
#include "gpu/core/error.hpp"
#include "gpu/elements/lattice_solution.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "tests/convergence/support.hpp"
#include "tests/source_dir.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

/// What gpu/elements assembles on lattices against the assembly into CSR, entry by entry.
namespace poisson::assembly {
namespace {

using namespace test;

void expect_equal(ProblemSpec const& spec, Format format = Format::half_cds) {
  Discretization discretization(spec);
  LinearSystem const expected = discretization.assemble();
  LatticeProblem const problem = discretization.lattice_problem();
  auto const context = make_context(Backend::cpu);
  LatticeSystem system(*context, problem, format);
  CsrMatrix const matrix = system.matrix().to_csr();
  ASSERT_EQ(matrix.n_rows, expected.matrix.n_rows);
  ASSERT_EQ(matrix.row_ptr, expected.matrix.row_ptr);
  ASSERT_EQ(matrix.columns, expected.matrix.columns);
  EXPECT_EQ(system.nnz(), expected.matrix.nnz());
  double const tolerance = spec.order == 1 ? 1e-14 : 1e-13;  // higher orders have longer sums
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < matrix.n_rows; ++i) {
    double largest = 0;
    for (auto a = matrix.row_ptr[i]; a < matrix.row_ptr[i + 1]; ++a)
      largest = std::max(largest, std::abs(expected.matrix.values[a]));
    for (auto a = matrix.row_ptr[i]; a < matrix.row_ptr[i + 1]; ++a)
      wrong += std::abs(matrix.values[a] - expected.matrix.values[a]) > tolerance * largest;
  }
  EXPECT_EQ(wrong, 0);
  HostVector<double> const rhs = system.take_rhs().take_host();
  double scale = 0;
  for (double const b : expected.rhs)
    scale = std::max(scale, std::abs(b));
  for (std::int64_t i = 0; i < matrix.n_rows; ++i)
    ASSERT_NEAR(rhs[i], expected.rhs[i], 1e-13 * scale) << "row " << i;
  HostVector<double> x(rhs.size(), 0.0), y(rhs.size(), 0.0);
  system.set_dirichlet(x);
  expected.constraints.expand(y);
  EXPECT_EQ(x, y);
  EXPECT_EQ(system.pure_neumann(), expected.pure_neumann);
  EXPECT_NEAR(system.source().sum, expected.integral_f, 1e-12 * (1 + system.source().absolute));
}

ProblemSpec problem_on_lattices(MeshSpec const& mesh) {
  ProblemSpec spec;
  spec.mesh = mesh;
  spec.coefficient = {{-1, {"2 + sin(x + y)"}}};
  spec.source = "1 + x - 2*y*z";
  spec.boundary = {dirichlet("1 + x*y - z")};
  return spec;
}

TEST(LatticeProblem, IsTheAssembledSystemOnEveryGenerator) {
  for (std::string const& name : generator_names()) {
    if (name == "box")
      continue;
    for (int const refinements : {2, 3}) {
      SCOPED_TRACE(name + " refined " + std::to_string(refinements) + " times");
      ProblemSpec spec = problem_on_lattices(generator(name, refinements));
      if (estimate(spec).mesh.cells > 20000)
        continue;
      expect_equal(spec);
    }
  }
}

TEST(LatticeProblem, ConditionsOfAllTypesAndFilesWithMaterials) {
  ProblemSpec shell = problem_on_lattices(generator("hyper_shell", 3, "0, 0, 0 : 0.5 : 1 : 6 : true"));
  shell.coefficient = {{-1, {"1 + x*x", "2", "3 + sin(z)"}}};
  shell.boundary = {dirichlet("y + z", {0}), robin("1 + x*x", "y", {1})};
  expect_equal(shell);
  ProblemSpec cube = problem_on_lattices(generator("hyper_cube", 2, "0 : 1 : true"));
  cube.boundary = {dirichlet("y", {0}), robin("x", "y", {1, 2}), neumann("x*y", {3, 4}), dirichlet("1 + x", {5})};
  expect_equal(cube);
  cube.source = "0";
  cube.boundary = {neumann("x - 0.5")};  // alone: determined up to a constant
  expect_equal(cube);
  int files = 0;
  for (auto const& file : project_meshes()) {
    SCOPED_TRACE(file.string());
    MeshSpec mesh;
    mesh.file = file.string();
    mesh.refinements = 2;
    ProblemSpec spec = problem_on_lattices(mesh);
    if (estimate(spec).mesh.cells > 40000)
      continue;
    int factor = 1;
    for (unsigned const material : estimate(spec).mesh.material_ids)
      spec.coefficient[static_cast<int>(material)] = {std::to_string(factor++) + " + x*x"};
    spec.boundary = {robin("1 + x*x", "y")};
    expect_equal(spec);
    for (unsigned const material : estimate(spec).mesh.material_ids)
      spec.source_of_material[static_cast<int>(material)] = std::to_string(factor++) + " - x*y";
    expect_equal(spec);
    ++files;
  }
  EXPECT_GE(files, 1);
}

TEST(LatticeProblem, FullTensors) {
  CoefficientExpressions turned{"1 + x*x", "2", "x > 0.1 ? 3 : 4"};
  turned.frame = "bedding";
  for (std::string const name : {"hyper_ball", "hyper_shell"})
    for (CoefficientExpressions const& k : {turned, {"3", "2 + x*x", "4", "0.5", "-0.3*y", "0.2"}}) {
      ProblemSpec spec = problem_on_lattices(generator(name, 2));
      spec.frames = {{"bedding", {1, 2, 0.5}, 30}};
      spec.coefficient = {{-1, k}};
      expect_equal(spec);
      spec.mesh.refinements = 1;
      for (spec.order = 1; spec.order <= 2; ++spec.order)
        expect_equal(spec, Format::matrix_free);
    }
}

TEST(LatticeProblem, MatrixFreeOnEveryGeneratorInEveryOrder) {
  for (std::string const& name : generator_names())
    for (int order = 1; order <= 4; ++order)
      for (int refinements = 0; refinements <= 2; ++refinements) {
        SCOPED_TRACE(name + " refined " + std::to_string(refinements) + " times, order " + std::to_string(order));
        ProblemSpec spec = problem_on_lattices(name == "box" ? box(3, 2, 1) : generator(name, refinements));
        spec.mesh.refinements = refinements;
        spec.order = order;
        if (estimate(spec).mesh.dofs <= 6000)
          expect_equal(spec, Format::matrix_free);
      }
}

TEST(LatticeProblem, MatrixFreeOnBoxesWithConditionsOfAllTypes) {
  ProblemSpec spec = problem_on_lattices(box(5, 1, 7));
  spec.boundary = {dirichlet("y", {0}), robin("x", "y", {1, 2}), neumann("x*y", {3, 4}), dirichlet("1 + x", {5})};
  for (spec.order = 1; spec.order <= 4; ++spec.order)
    expect_equal(spec, Format::matrix_free);
  spec.order = 2;
  spec.source = "0";
  spec.boundary = {neumann("x - 0.5")};  // alone: determined up to a constant
  expect_equal(spec, Format::matrix_free);
}

TEST(LatticeProblem, MatrixFreeOnFilesWithMaterials) {
  for (auto const& file : project_meshes()) {
    SCOPED_TRACE(file.string());
    MeshSpec mesh;
    mesh.file = file.string();
    ProblemSpec spec = problem_on_lattices(mesh);
    int factor = 1;
    for (unsigned const material : estimate(spec).mesh.material_ids)
      spec.coefficient[static_cast<int>(material)] = {std::to_string(factor++) + " + x*x"};
    spec.boundary = {robin("1 + x*x", "y")};
    for (spec.order = 1; spec.order <= 2; ++spec.order)
      if (estimate(spec).mesh.dofs < 20000)
        expect_equal(spec, Format::matrix_free);
  }
}

/// The message names the place and the value, and is that of the assembly into CSR.
TEST(LatticeProblem, BadDataAreReportedInTheSameWords) {
  ProblemSpec spec = problem_on_lattices(generator("hyper_ball", 2));
  spec.coefficient = {{-1, {"z - 0.9"}}};
  Discretization discretization(spec);
  std::string expected, found;
  try {
    static_cast<void>(discretization.assemble());
  } catch (InputError const& error) {
    expected = error.what();
  }
  auto const context = make_context(Backend::cpu);
  try {
    LatticeSystem const system(*context, discretization.lattice_problem());
  } catch (DataError const& bad) {
    try {
      discretization.refuse(bad);
    } catch (InputError const& error) {
      found = error.what();
    }
  }
  ASSERT_NE(expected, "");
  auto const words = [](std::string text) {
    std::erase_if(text, [](char c) { return std::string("0123456789.e-+").find(c) != std::string::npos; });
    return text;
  };
  EXPECT_EQ(words(found), words(expected));
}

std::vector<double> numbers_at_nodes(std::int64_t n) {
  std::vector<double> u;
  for (std::int64_t i = 0; i < n; ++i)
    u.push_back(std::sin(0.37 * static_cast<double>(i * i % 1013)));
  return u;
}

/// What the backend is asked of a solution, beside what the loops here answer.
void expect_equal_answers(ProblemSpec spec) {
  spec.exact = "sin(3*x)*cos(y)*exp(z) + 0.5";
  Discretization const discretization(spec);
  auto const context = make_context(Backend::cpu);
  LatticeSolution const solution(*context, discretization.lattice_geometry());
  std::vector<double> const u = numbers_at_nodes(discretization.summary().dofs);
  Quantities const expected = discretization.quantities(u);
  auto const found = solution.of_materials(u.data());
  ASSERT_EQ(found.size(), expected.materials.size());
  auto material = expected.materials.begin();
  for (ElementSolution::OfMaterial const& of : found) {
    EXPECT_EQ(of.min, material->second.min);
    EXPECT_EQ(of.max, material->second.max);
    double const volume = expected.volumes.at(material->first);
    EXPECT_NEAR(of.volume, volume, 1e-13 * volume);
    EXPECT_NEAR(of.u, material->second.integral_u, 1e-13 * volume);
    EXPECT_NEAR(0.5 * of.gradients, material->second.energy, 1e-12 * material->second.energy);
    ++material;
  }
  ExtremeNodes const places = solution.first_places(u.data(), expected.most_low(), expected.least_high());
  EXPECT_EQ(discretization.point(places.low), expected.min_at);
  EXPECT_EQ(discretization.point(places.high), expected.max_at);
  auto const [exact, points] = discretization.exact_code().value();
  ErrorNorms const norms = discretization.errors(u);
  auto const errors = solution.errors(u.data(), exact, 0, points);
  EXPECT_NEAR(std::sqrt(errors.squares), norms.l2, 1e-13 * norms.l2);
  EXPECT_NEAR(std::sqrt(errors.squares_of_gradients), norms.h1_seminorm, 1e-12 * norms.h1_seminorm);
  EXPECT_NEAR(errors.largest, norms.linf, 1e-13 * norms.linf);
  ExactMean const mean = discretization.mean_of_exact();
  auto const of_exact = solution.mean_of_exact(exact, points);
  EXPECT_NEAR(of_exact.integral, mean.integral, 1e-12 * mean.volume);
  EXPECT_NEAR(of_exact.volume, mean.volume, 1e-12 * mean.volume);  // long sums here, one cell after the other
}

TEST(LatticeProblem, ASolutionHasTheQuantitiesAndErrorsOfThisLayer) {
  for (std::string const& name : generator_names())
    for (auto const& [order, refinements] : {std::pair{1, 2}, {2, 2}, {3, 0}, {4, 0}}) {
      if (name == "box")
        continue;
      SCOPED_TRACE(name + " refined " + std::to_string(refinements) + " times, order " + std::to_string(order));
      ProblemSpec spec = problem_on_lattices(generator(name, refinements));
      spec.order = order;
      if (order == 2)
        spec.coefficient = {{-1, {"1 + x*x", "2", "3 + sin(z)"}}};
      else if (order == 4)
        spec.coefficient = {{-1, {"3", "2 + x*x", "4", "0.5", "-0.3*y", "0.2"}}};
      if (estimate(spec).mesh.dofs <= 2000)
        expect_equal_answers(spec);
    }
}

TEST(LatticeProblem, ASolutionHasTheQuantitiesOfItsMaterials) {
  MeshFile file;
  file.add_block({0, 0, 0}, {2, 1, 1}, {4, 2, 2}, 0.1, [](double x, double y, double) { return x < 1 ? 2 : y < 0.5 ? 1 : 5; });
  ProblemSpec spec = problem_on_lattices(file.spec());
  spec.coefficient = {{1, {"2"}}, {2, {"1 + x"}}, {5, {"1", "2 + y", "3"}}};
  for (spec.order = 1; spec.order <= 3; ++spec.order)
    for (spec.mesh.refinements = 0; spec.mesh.refinements <= 2; spec.mesh.refinements += 2)
      if (estimate(spec).mesh.dofs <= 20000)
        expect_equal_answers(spec);
  // Cells of one lattice with several materials.
  ProblemSpec cut = problem_on_lattices(generator("hyper_ball", 2));
  cut.mesh.regions = {{"side", "x > 0.2"}};
  cut.coefficient = {{-1, {"2 + x"}}};
  cut.coefficient_of_name = {{"side", {"5"}}};
  expect_equal_answers(cut);
}

/// As ranks ask: each of its own cells, whose unknowns are among those around its rows.
TEST(LatticeProblem, QuantitiesOfPartsAddUpToThoseOfTheWhole) {
  for (int order = 1; order <= 4; ++order) {
    ProblemSpec spec = problem_on_lattices(generator("hyper_ball", order < 3 ? 1 : 0));
    spec.order = order;
    spec.coefficient = {{-1, {"1 + x*x", "2", "3 + sin(z)"}}};
    spec.source = "x";
    spec.boundary = {dirichlet("y")};
    Discretization const whole(spec);
    std::vector<double> const u = numbers_at_nodes(whole.summary().dofs);
    auto const context = make_context(Backend::cpu);
    auto const expected = LatticeSolution(*context, whole.lattice_geometry()).of_materials(u.data()).front();
    BoundaryFlux const of_boundary = whole.quantities(u).boundaries.begin()->second;
    for (int const ranks : {2, 3}) {
      SCOPED_TRACE("order " + std::to_string(order) + ", " + std::to_string(ranks) + " ranks");
      DividedSpace const divided = whole.divided(ranks);
      ElementSolution::OfMaterial sum;
      double flux_of_parts = 0, area = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        PartOfSpace const part = divided.part(rank);
        Discretization const around(whole, part.around_cells, part.unknowns),
            own(around, places_in(part.around_cells, part.own_cells), part.in_own_cells);
        std::vector<double> u_around;
        for (std::int32_t const unknown : part.unknowns)
          u_around.push_back(u[static_cast<std::size_t>(unknown)]);
        auto const found =
            LatticeSolution(*context, own.lattice_geometry(around, part.in_own_cells)).of_materials(u_around.data()).front();
        sum.volume += found.volume;
        sum.u += found.u;
        sum.gradients += found.gradients;
        sum.min = std::min(sum.min, found.min);
        sum.max = std::max(sum.max, found.max);
        auto const has_row = [&](std::int64_t unknown) { return unknown < part.n_rows; };
        for (auto const& [id, flux] : around.fluxes_near_boundary(values_among(u_around), {}, has_row).boundaries)
          flux_of_parts += flux.flux;
        HostVector<double> u_own;
        for (std::int32_t const place : part.in_own_cells)
          u_own.push_back(u_around[static_cast<std::size_t>(place)]);
        auto const none = [](std::int64_t) { return false; };
        for (auto const& [id, flux] : own.fluxes_near_boundary(values_among(u_own), {}, none).boundaries)
          area += flux.area;
      }
      EXPECT_NEAR(sum.volume, expected.volume, 1e-13 * expected.volume);
      EXPECT_NEAR(sum.u, expected.u, 1e-13 * expected.volume);
      EXPECT_NEAR(sum.gradients, expected.gradients, 1e-12 * expected.gradients);
      EXPECT_EQ(sum.min, expected.min);
      EXPECT_EQ(sum.max, expected.max);
      EXPECT_NEAR(flux_of_parts, of_boundary.flux, 1e-9);
      EXPECT_NEAR(area, of_boundary.area, 1e-12 * of_boundary.area);
    }
  }
}

}  // namespace
}  // namespace poisson::assembly
