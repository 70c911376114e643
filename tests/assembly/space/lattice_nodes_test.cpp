#include "assembly/space/lattice_nodes.hpp"

#include "assembly/discretization.hpp"
#include "gpu/elements/lattice_nodes.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/elements/order_one.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// A mesh of lattices without the nodes inside of them against one that has all.
namespace poisson::assembly {
namespace {

ProblemSpec ball_of_lattices(int refinements, int order) {
  ProblemSpec spec;
  spec.mesh.generator = "hyper_ball";
  spec.mesh.refinements = refinements;
  spec.order = order;
  spec.coefficient = {{-1, {"2 + sin(x + y)"}}};
  spec.source = "1 + x - 2*y*z";
  spec.boundary = {{true, {}, {}, BoundaryType::robin, "y + z", "1 + x*x"}};
  return spec;
}

Discretization alone(ProblemSpec const& spec) {
  return Discretization(spec, AssembledInto::half_cds_on_device_alone);
}

void expect_near(HostVector<double> const& found, HostVector<double> const& expected, std::string const& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-14) << what << " " << i;
}

TEST(LatticeNodes, FollowFromThoseOnFaces) {
  for (std::string const generator : {"hyper_ball", "hyper_cube", "half_hyper_ball"})
    for (int const order : {1, 2, 3, 5})
      for (int const refinements : {2, 3}) {
        ProblemSpec spec = ball_of_lattices(refinements, order);
        spec.mesh.generator = generator;
        std::string const what = generator + ", order " + std::to_string(order);
        LatticeProblem const all = Discretization(spec).lattice_problem(), left = alone(spec).lattice_problem();
        if (generator == "hyper_cube" && !left.make_coordinates)
          continue;  // a box
        ASSERT_FALSE(all.make_coordinates);
        ASSERT_TRUE(left.make_coordinates);
        EXPECT_TRUE(left.coordinates->empty());
        std::int64_t const n = all.layout.n_lattices, of_lattice = std::ssize(*all.coordinates) / n;
        HostVector<double> const made = left.make_coordinates(0, n);
        expect_near(made, *all.coordinates, what);
        std::int64_t const last = std::min<std::int64_t>(n, 2);
        HostVector<double> const two = left.make_coordinates(n - last, last);
        EXPECT_TRUE(std::equal(two.begin(), two.end(), made.end() - last * of_lattice)) << "of some the same bits";
        for (std::size_t i = 0; i < left.rim_load.size(); ++i)
          ASSERT_NEAR(left.rim_load[i], all.rim_load[i], 1e-14) << "from the cells at the boundary";
        for (std::size_t i = 0; i < left.face_mass.size(); ++i)
          ASSERT_NEAR(left.face_mass[i], all.face_mass[i], 1e-14);
      }
}

TEST(LatticeNodes, AreMadeWhereTheyAreUsed) {
  auto const context = make_context(Backend::cpu);
  for (int const order : {1, 2}) {
    ProblemSpec const spec = ball_of_lattices(3, order);
    Array<double> nodes;
    Discretization const filled(CheckedProblem(spec), AssembledInto::half_cds_on_device_alone,
                                [&](LatticesToFill const& lattices, std::span<double> of_sides) {
                                  EXPECT_EQ(lattices.sides.size(), 6U) << "those on the boundary of a ball";
                                  nodes = make_lattice_nodes(*context, lattices, of_sides);
                                  return true;
                                });
    LatticeProblem const problem = filled.lattice_problem();
    HostVector<double> given(static_cast<std::size_t>(nodes.size()));
    nodes.download(std::span<double>(given));
    ASSERT_EQ(given, problem.make_coordinates(0, problem.layout.n_lattices)) << "copies of a node included";
    std::vector<double> u(static_cast<std::size_t>(filled.summary().dofs));
    for (std::size_t i = 0; i < u.size(); ++i)
      u[i] = static_cast<double>(i * i % 101);
    auto const of = [&](Discretization const& mesh) {
      auto const values = [&](std::span<std::int32_t const> unknowns) {
        HostVector<double> result;
        for (std::int32_t const unknown : unknowns)
          result.push_back(u[static_cast<std::size_t>(unknown)]);
        return result;
      };
      return mesh.fluxes_near_boundary(values, {}).boundaries.at(0).integral_u;
    };
    double const without_device = of(alone(spec));
    EXPECT_EQ(of(filled), without_device) << "sides of lattices";
    EXPECT_NEAR(without_device, of(Discretization(spec)), 1e-12);
    LatticeSystem with(*context, problem, Format::matrix_free, true, std::move(nodes)),
        without(*context, problem, Format::matrix_free);
    EXPECT_EQ(with.matrix().to_csr().values, without.matrix().to_csr().values);
    Array<double> const kept = with.take_coordinates();
    EXPECT_EQ(kept.size(), std::ssize(given));
    LoweredProblem const lowered(problem);
    EXPECT_EQ(make_order_one(*context, lowered, kept).matrix->to_csr().values,
              make_order_one(*context, lowered).matrix->to_csr().values);
  }
  Discretization(CheckedProblem(ball_of_lattices(2, 1)), AssembledInto::half_cds_on_host, [](auto const&...) {
    ADD_FAILURE() << "they stay in memory";
    return true;
  });
  Discretization const without_memory(CheckedProblem(ball_of_lattices(2, 2)), AssembledInto::half_cds_on_device_alone,
                                      [](auto const&...) { return false; });
  EXPECT_EQ(without_memory.point(0), alone(ball_of_lattices(2, 2)).point(0));
}

TEST(LatticeNodes, AreWhereTheyWere) {
  ProblemSpec const spec = ball_of_lattices(3, 2);
  Discretization const all(spec), left = alone(spec);
  auto const expect_same = [](std::array<double, 3> const& found, std::array<double, 3> const& expected) {
    for (std::size_t d = 0; d < 3; ++d)
      ASSERT_NEAR(found[d], expected[d], 1e-15);
  };
  expect_same(left.extent().low, all.extent().low);
  expect_same(left.extent().high, all.extent().high);
  std::int64_t const n = all.summary().dofs;
  for (std::int64_t const unknown : {std::int64_t{0}, n / 3, n - 1})  // few: inside of lattices, and on rims
    expect_same(left.point(unknown), all.point(unknown));
  for (std::int64_t unknown = 0; unknown < n; ++unknown)  // more, for which all nodes are made
    expect_same(left.point(unknown), all.point(unknown));
  std::vector<double> u(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = static_cast<double>(i * i % 101);
  double const energy = all.quantities(u).materials.at(0).energy;
  EXPECT_NEAR(left.quantities(u).materials.at(0).energy, energy, 1e-13 * energy);
}

TEST(LatticeNodes, GiveTheSameSystemsOfBothOrders) {
  auto const context = make_context(Backend::cpu);
  for (int const order : {1, 2}) {
    ProblemSpec const spec = ball_of_lattices(3, order);
    LatticeProblem const all = Discretization(spec).lattice_problem(), left = alone(spec).lattice_problem();
    Format const format = order == 1 ? Format::half_cds : Format::matrix_free;
    LatticeSystem of_all(*context, all, format), of_left(*context, left, format);
    CsrMatrix const expected = of_all.matrix().to_csr(), found = of_left.matrix().to_csr();
    EXPECT_EQ(found.columns, expected.columns);
    expect_near(found.values, expected.values, "matrix");
    expect_near(of_left.take_rhs().take_host(), of_all.take_rhs().take_host(), "right-hand side");
    expect_near(make_order_one(*context, LoweredProblem(left)).matrix->to_csr().values,
                make_order_one(*context, LoweredProblem(all)).matrix->to_csr().values, "of order 1");
  }
}

TEST(LatticeNodes, StayWhereTheyCostMuch) {
  // The cells of a shell are curved inside: their nodes are not made twice.
  ProblemSpec spec = ball_of_lattices(2, 1);
  spec.mesh.generator = "hyper_shell";
  spec.mesh.arguments = "0, 0, 0 : 0.5 : 1 : 6";
  LatticeProblem const problem = alone(spec).lattice_problem();
  EXPECT_FALSE(problem.make_coordinates);
  EXPECT_FALSE(problem.coordinates->empty());
}

TEST(LatticeNodes, TakeLessMemoryAsTheEstimateSays) {
  CheckedProblem const problem(ball_of_lattices(6, 1));
  auto const with = problem.estimate(AssembledInto::half_cds_on_device).memory,
             without = problem.estimate(AssembledInto::half_cds_on_device_alone).memory;
  LatticeLayout const layout = problem.estimate(AssembledInto::half_cds_on_device_alone).layout;
  EXPECT_EQ(with.space - without.space, 24 * 7 * 65 * 65 * 65 - LatticeNodes::bytes_kept(layout, 6));
  EXPECT_EQ(with.at_once, 0);
  EXPECT_EQ(without.at_once, 7 * 6 * 24 * 65 * 65) << "faces of lattices";
  EXPECT_EQ(problem.estimate(AssembledInto::csr).memory.space, with.space);
}

}  // namespace
}  // namespace poisson::assembly
