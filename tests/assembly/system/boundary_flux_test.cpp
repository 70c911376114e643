/// Fluxes are conservative: all together they are the integral of f, and between plates they are twice the energy.
#include "assembly/discretization.hpp"
#include "tests/convergence/support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

using namespace test;

BoundaryCondition periodic(unsigned first, unsigned second, std::string value = "0") {
  return {false, {first, second}, {}, BoundaryType::periodic, std::move(value), "0"};
}

/// Names for the sides of the unit cube, which become ids 0 to 5 of a file's mesh: -x +x -y +y -z +z.
std::vector<NamedPlace> sides() {
  return {{"west", "x < 1e-9"},      {"east", "x > 1 - 1e-9"}, {"south", "y < 1e-9"},
          {"north", "y > 1 - 1e-9"}, {"bottom", "z < 1e-9"},   {"top", "z > 1 - 1e-9"}};
}

/// A mesh, and the id of its side 0; the others follow.
struct Cube {
  MeshSpec mesh;
  unsigned first = 0;
};

/// The unit cube as a box, a graded box, a file with distorted cells, and a mesh of lattices.
struct Cubes {
  Cubes() {
    file.add_block({0, 0, 0}, {1, 1, 1}, {3, 2, 3}, 0.1);
    list.push_back({box(3, 4, 3), 0});
    MeshSpec graded = box(3, 3, 4);
    graded.growth = {1, 1, 1.3};
    list.push_back({graded, 0});
    MeshSpec distorted = file.spec();
    distorted.boundaries = sides();
    list.push_back({distorted, 1});  // id 0 is that of the file
    MeshSpec lattices = generator("hyper_cube", 2);
    lattices.boundaries = sides();
    list.push_back({lattices, 1});
  }
  MeshFile file;
  std::vector<Cube> list;
};

/// k jumps, so that the flux at the edge of a plate differs from node to node.
ProblemSpec problem_on(Cube const& cube, int order) {
  ProblemSpec spec;
  spec.mesh = cube.mesh;
  spec.order = order;
  spec.coefficient = {{-1, {"1 + 9*(x > 0.5 && y < 0.5)"}}};
  return spec;
}

double sum_of(Quantities const& q) {
  double sum = 0;
  for (auto const& [id, boundary] : q.boundaries)
    sum += boundary.flux;
  return sum;
}

double flux_of(Quantities const& q, Cube const& cube, unsigned side) {
  return q.boundaries.at(cube.first + side).flux;
}

Quantities solved(ProblemSpec const& spec) {
  Discretization discretization(spec);
  return discretization.quantities(solve(discretization));
}

TEST(PeriodicFlux, BetweenPlatesItIsTwiceTheEnergy) {
  Cubes const cubes;
  for (Cube const& cube : cubes.list)
    for (int const order : {1, 2, 3})
      for (int const directions : {1, 2})
        for (bool const tensor : {false, true}) {
          if (order == 3 && tensor)
            continue;
          auto const id = [&](unsigned side) { return cube.first + side; };
          ProblemSpec spec = problem_on(cube, order);
          if (tensor)
            spec.coefficient = {{-1, {"2 + x", "1 + 4*(z < 0.6)", "3", "0.5", "0.4*y", "-0.3"}}};
          spec.boundary = {periodic(id(0), id(1)), dirichlet("0", {id(4)}), dirichlet("1", {id(5)})};
          spec.boundary.push_back(directions == 2 ? periodic(id(3), id(2)) : neumann("0", {id(2), id(3)}));
          Quantities const q = solved(spec);
          double const twice = 2 * q.energy;
          EXPECT_NEAR(-flux_of(q, cube, 5), twice, 1e-12 * twice) << "order " << order << ", " << directions << " directions";
          EXPECT_NEAR(flux_of(q, cube, 4), twice, 1e-12 * twice);
          EXPECT_NEAR(flux_of(q, cube, 0), -flux_of(q, cube, 1), 1e-13 * twice);
          EXPECT_NEAR(flux_of(q, cube, 2), -flux_of(q, cube, 3), 1e-13 * twice);
        }
}

