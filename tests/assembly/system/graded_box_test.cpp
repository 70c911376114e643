/// Boxes of cells that differ in size: where their vertices are, and what is computed on them. Their matrices are compared with
/// deal.II's in matrix_test.
#include "assembly/discretization.hpp"
#include "gpu/core/error.hpp"
#include "tests/convergence/support.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace poisson::assembly {
namespace {

using namespace test;

std::vector<double> vertices_in_z(std::int64_t cells, double extent, double growth, GrowthTo to, int refinements = 0) {
  MeshSpec mesh = box(2, 2, cells, {1, 1, extent});
  mesh.growth[2] = growth;
  mesh.growth_to[2] = to;
  mesh.refinements = refinements;
  return predict_counts(mesh).box->coordinates[2];
}

void expect_near(std::vector<double> const& found, std::vector<double> const& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-13 * std::abs(expected.back())) << i;
}

TEST(GradedBox, CellsGrowByTheFactorGiven) {
  expect_near(vertices_in_z(3, 7, 2, GrowthTo::end), {0, 1, 3, 7});
  expect_near(vertices_in_z(3, 7, 0.5, GrowthTo::end), {0, 4, 6, 7});
  expect_near(vertices_in_z(4, 6, 2, GrowthTo::middle), {0, 1, 3, 5, 6});
  expect_near(vertices_in_z(5, 10, 2, GrowthTo::middle), {0, 1, 3, 7, 9, 10});
  expect_near(vertices_in_z(5, 8, 0.5, GrowthTo::middle), {0, 8. * 4 / 13, 8. * 6 / 13, 8. * 7 / 13, 8. * 9 / 13, 8});
  expect_near(vertices_in_z(1, 3, 2, GrowthTo::end), {0, 3});
  expect_near(vertices_in_z(1, 3, 2, GrowthTo::middle), {0, 3});
  expect_near(vertices_in_z(2, 3, 2, GrowthTo::middle), {0, 1.5, 3});
  expect_near(vertices_in_z(3, 7, 2, GrowthTo::end, 1), {0, 0.5, 1, 2, 3, 5, 7});
  EXPECT_TRUE(vertices_in_z(3, 7, 1, GrowthTo::end, 1).empty());
}

TEST(GradedBox, RefinementsHalveListedCells) {
  MeshSpec mesh = box(2, 2, 2);
  mesh.set_coordinates(0, {-1, 0, 3});
  mesh.refinements = 2;
  auto const counts = predict_counts(mesh);
  EXPECT_EQ(counts.box->coordinates[0], (std::vector<double>{-1, -0.75, -0.5, -0.25, 0, 0.75, 1.5, 2.25, 3}));
  EXPECT_TRUE(counts.box->coordinates[1].empty());
  EXPECT_EQ(counts.cells, 8 * 8 * 8);
}

TEST(GradedBox, EndsAreWhereTheyAreAskedFor) {
  for (double const growth : {0.3, 0.99, 1 + 1e-9, 1.1, 3.})
    for (GrowthTo const to : {GrowthTo::end, GrowthTo::middle}) {
      MeshSpec mesh = box(21, 2, 2);
      mesh.origin[0] = 0.1;
      mesh.extent[0] = 0.7;
      mesh.growth[0] = growth;
      mesh.growth_to[0] = to;
      auto const x = predict_counts(mesh).box->coordinates[0];
      EXPECT_EQ(x.front(), 0.1);
      EXPECT_EQ(x.back(), 0.1 + 0.7);
      for (std::size_t i = 1; i < x.size(); ++i)
        ASSERT_LT(x[i - 1], x[i]) << growth;
      for (std::size_t i = 2; i < x.size(); ++i) {
        bool const mirrored = to == GrowthTo::middle && i > 11;
        EXPECT_NEAR((x[i] - x[i - 1]) / (x[i - 1] - x[i - 2]), mirrored ? 1 / growth : growth, 1e-3) << growth << ' ' << i;
      }
    }
}

TEST(GradedBox, CellsThatCannotBeToldApartAreRefused) {
  auto const key_of = [](MeshSpec const& mesh) {
    try {
      static_cast<void>(predict_counts(mesh));
    } catch (InputError const& error) {
      return error.key();
    }
    return std::string();
  };
  MeshSpec mesh = box(4, 400, 4);
  for (GrowthTo const to : {GrowthTo::end, GrowthTo::middle})
    for (double const growth : {1.5, 1 / 1.5, 1e300, 1e-300}) {
      mesh.growth = {1, growth, 1};
      mesh.growth_to[1] = to;
      EXPECT_EQ(key_of(mesh), "problem.mesh.growth[1]") << growth;
    }
  for (double const growth : {0., -1., std::nan(""), std::numeric_limits<double>::infinity()}) {
    mesh.growth = {1, 1, growth};
    EXPECT_EQ(key_of(mesh), "problem.mesh.growth[2]") << growth;
  }
  mesh.growth = {1, 1, 1};
  mesh.coordinates[0] = {0, 1, 1, 2, 3};
  EXPECT_EQ(key_of(mesh), "problem.mesh.coordinates.x[2]");
  mesh.coordinates[0] = {0, 1, std::nan(""), 2, 3};
  EXPECT_EQ(key_of(mesh), "problem.mesh.coordinates.x[2]");
  mesh.coordinates[0] = {0, 1, 2};
  EXPECT_EQ(key_of(mesh), "problem.mesh.coordinates.x");
  mesh.coordinates[0] = {0, 1, 1 + 1e-14, 2, 3};
  EXPECT_EQ(key_of(mesh), "problem.mesh.coordinates.x");
}

