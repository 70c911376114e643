/// Meshes that are refined locally: hanging nodes, what is made of them, and estimates of errors.
#include "assembly/dealii/mesh.hpp"
#include "assembly/discretization.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/error_estimate.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "tests/assembly/local_meshes.hpp"
#include "tests/convergence/support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/fe_tools.h>
#include <deal.II/lac/affine_constraints.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <numbers>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

using namespace test;

double largest_difference(Discretization const& discretization, std::vector<double> const& u, auto const& exact) {
  double largest = 0;
  for (std::size_t i = 0; i < u.size(); ++i)
    largest = std::max(largest, std::abs(u[i] - exact(discretization.point(static_cast<std::int64_t>(i)))));
  return largest;
}

/// One of two cells is refined: its 4 cells at the other one have 9 nodes there, of which 5 hang.
TEST(LocalRefinement, TwoCellsByHand) {
  ProblemSpec spec = problem_with_levels(flat_box({2, 1, 1}), 1);
  add_cycle(spec, {{1}, {}});
  Discretization const discretization(spec);
  EXPECT_EQ(discretization.summary().cells, 9);
  EXPECT_EQ(discretization.summary().dofs, 4 + 27);
  Constraints const& hanging = discretization.hanging_nodes();
  int edges = 0, faces = 0;
  for (std::int64_t i = 0; i < hanging.size(); ++i) {
    if (!hanging.constrained(i))
      continue;
    auto const x = discretization.point(i);
    EXPECT_EQ(x[0], 0.5);
    std::array<double, 3> sum{};
    for (auto const& [free, weight] : hanging.row(i)) {
      EXPECT_DOUBLE_EQ(weight, 1. / static_cast<double>(hanging.row(i).size()));
      auto const y = discretization.point(free);
      for (std::size_t d = 0; d < 3; ++d)
        sum[d] += weight * y[d];
    }
    EXPECT_EQ(sum, x);
    (hanging.row(i).size() == 2 ? edges : faces) += 1;
  }
  EXPECT_EQ(edges, 4);
  EXPECT_EQ(faces, 1);
  auto const& levels = discretization.local_cells().levels;
  EXPECT_EQ(std::count(levels.begin(), levels.end(), 1), 8);
}

/// C, entry by entry, and the number of unknowns that is told before they are numbered.
TEST(LocalRefinement, ConstraintsAreThoseOfDealII) {
  for (int const order : {1, 2, 3, 4}) {
    for (MeshSpec const& mesh : {flat_box({2, 3, 2}), generated("hyper_ball", "0, 0, 0 : 1")}) {
      SCOPED_TRACE(mesh.generator + std::to_string(order));
      ProblemSpec const spec = by_chance(mesh, order, 2);
      CheckedProblem checked(spec);
      std::int64_t const predicted = checked.mesh().dofs;
      Discretization const discretization(std::move(checked));
      Mesh oracle = make_coarse_mesh(spec.mesh);
      refine_mesh(oracle, spec.mesh);
      dealii::FE_Q<3> const fe(order);
      dealii::DoFHandler<3> dof_handler(*oracle.triangulation);
      dof_handler.distribute_dofs(fe);
      dealii::AffineConstraints<double> expected;
      dealii::DoFTools::make_hanging_node_constraints(dof_handler, expected);
      expected.close();
      ASSERT_EQ(static_cast<std::int64_t>(dof_handler.n_dofs()), predicted);
      ASSERT_EQ(discretization.summary().dofs, predicted);
      // By number of deal.II: that here.
      Space const space(oracle, ReferenceElement(order));
      auto const lexicographic = dealii::FETools::hierarchic_to_lexicographic_numbering<3>(static_cast<unsigned>(order));
      std::vector<std::int32_t> cell_of(space.local.active.size()), number(dof_handler.n_dofs(), -1),
          own(static_cast<std::size_t>(space.n_local));
      for (std::size_t c = 0; c < cell_of.size(); ++c)
        cell_of[static_cast<std::size_t>(space.local.active[c])] = static_cast<std::int32_t>(c);
      std::vector<dealii::types::global_dof_index> indices(own.size());
      for (auto const& cell : dof_handler.active_cell_iterators()) {
        space.dofs(cell_of[cell->active_cell_index()], own.data());
        cell->get_dof_indices(indices);
        for (std::size_t i = 0; i < own.size(); ++i)
          number[indices[i]] = own[lexicographic[i]];
      }
      Constraints const& hanging = discretization.hanging_nodes();
      std::size_t n_hanging = 0;
      for (unsigned i = 0; i < dof_handler.n_dofs(); ++i) {
        ASSERT_EQ(hanging.constrained(number[i]), expected.is_constrained(i));
        if (!expected.is_constrained(i))
          continue;
        ++n_hanging;
        std::map<std::int32_t, double> entries;
        for (auto const& [unknown, weight] : *expected.get_constraint_entries(i))
          entries[number[unknown]] += weight;
        ASSERT_EQ(hanging.row(number[i]).size(), entries.size());
        for (auto const& [unknown, weight] : hanging.row(number[i]))
          EXPECT_NEAR(weight, entries.at(unknown), 1e-14);
      }
      EXPECT_GT(n_hanging, 20U);
    }
  }
}