TEST(PeriodicFlux, OfSourcesIsTheirIntegral) {
  Cubes const cubes;
  for (Cube const& cube : cubes.list)
    for (int const order : {1, 2, 3}) {
      auto const id = [&](unsigned side) { return cube.first + side; };
      ProblemSpec spec = problem_on(cube, order);
      spec.source = "1 + 3*x*y";
      spec.boundary = {periodic(id(0), id(1), "0.5"), periodic(id(2), id(3)), robin("2", "x", {id(4)}), dirichlet("y*y", {id(5)})};
      Discretization discretization(spec);
      Quantities const q = discretization.quantities(solve(discretization));
      double const source = discretization.source_integral().sum;
      EXPECT_NEAR(sum_of(q), source, 1e-11 * source) << "order " << order;
      EXPECT_NEAR(flux_of(q, cube, 0), -flux_of(q, cube, 1), 1e-12);
    }
}

TEST(PeriodicFlux, AlongAJumpItIsTwiceTheEnergy) {
  Cubes const cubes;
  for (Cube const& cube : cubes.list)
    for (int const order : {1, 2, 3}) {
      auto const id = [&](unsigned side) { return cube.first + side; };
      ProblemSpec spec = problem_on(cube, order);
      spec.boundary = {periodic(id(0), id(1), "2"), periodic(id(2), id(3)), periodic(id(5), id(4))};
      Quantities const q = solved(spec);
      double const twice = 2 * q.energy;
      ASSERT_GT(twice, 4);
      EXPECT_NEAR(-2 * flux_of(q, cube, 1), twice, 1e-11 * twice) << "order " << order;
      for (unsigned const side : {0U, 2U, 4U})
        EXPECT_NEAR(flux_of(q, cube, side), -flux_of(q, cube, side + 1), 1e-13 * twice);
    }
}

TEST(PeriodicFlux, SidesThatARotationJoins) {
  for (int const order : {1, 2, 3}) {
    Cube const cube{box(4, 4, 2), 0};
    ProblemSpec spec = problem_on(cube, order);
    spec.coefficient = {{-1, {"1 + 5*(x*x + y*y < 0.31)"}}};
    BoundaryCondition turn = periodic(0, 2);  // (0, y, z) becomes (y, 0, z); the edge x = y = 0 stays
    turn.map = {{0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0}};
    spec.boundary = {turn, dirichlet("0", {1}), neumann("0", {3, 4}), dirichlet("1", {5})};
    spec.boundary[1].ids = {1, 3};
    spec.boundary[2].ids = {4};
    spec.boundary[3].value = "x < 1 - 1e-9 && y < 1 - 1e-9";
    Quantities const q = solved(spec);
    double const twice = 2 * q.energy;
    EXPECT_NEAR(sum_of(q), 0, 1e-12 * twice);
    EXPECT_NEAR(flux_of(q, cube, 0), -flux_of(q, cube, 2), 1e-13 * twice);
    spec.boundary[1].ids = {4};
    spec.boundary[2].ids = {1, 3};
    spec.boundary[3].value = "1";
    Quantities const plates = solved(spec);
    EXPECT_NEAR(-flux_of(plates, cube, 5), 2 * plates.energy, 1e-12 * plates.energy);
  }
}

TEST(PeriodicFlux, AValueThatReachesOverATieBelongsToItsPlate) {
  // The plate touches one of the two sides only.
  MeshSpec mesh = box(4, 3, 3);
  mesh.boundaries = {{"plate", "z > 1 - 1e-9 && x < 0.5"}};
  ProblemSpec spec = problem_on({mesh, 0}, 2);
  spec.source = "1 + x";
  BoundaryCondition plate = dirichlet("2", {0});
  plate.ids.clear();
  plate.names = {"plate"};
  spec.boundary = {plate, periodic(0, 1), neumann("0")};
  Discretization discretization(spec);
  Quantities const q = discretization.quantities(solve(discretization));
  EXPECT_NEAR(q.boundaries.at(6).flux, 1.5, 1e-12);
  EXPECT_NEAR(q.boundaries.at(0).flux + q.boundaries.at(1).flux, 0, 1e-13);
}

