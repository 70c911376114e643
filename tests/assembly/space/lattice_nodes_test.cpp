#include "assembly/space/lattice_nodes.hpp"

#include "assembly/discretization.hpp"
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

TEST(LatticeNodes, AreMadeAgainAsTheyWere) {
  for (int const order : {1, 2, 3})
    for (int const refinements : {2, 3}) {
      ProblemSpec const spec = ball_of_lattices(refinements, order);
      LatticeProblem const all = Discretization(spec).lattice_problem(), left = alone(spec).lattice_problem();
      ASSERT_FALSE(all.make_coordinates);
      ASSERT_TRUE(left.make_coordinates);
      EXPECT_TRUE(left.coordinates->empty());
      std::int64_t const n = all.layout.n_lattices, of_lattice = std::ssize(*all.coordinates) / n;
      EXPECT_EQ(left.make_coordinates(0, n), *all.coordinates) << "copies of a node included";
      HostVector<double> const two = left.make_coordinates(3, 2);
      ASSERT_EQ(std::ssize(two), 2 * of_lattice);
      EXPECT_TRUE(std::equal(two.begin(), two.end(), all.coordinates->begin() + 3 * of_lattice));
      EXPECT_EQ(left.rim_load, all.rim_load) << "from the cells at the boundary";
      EXPECT_EQ(left.face_mass, all.face_mass);
    }
}

TEST(LatticeNodes, GoWhereTheyAreWantedAsTheyAreMade) {
  auto const context = make_context(Backend::cpu);
  for (int const order : {1, 2}) {
    ProblemSpec const spec = ball_of_lattices(6 / order, order);  // of order 1 not all at once
    HostVector<double> given;
    std::vector<std::int64_t> firsts;
    Discretization const left(CheckedProblem(spec), AssembledInto::half_cds_on_device_alone,
                              [&](LatticeLayout const& lattices, std::int64_t first, HostVector<double> const& coordinates) {
                                std::int64_t const m = lattices.nodes();
                                EXPECT_EQ(std::ssize(given), 3 * m * m * m * first);
                                given.insert(given.end(), coordinates.begin(), coordinates.end());
                                firsts.push_back(first);
                              });
    EXPECT_EQ(firsts, order == 1 ? (std::vector<std::int64_t>{0, 5}) : std::vector<std::int64_t>{0});
    LatticeProblem const problem = left.lattice_problem();
    ASSERT_EQ(given, problem.make_coordinates(0, problem.layout.n_lattices)) << "copies of a node included";
    if (order == 1)
      continue;
    Array<double> coordinates(*context, std::span<double const>(given));
    LatticeSystem with(*context, problem, Format::matrix_free, true, std::move(coordinates)),
        without(*context, problem, Format::matrix_free);
    EXPECT_EQ(with.matrix().to_csr().values, without.matrix().to_csr().values);
    Array<double> const kept = with.take_coordinates();
    EXPECT_EQ(kept.size(), std::ssize(given));
    LoweredProblem const lowered(problem);
    EXPECT_EQ(make_order_one(*context, lowered, kept).matrix->to_csr().values,
              make_order_one(*context, lowered).matrix->to_csr().values);
  }
  Discretization(CheckedProblem(ball_of_lattices(2, 1)), AssembledInto::half_cds_on_host,
                 [](auto const&...) { ADD_FAILURE() << "they stay in memory"; });
}

TEST(LatticeNodes, AreWhereTheyWere) {
  ProblemSpec const spec = ball_of_lattices(3, 2);
  Discretization const all(spec), left = alone(spec);
  EXPECT_EQ(left.extent().low, all.extent().low);
  EXPECT_EQ(left.extent().high, all.extent().high);
  std::int64_t const n = all.summary().dofs;
  for (std::int64_t const unknown : {std::int64_t{0}, n / 3, n - 1})  // few: inside of lattices, and on rims
    EXPECT_EQ(left.point(unknown), all.point(unknown));
  for (std::int64_t unknown = 0; unknown < n; ++unknown)  // more, for which all nodes are made
    ASSERT_EQ(left.point(unknown), all.point(unknown)) << unknown;
  std::vector<double> u(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = static_cast<double>(i * i % 101);
  EXPECT_EQ(left.quantities(u).materials.at(0).energy, all.quantities(u).materials.at(0).energy);
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
    EXPECT_EQ(found.values, expected.values);
    EXPECT_EQ(of_left.take_rhs().take_host(), of_all.take_rhs().take_host());
    CsrMatrix const lowered = make_order_one(*context, LoweredProblem(left)).matrix->to_csr();
    EXPECT_EQ(lowered.values, make_order_one(*context, LoweredProblem(all)).matrix->to_csr().values);
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
  EXPECT_EQ(with.space - without.space, 24 * 7 * 65 * 65 * 65 - LatticeNodes::bytes_on_rims(layout));
  EXPECT_EQ(with.at_once, 0);
  EXPECT_EQ(without.at_once, 5 * 24 * 65 * 65 * 65);
  EXPECT_EQ(problem.estimate(AssembledInto::csr).memory.space, with.space);
}

}  // namespace
}  // namespace poisson::assembly