/// -div k grad u = f with a polynomial of the order of the elements, across hanging faces of all patterns and orientations.
TEST(LocalRefinement, PolynomialsAreExact) {
  struct Case {
    int order;
    char const *u, *f;
    double (*exact)(std::array<double, 3> const&);
  };
  for (Case const& of :
       {Case{1, "x + 2*y - 3*z", "0", [](auto const& x) { return x[0] + 2 * x[1] - 3 * x[2]; }},
        Case{2, "x^2 - 2*y*z + z^2 + x", "-4", [](auto const& x) { return x[0] * x[0] - 2 * x[1] * x[2] + x[2] * x[2] + x[0]; }},
        Case{3, "x^3 + x*y*z - z^2", "-6*x + 2",
             [](auto const& x) { return x[0] * x[0] * x[0] + x[0] * x[1] * x[2] - x[2] * x[2]; }},
        Case{4, "x^4 - y^3*z", "-12*x^2 + 6*y*z", [](auto const& x) { return std::pow(x[0], 4) - x[1] * x[1] * x[1] * x[2]; }}})
    for (MeshSpec const& mesh : {flat_box({2, 2, 2}), generated("subdivided_hyper_cube", "2 : -1 : 1")})
      for (unsigned const seed : {1U, 2U}) {
        SCOPED_TRACE(mesh.generator + " of order " + std::to_string(of.order));
        ProblemSpec spec = by_chance(mesh, of.order, of.order < 3 ? 3 : 2, seed);
        spec.source = of.f;
        spec.boundary = {on_all_boundaries(BoundaryType::dirichlet, of.u)};
        Discretization discretization(spec);
        auto const u = solve(discretization);
        EXPECT_LT(largest_difference(discretization, u, of.exact), 1e-10);
        // The estimate of a solution that is exact is rounding.
        for (Estimator const estimator : {Estimator::local_problems, Estimator::residual}) {
          auto const found = discretization.estimate_error(estimator, u).squares;
          EXPECT_LT(std::sqrt(std::accumulate(found.begin(), found.end(), 0.0)), 1e-8);
        }
      }
}

/// Cells in the orientations of a ball, and curved ones of other generators: nodes that hang lie on the larger cell, so that linear
/// functions are in the space.
TEST(LocalRefinement, LinearFunctionsOnTurnedAndCurvedCells) {
  std::vector<std::pair<MeshSpec, int>> meshes;
  for (int const order : {1, 2, 3, 4})
    meshes.emplace_back(generated("hyper_ball", "0, 0, 0 : 1"), order);
  meshes.emplace_back(generated("hyper_shell", "0, 0, 0 : 0.4 : 1 : 6"), 2);
  meshes.emplace_back(generated("cylinder_shell", "1 : 0.4 : 1 : 5 : 1"), 3);
  for (auto const& [mesh, order] : meshes) {
    SCOPED_TRACE(mesh.generator + " of order " + std::to_string(order));
    ProblemSpec spec = by_chance(mesh, order, 2);
    spec.boundary = {on_all_boundaries(BoundaryType::dirichlet, "x + 2*y - 3*z")};
    Discretization discretization(spec);
    auto const u = solve(discretization);
    EXPECT_LT(largest_difference(discretization, u, [](auto const& x) { return x[0] + 2 * x[1] - 3 * x[2]; }), 1e-10);
    auto const found = discretization.estimate_error(Estimator::local_problems, u).squares;
    EXPECT_LT(std::sqrt(std::accumulate(found.begin(), found.end(), 0.0)), 1e-8);
    // No gaps: the gradient is the same everywhere, and the fluxes are those of the closed surface.
    auto const q = discretization.quantities(u);
    double volume = 0;
    for (auto const& [id, part] : q.volumes)
      volume += part;
    EXPECT_NEAR(q.energy, 7 * volume, 1e-9);
  }
}