TEST(PeriodicFlux, PartsOfAMeshAddUpToTheFluxesOfTheWhole) {
  Cubes const cubes;
  Cube const& cube = cubes.list[2];
  auto const id = [&](unsigned side) { return cube.first + side; };
  ProblemSpec spec = problem_on(cube, 2);
  spec.boundary = {periodic(id(0), id(1)), periodic(id(3), id(2)), dirichlet("0", {id(4)}), dirichlet("1", {id(5)})};
  Discretization whole(spec);
  auto const u = solve(whole);
  Quantities const expected = whole.quantities(u);
  for (int const ranks : {2, 3}) {
    BoundaryFluxes fluxes;
    std::vector<PeriodicFlux> on_sides;
    for (int rank = 0; rank < ranks; ++rank) {
      PartOfSpace const part = whole.divided(ranks).part(rank);
      BoundaryFluxes found = fluxes_of_part(whole, part, u);
      for (auto const& [boundary, flux] : found.boundaries)
        fluxes.boundaries[boundary].flux += flux.flux;
      for (PeriodicFlux& flux : found.periodic) {
        flux.node.number = part.unknowns[static_cast<std::size_t>(flux.node.number)];
        on_sides.push_back(flux);
      }
    }
    whole.add_periodic_fluxes(on_sides, fluxes);
    for (auto const& [boundary, flux] : expected.boundaries)
      EXPECT_NEAR(fluxes.boundaries[boundary].flux, flux.flux, 1e-12 * expected.energy) << "boundary " << boundary;
  }
}

TEST(BoundaryFlux, OnlyValuesNearTheBoundaryAreNeeded) {
  Cubes const cubes;
  for (Cube cube : cubes.list) {
    if (cube.first == 0)
      continue;  // a box
    for (int const refinements : {0, 2, 3})
      for (int order = 1; order <= 3; ++order) {
        cube.mesh.refinements = refinements;
        ProblemSpec spec = problem_on(cube, order);
        spec.source = "1 + z";
        spec.boundary = {dirichlet("x", {1, 6}), robin("1 + z", "2", {2, 3}), neumann("y", {4, 5})};
        spec.point_sources = {{{0.4, 0.55, 0.5}, 2}, {{0.01, 0.5, 0.99}, 1}};
        if (estimate(spec).mesh.dofs > 20000)
          continue;
        Discretization const discretization(spec);
        HostVector<double> u, low;
        for (std::int64_t i = 0; i < discretization.summary().dofs; ++i) {
          u.push_back(std::cos(static_cast<double>(7 * i)));
          low.push_back(1e-3 * std::sin(static_cast<double>(i)));
        }
        for (bool const extended : {false, true}) {
          std::size_t asked = 0;
          auto const near = [&](std::span<double const> all) -> ValuesOfUnknowns {
            return [&asked, all](std::span<std::int32_t const> unknowns) {
              asked = unknowns.size();
              return values_among(all)(unknowns);
            };
          };
          auto const found = discretization.fluxes_near_boundary(near(u), extended ? near(low) : ValuesOfUnknowns()).boundaries;
          auto const by_residuals =
              discretization.residual_fluxes(u, {}, extended ? std::span<double const>(low) : std::span<double const>()).boundaries;
          std::string const which = "order " + std::to_string(order) + ", " + std::to_string(refinements) + " refinements";
          EXPECT_EQ(found.size(), 6U) << which;
          for (auto const& [id, expected] : by_residuals) {
            EXPECT_NEAR(found.at(id).flux, expected.flux, 1e-10) << which << ", boundary " << id;
            EXPECT_NEAR(found.at(id).area, expected.area, 1e-12) << which << ", boundary " << id;
            EXPECT_NEAR(found.at(id).integral_u, expected.integral_u, 1e-12) << which << ", boundary " << id;
            EXPECT_EQ(found.at(id).max, expected.max) << which << ", boundary " << id;
          }
          EXPECT_TRUE(refinements < 3 || asked < u.size()) << which;
          // Of some unknowns, as ranks ask: the residuals of these, or none.
          for (int const every : {3, 0}) {
            std::vector<std::uint8_t> counted(u.size(), 0);
            for (std::size_t i = 0; i < counted.size() && every > 0; ++i)
              counted[i] = i % static_cast<std::size_t>(every) == 0 ? 1 : 0;
            auto const of_some =
                discretization
                    .fluxes_near_boundary(near(u), extended ? near(low) : ValuesOfUnknowns(),
                                          [&](std::int64_t unknown) { return counted[static_cast<std::size_t>(unknown)] != 0; })
                    .boundaries;
            for (auto const& [id, expected] :
                 discretization.residual_fluxes(u, counted, extended ? std::span<double const>(low) : std::span<double const>())
                     .boundaries) {
              EXPECT_NEAR(of_some.at(id).flux, expected.flux, 1e-10) << which << ", boundary " << id << " of some";
              EXPECT_NEAR(of_some.at(id).area, expected.area, 1e-12) << which << ", boundary " << id << " of some";
            }
          }
        }
      }
  }
}

