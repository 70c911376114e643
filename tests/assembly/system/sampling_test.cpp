/// The solution at points: against the nodes' own values, polynomials that the element holds, and on any number of threads.
#include "assembly/discretization.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/threads.hpp"
#include "tests/convergence/support.hpp"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace poisson::assembly {
namespace {

using namespace test;

Discretization make(MeshSpec mesh, int order) {
  ProblemSpec spec;
  spec.mesh = std::move(mesh);
  spec.order = order;
  spec.boundary = {dirichlet("0")};
  return Discretization(std::move(spec));
}

/// Unknowns without any pattern.
HostVector<double> rough(std::int64_t n) {
  HostVector<double> u(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = static_cast<double>((i * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-52 - 1;
  return u;
}

TEST(Sampling, NodesHaveTheirOwnValues) {
  for (auto const& mesh :
       {box(3, 2, 4, {1, 2, 0.5}), generator("hyper_ball", 1), generator("hyper_shell", 0, "0, 0, 0 : 0.5 : 1 : 6")})
    for (int const order : {1, 2}) {  // up to here output has the nodes themselves
      Discretization const discretization = make(mesh, order);
      auto const u = rough(discretization.summary().dofs);
      auto const fields = discretization.fields(u);
      auto const nodes = nodes_of(discretization);
      for (std::size_t i = 0; i < u.size(); i += 7) {
        Lattice lattice;
        for (std::size_t d = 0; d < 3; ++d)
          lattice.low[d] = nodes.points[3 * i + d];
        auto const found = discretization.sample(u, lattice);
        ASSERT_EQ(found.size(), 1u);
        EXPECT_NEAR(found[0], fields.u[i], 1e-7) << mesh.generator << ", order " << order << ", node " << i;
      }
    }
}

TEST(Sampling, PolynomialsOfTheElementAreExact) {
  // The values of x^2 y + z at the equidistant nodes of output, for which orders 1 and 2 are the unknowns'.
  auto const f = [](double x, double y, double z) { return x * x * y + z; };
  Discretization const discretization = make(box(3, 2, 2, {1, 2, 0.5}), 2);
  auto const nodes = nodes_of(discretization).points;
  HostVector<double> u(nodes.size() / 3);
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = f(nodes[3 * i], nodes[3 * i + 1], nodes[3 * i + 2]);
  Lattice const lattice{{0, 0.1, 0}, {1.0 / 10, 0.17, 0.5 / 6}, {11, 9, 7}};
  auto const found = discretization.sample(u, lattice);
  ASSERT_EQ(static_cast<std::int64_t>(found.size()), lattice.size());
  std::size_t at = 0;
  for (int k = 0; k < 7; ++k)
    for (int j = 0; j < 9; ++j)
      for (int i = 0; i < 11; ++i)
        EXPECT_NEAR(found[at++], f(0.1 * i, 0.1 + 0.17 * j, 0.5 / 6 * k), 1e-13);
}

TEST(Sampling, PointsOutsideAreNoNumbers) {
  Discretization const discretization = make(generator("hyper_shell", 1, "0, 0, 0 : 0.5 : 1 : 6"), 2);
  HostVector<double> const u(static_cast<std::size_t>(discretization.summary().dofs), 3.0);
  Extent const extent = discretization.extent();
  for (std::size_t d = 0; d < 3; ++d) {
    EXPECT_NEAR(extent.low[d], -1, 1e-12);
    EXPECT_NEAR(extent.high[d], 1, 1e-12);
  }
  Lattice const lattice{{-1.2, -1.2, -1.2}, {0.3, 0.3, 0.3}, {9, 9, 9}};
  auto const found = discretization.sample(u, lattice);
  std::size_t at = 0, inside = 0;
  for (int k = 0; k < 9; ++k)
    for (int j = 0; j < 9; ++j)
      for (int i = 0; i < 9; ++i, ++at) {
        double const r = 0.3 * std::sqrt((i - 4) * (i - 4) + (j - 4) * (j - 4) + (k - 4) * (k - 4));
        if (r > 0.51 && r < 0.99) {
          EXPECT_NEAR(found[at], 3, 1e-12);
          ++inside;
        } else if (r < 0.49 || r > 1.01) {
          EXPECT_TRUE(std::isnan(found[at]));
        }
      }
  EXPECT_GT(inside, 50u);
}

TEST(Sampling, SameBitsOnAnyNumberOfThreads) {
  Discretization const discretization = make(generator("hyper_ball", 2), 1);
  auto const u = rough(discretization.summary().dofs);
  Lattice const lattice{{-1, -1, 0.25}, {2.0 / 40, 2.0 / 40, 0}, {41, 41, 1}};
  set_thread_count(1);
  auto const one = discretization.sample(u, lattice);
  set_thread_count(4);
  auto const four = discretization.sample(u, lattice);
  set_thread_count(0);
  EXPECT_EQ(std::memcmp(one.data(), four.data(), one.size() * sizeof(double)), 0);
}

TEST(Sampling, TellsTheCellsThatLocateFinds) {
  Discretization const discretization = make(generator("hyper_ball", 2), 1);
  Lattice const lattice{{-1, -1, 0.25}, {2.0 / 20, 2.0 / 20, 0.25}, {21, 21, 2}};
  HostVector<std::int64_t> cells;
  auto const found = discretization.sample(rough(discretization.summary().dofs), lattice, &cells);
  std::vector<std::array<double, 3>> points;
  for (std::int64_t i = 0; i < lattice.size(); ++i)
    points.push_back({-1 + static_cast<double>(i % 21) * (2.0 / 20), -1 + static_cast<double>(i / 21 % 21) * (2.0 / 20),
                      0.25 + static_cast<double>(i / 441) * 0.25});
  auto const located = discretization.locate(points);
  ASSERT_EQ(cells.size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(cells[i], located[i].cell) << i;
    EXPECT_EQ(cells[i] < 0, std::isnan(found[i])) << i;
  }
}

TEST(Sampling, WeightsAddUpToTheVolume) {
  auto const weights = make(box(3, 2, 4, {1, 2, 0.5}), 3).integration_weights();
  double sum = 0;
  for (double const weight : weights)
    sum += weight;
  EXPECT_NEAR(sum, 1, 1e-13);
}

}  // namespace
}  // namespace poisson::assembly