/// Volume and area that the polynomials of the boundary's faces miss of a sphere, whose radius is 1.
TEST(LocalRefinement, GapsAreWhatTheMeshMissesOfASphere) {
  constexpr double pi = std::numbers::pi;
  for (int const order : {1, 2, 3}) {
    SCOPED_TRACE(order);
    MeshSpec ball = generated("hyper_ball", "0, 0, 0 : 1");
    ball.refinements = 1;
    ProblemSpec spec = by_chance(ball, order, 1);
    Mesh mesh = make_coarse_mesh(spec.mesh);
    refine_mesh(mesh, spec.mesh);
    Space const space(mesh, ReferenceElement(order));
    ASSERT_EQ(space.local.gaps.size(), space.boundary_faces.size());
    double volume = 0, area = 0;
    for (auto const& gap : space.local.gaps) {
      volume += gap.volume;
      area += gap.area;
    }
    spec.boundary = {on_all_boundaries(BoundaryType::dirichlet, "1")};
    Discretization discretization(spec);
    auto const q = discretization.quantities(solve(discretization));
    double missing = 4 * pi / 3, missing_area = 4 * pi;
    for (auto const& [id, part] : q.volumes)
      missing -= part;
    for (auto const& [id, boundary] : q.boundaries)
      missing_area -= boundary.area;
    EXPECT_NEAR(volume, missing, 0.2 * std::abs(missing)) << missing;
    EXPECT_NEAR(area, missing_area, 0.2 * std::abs(missing_area)) << missing_area;
  }
  ProblemSpec const flat = by_chance(flat_box({2, 2, 2}), 2, 2);
  Mesh mesh = make_coarse_mesh(flat.mesh);
  refine_mesh(mesh, flat.mesh);
  EXPECT_TRUE(Space(mesh, ReferenceElement(2)).local.gaps.empty());
}

/// u is 0 on two sides, named by `where`, of an L of three cells that meet in an edge. A larger cell there, between two that are
/// refined, has that edge but none of the sides: the nodes of its edge have that value, too, and u = 0 all along. `then` is called
/// with the solution on each of the three meshes.
template <class IsOnEdge, class Then>
void expect_zero_on_edge_of_larger_cells(MeshSpec const& mesh, int order, std::string const& where, IsOnEdge const& is_on_edge,
                                         Then const& then) {
  ProblemSpec spec = problem_with_levels(mesh, order);
  spec.mesh.boundaries = {{"inner", where}};
  spec.source = "1";
  spec.boundary.clear();
  spec.boundary.push_back({false, {}, {"inner"}, BoundaryType::dirichlet, "0", "0"});
  spec.boundary.push_back(neumann("0.2"));
  for (std::int32_t cell = 0; cell < 3; ++cell) {  // each of the three cells stays large once
    ProblemSpec refined = spec;
    LocalRefinement::Cycle cycle;
    for (std::int32_t other = 0; other < 3; ++other)
      if (other != cell)
        cycle.refine.push_back(other);
    add_cycle(refined, cycle);
    Discretization discretization(refined);
    auto const u = solve(discretization);
    int on_edge = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
      auto const x = discretization.point(static_cast<std::int64_t>(i));
      if (is_on_edge(x)) {
        EXPECT_NEAR(u[i], 0, 1e-14) << "z = " << x[2];
        ++on_edge;
      }
    }
    EXPECT_GE(on_edge, 2 * order + 1);
    then(discretization, u);
  }
}