TEST(BoundarySurface, HasTheFluxOfALinearFunctionFromTheCellsAtTheBoundaryAlone) {
  Cubes const cubes;
  auto const linear = [](double x, double y, double z) { return x + 2 * y - 3 * z; };
  std::array<double, 3> const gradient{1, 2, -3};
  for (Cube const& cube : cubes.list)
    for (int const order : {1, 2, 3}) {
      ProblemSpec spec;
      spec.mesh = cube.mesh;
      spec.order = order;
      spec.coefficient = {{-1, {"2"}}};
      spec.boundary = {{true, {}, {}, BoundaryType::dirichlet, "0", "0"}};
      Discretization const mesh(spec);
      std::int64_t n_asked = 0;
      BoundarySurface const surface = mesh.surface([&](std::span<std::int32_t const> unknowns) {
        EXPECT_EQ(std::exchange(n_asked, std::ssize(unknowns)), 0) << "once";
        HostVector<double> u;
        for (std::int32_t const unknown : unknowns) {
          auto const x = mesh.point(unknown);
          u.push_back(linear(x[0], x[1], x[2]));
        }
        return u;
      });
      EXPECT_LE(n_asked, mesh.summary().dofs);
      if (order == 1 && mesh.summary().lattices > 0) {  // 4 x 4 x 4 cells: one node is in none at the boundary
        EXPECT_EQ(n_asked, mesh.summary().dofs - 1);
      }
      ASSERT_EQ(surface.unknowns.size(), surface.u.size());
      ASSERT_TRUE(std::ranges::is_sorted(surface.unknowns));
      for (std::size_t i = 0; i < surface.u.size(); ++i) {
        auto const x = mesh.point(surface.unknowns[i]);
        for (std::size_t d = 0; d < 3; ++d) {
          ASSERT_NEAR(surface.points[3 * i + d], x[d], 1e-15);
          ASSERT_NEAR(surface.flux[3 * i + d], -2 * gradient[d], 1e-12);
        }
        ASSERT_NEAR(surface.u[i], linear(x[0], x[1], x[2]), 1e-15);
      }
      ASSERT_EQ(surface.quads.size(), 4 * surface.boundary.size());
      double const into_x = -2;  // through the side at larger x
      for (std::size_t face = 0; face < surface.boundary.size(); ++face)
        if (surface.boundary[face] == static_cast<int>(cube.first) + 1) {
          ASSERT_NEAR(surface.outward_flux[face], into_x, 1e-12);
        }
    }
}

}  // namespace
}  // namespace poisson::assembly