/// A graded box whose volume is 3 * 2 * 7.
MeshSpec graded() {
  MeshSpec mesh = box(3, 4, 3, {1, 2, 7});
  mesh.set_coordinates(0, {-1, -0.75, 0.5, 2});
  mesh.growth[1] = 1.5;
  mesh.growth_to[1] = GrowthTo::middle;
  mesh.growth[2] = 2;
  return mesh;
}

/// Integrals, fluxes, fields and values at points of a linear u are exact, by the loops over lines of a box (order 1, one material)
/// and by those over cells.
TEST(GradedBox, WhatIsComputedFromALinearSolutionIsExact) {
  for (int const order : {1, 2, 3})
    for (bool const regions : {false, true}) {
      SCOPED_TRACE(std::to_string(order) + (regions ? " with regions" : ""));
      ProblemSpec spec;
      spec.mesh = graded();
      spec.order = order;
      spec.exact = "1 + 2*x - 3*y + z";
      spec.coefficient = {{-1, {"2 + x"}}};
      spec.source = "-2";
      spec.boundary = {dirichlet(*spec.exact)};
      if (regions)
        spec.mesh.regions = {{"upper", "z > 3"}};
      Discretization discretization(spec);
      auto const u = solve(discretization);
      auto const errors = discretization.errors(u);
      EXPECT_LT(errors.linf, 1e-11);
      EXPECT_LT(errors.h1_seminorm, 1e-10);
      auto const q = discretization.quantities(u);
      // Centre (0.5, 1, 3.5), so the mean of u is 2.5; that of k is 2.5, too.
      EXPECT_NEAR(q.mean, 2.5, 1e-12);
      EXPECT_NEAR(q.integral_u, 42 * 2.5, 1e-10);
      EXPECT_NEAR(q.energy, 0.5 * 14 * 2.5 * 42, 1e-9);
      EXPECT_NEAR(q.volumes.at(0), regions ? 3 * 2 * 3 : 42, 1e-11);
      EXPECT_NEAR(q.boundaries.at(1).area, 14, 1e-12);
      EXPECT_NEAR(q.boundaries.at(1).flux, -4 * 2 * 14, 1e-9);
      EXPECT_NEAR(q.boundaries.at(3).flux, 3 * 2.5 * 21, 1e-9);
      EXPECT_NEAR(q.boundaries.at(4).flux, 2.5 * 6, 1e-9);

      std::vector<std::array<double, 3>> points;
      for (double const x : {-1., -0.9, -0.75, 0.1, 0.5, 1.3, 2.})
        for (double const y : {0., 0.3, 0.4, 1., 1.7, 2.})
          for (double const z : {0., 0.5, 1., 2.5, 3., 6.999, 7.})
            points.push_back({x, y, z});
      auto const located = discretization.locate(points);
      auto const values = discretization.values_at(values_among(u), located);
      for (std::size_t i = 0; i < points.size(); ++i) {
        auto const [x, y, z] = points[i];
        ASSERT_GE(located[i].cell, 0) << x << ' ' << y << ' ' << z;
        EXPECT_NEAR(values[i].u, 1 + 2 * x - 3 * y + z, 1e-10);
        EXPECT_NEAR(values[i].gradient[1], -3, 1e-9);
        EXPECT_NEAR(values[i].flux[2], -(2 + x), 1e-9);
      }
      EXPECT_EQ(discretization.locate(std::vector<std::array<double, 3>>{{-1.1, 1, 1}, {0, 1, 7.1}})[0].cell, -1);
      EXPECT_EQ(discretization.locate(std::vector<std::array<double, 3>>{{-1.1, 1, 1}, {0, 1, 7.1}})[1].cell, -1);

      auto const mesh = discretization.output_mesh(OutputNodes::unknowns);
      auto const& lattice = std::get<NodeLattice>(mesh);
      EXPECT_EQ(lattice.order, order);
      EXPECT_EQ(lattice.coordinates[0].front(), -1);
      EXPECT_EQ(lattice.coordinates[0][static_cast<std::size_t>(order)], -0.75);
      EXPECT_EQ(lattice.coordinates[2].back(), 7);
      auto const fields = discretization.fields(u, OutputNodes::unknowns);
      std::size_t const n_cells = 36;
      ASSERT_EQ(fields.flux.size(), 3 * n_cells);
      std::array<double, 3> const centre_x{-0.875, -0.125, 1.25};
      for (std::size_t cell = 0; cell < n_cells; ++cell) {
        EXPECT_NEAR(fields.flux[3 * cell], -2 * (2 + centre_x[cell % 3]), 1e-9);
        EXPECT_NEAR(fields.flux[3 * cell + 1], 3 * (2 + centre_x[cell % 3]), 1e-9);
        EXPECT_NEAR(fields.coefficient[cell], 2 + centre_x[cell % 3], 1e-12);
        EXPECT_EQ(fields.material[cell], regions && cell >= 24 ? 1 : 0);
      }
    }
}

TEST(GradedBox, PointAndLineSourcesKeepTheirIntegrals) {
  ProblemSpec spec;
  spec.mesh = graded();
  spec.boundary = {dirichlet("0")};
  spec.point_sources = {{{-0.8, 0.2, 5}, 3}};
  spec.line_sources = {{{-1, 1, 0}, {2, 1, 7}, "1"}};
  Discretization discretization(spec);
  double sum = 0;
  for (auto const& load : discretization.point_loads().loads)
    sum += load.value;
  EXPECT_NEAR(sum, 3 + std::hypot(3., 7.), 1e-12);
}

}  // namespace
}  // namespace poisson::assembly