TEST(LocalRefinement, EdgesOfLargerCellsOnABoundaryHaveItsValues) {
  MeshSpec const mesh = generated("subdivided_hyper_L", "2, 2, 1 : -1, -1, 0 : 1, 1, 1 : 1, 1, 1");
  for (int const order : {1, 2, 3})
    expect_zero_on_edge_of_larger_cells(
        mesh, order, "abs(x*y) < 1e-9 && x <= 1e-9 && y <= 1e-9", [](auto const& x) { return x[0] == 0 && x[1] == 0; },
        [](Discretization const& discretization, auto const& u) {
          auto const q = discretization.quantities(u);
          double sum = 0;
          for (auto const& [id, boundary] : q.boundaries)
            sum += boundary.flux;
          EXPECT_NEAR(sum, discretization.source_integral().sum, 1e-10);
          EXPECT_TRUE(discretization.estimate_error(Estimator::equilibrated, u).is_bound);
        });
}

/// Three cells of an L in a file of Gmsh, with edges along z that are parabolas: (x + z^2 / 10, y + z (1 - z) / 14, z).
std::string curved_l() {
  constexpr std::array<std::array<int, 2>, 12> edges{
      {{0, 1}, {0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {2, 6}, {3, 7}, {4, 5}, {4, 7}, {5, 6}, {6, 7}}};
  constexpr std::array<std::array<int, 2>, 6> faces{{{0, 2}, {0, 5}, {0, 7}, {1, 6}, {2, 7}, {4, 6}}};  // opposite corners
  constexpr std::array<std::array<int, 3>, 8> corners{
      {{0, 0, 0}, {2, 0, 0}, {2, 2, 0}, {0, 2, 0}, {0, 0, 2}, {2, 0, 2}, {2, 2, 2}, {0, 2, 2}}};
  std::ostringstream nodes, cells;
  nodes.precision(17);
  for (int c = 0; c <= 2; ++c)
    for (int b = -2; b <= 2; ++b)
      for (int a = -2; a <= 2; ++a) {
        double const z = c / 2.0;
        nodes << 13 + a + 5 * b + 25 * c << " " << a / 2.0 + z * z / 10 << " " << b / 2.0 + z * (1 - z) / 14 << " " << z << "\n";
      }
  int number = 0;
  for (auto const& [a, b] : {std::array{-2, 0}, std::array{0, 0}, std::array{0, -2}}) {
    cells << ++number << " 12 2 1 1";
    auto const add = [&](int one, int other) {  // the node in the middle of two corners
      auto const &p = corners[static_cast<std::size_t>(one)], &q = corners[static_cast<std::size_t>(other)];
      cells << " " << 13 + a + (p[0] + q[0]) / 2 + 5 * (b + (p[1] + q[1]) / 2) + 25 * ((p[2] + q[2]) / 2);
    };
    for (int corner = 0; corner < 8; ++corner)
      add(corner, corner);
    for (auto const& [one, other] : edges)
      add(one, other);
    for (auto const& [one, other] : faces)
      add(one, other);
    add(0, 6);
    cells << "\n";
  }
  return "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n75\n" + nodes.str() + "$EndNodes\n$Elements\n3\n" + cells.str() +
         "$EndElements\n";
}

/// The same where that edge is curved.
TEST(LocalRefinement, CurvedEdgesOfLargerCellsOnABoundaryHaveItsValues) {
  MeshSpec mesh;
  mesh.file = testing::TempDir() + "curved_l_" + std::to_string(getpid()) + ".msh";
  std::ofstream(mesh.file) << curved_l();
  std::string const x = "(x - z^2/10)", y = "(y - z*(1 - z)/14)",
                    where = "abs(" + x + "*" + y + ") < 0.03 && " + x + " < 0.1 && " + y + " < 0.1";
  for (int const order : {2, 3})
    expect_zero_on_edge_of_larger_cells(
        mesh, order, where,
        [](auto const& at) { return std::hypot(at[0] - at[2] * at[2] / 10, at[1] - at[2] * (1 - at[2]) / 14) < 1e-9; },
        [](Discretization const&, auto const&) {});
  std::remove(mesh.file.c_str());
}

/// Robin, Neumann and Dirichlet values with sources: all fluxes together are the integral of f, also near hanging nodes.
TEST(LocalRefinement, FluxesBalance) {
  for (int const order : {1, 2}) {
    ProblemSpec spec = by_chance(flat_box({2, 2, 2}), order, 3);
    spec.source = "1 + x*y";
    spec.coefficient = {{-1, {"1 + 10*x"}}};
    spec.boundary.clear();
    spec.boundary.resize(3);
    spec.boundary[0] = {false, {0}, {}, BoundaryType::dirichlet, "y", "0"};
    spec.boundary[1] = {false, {1, 2}, {}, BoundaryType::robin, "1", "2 + z"};
    spec.boundary[2] = {true, {}, {}, BoundaryType::neumann, "0.3", "0"};
    Discretization discretization(spec);
    auto const u = solve(discretization);
    auto const q = discretization.quantities(u);
    double sum = 0;
    for (auto const& [id, boundary] : q.boundaries)
      sum += boundary.flux;
    EXPECT_NEAR(sum, discretization.source_integral().sum, 1e-10);
    // From u near the boundary alone the same comes out.
    auto const near = discretization.fluxes_near_boundary(values_among(u), {});
    for (auto const& [id, boundary] : near.boundaries)
      EXPECT_NEAR(boundary.flux, q.boundaries.at(id).flux, 1e-12);
  }
}

TEST(LocalRefinement, FluxOfALinearFunctionIsExact) {
  ProblemSpec spec = by_chance(flat_box({2, 2, 2}), 1, 3);
  spec.coefficient = {{-1, {"2"}}};
  spec.boundary = {on_all_boundaries(BoundaryType::dirichlet, "x + 2*y - 3*z")};
  Discretization discretization(spec);
  auto const u = solve(discretization);
  auto const q = discretization.quantities(u);
  std::map<unsigned, double> const expected{{0, 2}, {1, -2}, {2, 4}, {3, -4}, {4, -6}, {5, 6}};
  for (auto const& [id, flux] : expected)
    EXPECT_NEAR(q.boundaries.at(id).flux, flux, 1e-10) << id;
}

TEST(LocalRefinement, CoarsenedBackItIsTheFirstMesh) {
  ProblemSpec spec = problem_with_levels(flat_box({2, 2, 2}), 1);
  spec.mesh.refinements = 1;
  auto const first = [&] {
    Discretization discretization(spec);
    return discretization.assemble();
  }();
  add_cycle(spec, {{0, 5, 9}, {}});
  EXPECT_EQ(CheckedProblem(spec).mesh().cells, 64 + 3 * 7);
  std::vector<std::int32_t> all(64 + 3 * 7);
  std::iota(all.begin(), all.end(), 0);
  add_cycle(spec, {{}, all});
  add_cycle(spec, {{}, all});  // cells of the first mesh stay
  Discretization discretization(spec);
  auto const last = discretization.assemble();
  EXPECT_EQ(last.matrix.columns, first.matrix.columns);
  EXPECT_EQ(last.matrix.values, first.matrix.values);
}

TEST(LocalRefinement, SameBitsForAnyNumberOfThreads) {
  ProblemSpec const spec = by_chance(flat_box({2, 2, 2}), 2, 2);
  std::vector<HostVector<double>> values, squares;
  int const before = thread_count();
  for (int const threads : {1, 3}) {
    set_thread_count(threads);
    Discretization discretization(spec);
    auto const system = discretization.assemble();
    values.push_back(system.matrix.values);
    HostVector<double> u;
    for (std::int64_t i = 0; i < discretization.summary().dofs; ++i)
      u.push_back(std::sin(static_cast<double>(i)));
    squares.push_back(discretization.estimate_error(Estimator::local_problems, u).squares);
  }
  set_thread_count(before);
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(squares[0], squares[1]);
}

/// u at the nodes of the next mesh, from that on this one: polynomials stay.
TEST(LocalRefinement, SolutionsGoToTheNextMesh) {
  for (int const order : {1, 2, 3}) {
    ProblemSpec spec = by_chance(flat_box({2, 2, 1}), order, 2);
    auto const before = std::make_shared<LocalRefinement>(*spec.mesh.local);
    before->cycles.pop_back();
    ProblemSpec last = spec;
    last.mesh.local = before;
    Discretization const from(last), to(spec);
    auto const f = [&](auto const& x) { return std::pow(x[0], order) - 2 * x[1] + 3 * x[2]; };
    HostVector<double> u;
    for (std::int64_t i = 0; i < from.summary().dofs; ++i)
      u.push_back(f(from.point(i)));
    auto const moved = from.transferred_to(to, u);
    EXPECT_LT(largest_difference(to, {moved.begin(), moved.end()}, f), 1e-13);
  }
}

/// Effectivity: the estimate over the error, where the solution is smooth, has a jump of k, and on meshes with hanging nodes.
TEST(LocalRefinement, EstimateIsNearTheError) {
  struct Case {
    char const *k, *u, *f;
  };
  for (Case const& of : {Case{"1", "sin(2*x)*cos(y)*exp(z)", "4*sin(2*x)*cos(y)*exp(z)"},
                         Case{"x < 0.5 ? 1 : 1000", "(x < 0.5 ? 1 : 0.001)*(x - 0.5)*(x - 0.5)", "-2"},
                         Case{"x < 0.5 ? 1 : 1000", "(x < 0.5 ? 1 : 0.001)*(x - 0.5) + y^2*0", "0"}})
    for (int const order : {1, 2, 3}) {
      SCOPED_TRACE(std::string(of.u) + " of order " + std::to_string(order));
      ProblemSpec spec = problem_with_levels(flat_box({4, 4, 4}), order);
      std::vector<std::int32_t> list;
      for (std::int32_t i = 0; i < 64; i += 5)
        list.push_back(i);
      add_cycle(spec, {list, {}});
      spec.coefficient = {{-1, {of.k}}};
      spec.source = of.f;
      spec.boundary = {on_all_boundaries(BoundaryType::dirichlet, of.u)};
      spec.exact = of.u;
      Discretization discretization(spec);
      auto const u = solve(discretization);
      double const error = discretization.energy_of_error(u);
      auto const found = discretization.estimate_error(Estimator::local_problems, u).squares;
      double const estimate = std::sqrt(std::accumulate(found.begin(), found.end(), 0.0));
      if (error < 1e-9) {
        EXPECT_LT(estimate, 1e-8);
        continue;
      }
      EXPECT_GT(estimate, 0.5 * error);
      EXPECT_LT(estimate, 2 * error);
    }
}

/// Where k is constant on a parallelepiped its matrix is made from those of the reference cell; else at the points of a rule.
TEST(LocalRefinement, EstimateIsTheSameWhereKIsCalledConstant) {
  MeshSpec skew;
  skew.file = testing::TempDir() + "skew_" + std::to_string(getpid()) + ".msh";
  std::ofstream(skew.file) << "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n8\n1 0 0 0\n2 1 0.2 0\n3 1.3 1.2 0.1\n4 0.3 1 0.1\n"
                              "5 0.1 -0.2 0.5\n6 1.1 0 0.5\n7 1.4 1 0.6\n8 0.4 0.8 0.6\n$EndNodes\n$Elements\n1\n"
                              "1 5 2 1 1 1 2 3 4 5 6 7 8\n$EndElements\n";
  skew.refinements = 1;
  MeshSpec graded = flat_box({3, 2, 2});
  graded.growth = {2, 1, 1.5};
  for (MeshSpec const& mesh : {skew, graded})
    for (int const order : {1, 2}) {
      SCOPED_TRACE(mesh.generator + mesh.file + " of order " + std::to_string(order));
      ProblemSpec spec = by_chance(mesh, order, 2);
      spec.source = "1 + x*y";
      spec.boundary = {on_all_boundaries(BoundaryType::robin, "x")};
      spec.boundary[0].alpha = "2";
      LoadOfEstimate load;
      load.of_problem = 1;
      load.in_material[0].density = 0.5;
      std::array<ErrorIndicators, 2> found;
      for (bool const is_constant : {false, true}) {
        std::string const zero = is_constant ? "" : " + 0*x";
        spec.coefficient = {{-1, {"2" + zero, "3" + zero, "4" + zero, "0.5" + zero, "-0.25" + zero, "0.125" + zero}}};
        Discretization discretization(spec);
        HostVector<double> u, dual;
        for (std::int64_t i = 0; i < discretization.summary().dofs; ++i) {
          u.push_back(std::sin(static_cast<double>(i)));
          dual.push_back(std::cos(static_cast<double>(i)));
        }
        found[is_constant ? 1 : 0] = discretization.estimate_error(Estimator::local_problems, u, dual, load);
      }
      ASSERT_EQ(found[0].squares.size(), found[1].squares.size());
      for (std::size_t i = 0; i < found[0].squares.size(); ++i) {
        EXPECT_NEAR(found[1].squares[i], found[0].squares[i], 1e-11 * found[0].squares[i]);
        EXPECT_NEAR(found[1].signed_[i], found[0].signed_[i], 1e-11 * found[0].weights[i]);
        EXPECT_NEAR(found[1].weights[i], found[0].weights[i], 1e-11 * found[0].weights[i]);
      }
    }
  std::remove(skew.file.c_str());
}

/// A mesh that is made from the last one is that which is made from the beginning.
TEST(LocalRefinement, NextMeshesAreMadeFromTheLast) {
  MeshSpec refined = flat_box({2, 1, 1});
  refined.refinements = 1;
  for (MeshSpec const& mesh : {flat_box({3, 2, 2}), refined, generated("hyper_ball", "0, 0, 0 : 1"), generated("hyper_shell")}) {
    SCOPED_TRACE(mesh.generator);
    ProblemSpec spec = by_chance(mesh, 1, 4);
    auto const all = spec.mesh.local->cycles;
    auto const kept = std::make_shared<KeptMesh>();
    for (std::size_t n = 0; n <= all.size(); ++n) {
      LocalRefinement cycles;
      cycles.cycles.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
      spec.mesh.local = std::make_shared<LocalRefinement>(cycles);
      Discretization from_beginning(spec);
      cycles.kept = kept;
      spec.mesh.local = std::make_shared<LocalRefinement>(cycles);
      Mesh const* const last = kept->mesh.get();
      Discretization made(spec);
      ASSERT_TRUE(kept->mesh);
      EXPECT_TRUE(n == 0 || kept->mesh.get() == last);
      EXPECT_EQ(kept->mesh->local_cycles, n);
      ASSERT_EQ(made.summary().dofs, from_beginning.summary().dofs);
      EXPECT_EQ(made.local_cells().active, from_beginning.local_cells().active);
      EXPECT_EQ(made.local_cells().levels, from_beginning.local_cells().levels);
      EXPECT_EQ(made.local_cells().origins.merged, from_beginning.local_cells().origins.merged);
      for (std::int64_t i = 0; i < made.summary().dofs; ++i)
        ASSERT_EQ(made.point(i), from_beginning.point(i)) << i;
      auto const a = made.assemble(), b = from_beginning.assemble();
      EXPECT_EQ(a.matrix.columns, b.matrix.columns);
      EXPECT_EQ(a.matrix.values, b.matrix.values);
    }
    // One with fewer cycles is made from the beginning.
    LocalRefinement cycles;
    cycles.kept = kept;
    spec.mesh.local = std::make_shared<LocalRefinement>(cycles);
    Discretization const first(spec);
    EXPECT_EQ(kept->mesh->local_cycles, 0U);
  }
}

/// Cells on one side of periodic boundaries are marked by chance: those on the other side follow. Polynomials
/// that differ by constants on both sides are exact, and fluxes and estimates know both sides.
TEST(LocalRefinement, PeriodicBoundariesStayAlike) {
  struct Case {
    int order;
    char const *u, *f;
    double (*exact)(std::array<double, 3> const&);
  };
  for (Case const& of : {Case{1, "x + 2*y - 3*z", "0", [](auto const& x) { return x[0] + 2 * x[1] - 3 * x[2]; }},
                         Case{2, "x + 2*y + z^2", "-2", [](auto const& x) { return x[0] + 2 * x[1] + x[2] * x[2]; }},
                         Case{3, "x + 2*y + z^3", "-6*z", [](auto const& x) { return x[0] + 2 * x[1] + std::pow(x[2], 3); }},
                         Case{4, "x + 2*y + z^4", "-12*z^2", [](auto const& x) { return x[0] + 2 * x[1] + std::pow(x[2], 4); }}})
    for (MeshSpec const& mesh :
         {flat_box({2, 3, 2}), generated("subdivided_hyper_rectangle", "2, 3, 2 : 0, 0, 0 : 1, 1, 1 : true")}) {
      SCOPED_TRACE(mesh.generator + " of order " + std::to_string(of.order));
      ProblemSpec spec = problem_with_levels(mesh, of.order);
      spec.source = of.f;
      spec.boundary = {{false, {0, 1}, {}, BoundaryType::periodic, "1", "0"},
                       {false, {2, 3}, {}, BoundaryType::periodic, "2", "0"},
                       on_all_boundaries(BoundaryType::dirichlet, of.u)};
      std::mt19937 numbers(static_cast<unsigned>(of.order));
      int const cycles = of.order == 1 ? 3 : of.order == 2 ? 2 : 1;
      for (int i = 0; i < cycles; ++i) {
        Discretization const before(spec);
        LocalCells const& cells = before.local_cells();
        LocalRefinement::Cycle cycle;
        for (std::int32_t cell = 0; cell < static_cast<std::int32_t>(cells.active.size()); ++cell)
          if (numbers() % 6 == 0)
            cycle.refine.push_back(cell);
          else if (numbers() % 2 == 0)
            cycle.coarsen.push_back(cell);
        for (FaceOfTwoCells const& face : cells.periodic_faces()) {
          auto const at = [&](std::size_t side) { return cells.active[static_cast<std::size_t>(face.cells[side])]; };
          EXPECT_EQ(cells.levels[static_cast<std::size_t>(face.cells[0])], cells.levels[static_cast<std::size_t>(face.cells[1])]);
          cycle.alike.push_back({at(0), at(1)});
        }
        add_cycle(spec, std::move(cycle));
      }
      Discretization discretization(spec);
      auto const& levels = discretization.local_cells().levels;
      EXPECT_GE(*std::max_element(levels.begin(), levels.end()), std::min(cycles, 2));
      auto const u = solve(discretization);
      EXPECT_LT(largest_difference(discretization, u, of.exact), 1e-10);
      for (Estimator const estimator : {Estimator::local_problems, Estimator::residual}) {
        auto const found = discretization.estimate_error(estimator, u).squares;
        EXPECT_LT(std::sqrt(std::accumulate(found.begin(), found.end(), 0.0)), 1e-8);
      }
      auto const q = discretization.quantities(u);
      std::map<unsigned, double> const expected{{0, 1}, {1, -1}, {2, 2}, {3, -2}};
      for (auto const& [id, flux] : expected)
        EXPECT_NEAR(q.boundaries.at(id).flux, flux, 1e-9) << id;
      if (of.order > 1)
        continue;
      // Another jump is another solution.
      spec.boundary[0].value = "2";
      spec.boundary[2].value = std::string("x + ") + of.u;
      Discretization other(spec);
      EXPECT_LT(largest_difference(other, solve(other), [&](auto const& x) { return x[0] + of.exact(x); }), 1e-10);
    }
}

TEST(LocalRefinement, LargestCells) {
  std::vector<double> const values{1, 4, 2, 2, 1};
  EXPECT_EQ(largest_cells(values, 0.4, false), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(largest_cells(values, 0.5, false), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(largest_cells(values, 0.6, true), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(largest_cells(values, 0.2, true), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(largest_cells(std::vector<double>{1, 2, 2 - 1e-8, 1.9}, 0.25, true), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(largest_cells(std::vector<double>{-3, -1, -1 - 1e-8, -2}, 0.25, true), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(largest_cells(std::vector<double>(3, 0.0), 0.5, false), std::vector<std::int32_t>{});
}

}  // namespace
}  // namespace poisson::assembly
