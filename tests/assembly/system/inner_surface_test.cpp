/// Surfaces inside a mesh, named by its file: values of u there, sources on them, and what flows through them.
#include "assembly/dealii/mesh.hpp"
#include "assembly/discretization.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/boundary_flux.hpp"
#include "gpu/core/error.hpp"
#include "tests/assembly/local_meshes.hpp"
#include "tests/convergence/support.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <span>
#include <string>

namespace poisson::assembly {
namespace {

using namespace test;

constexpr unsigned left = 1, right = 2, below_die = 3, below_board = 4, inner = 7;

/// A die (material 2, x < 1) on a board (material 1): [0, 2] x [0, 1]^2, with the surface between them, or a part of it.
struct Plate {
  explicit Plate(bool half = false) {
    file.add_block({0, 0, 0}, {2, 1, 1}, {4, 2, 2}, 0, [](double x, double, double) { return x < 1 ? 2 : 1; });
    file.add_surface(left, [](auto const& x) { return x[0] < 1e-9; });
    file.add_surface(right, [](auto const& x) { return x[0] > 2 - 1e-9; });
    file.add_surface(below_die, [](auto const& x) { return x[1] < 1e-9 && x[0] < 1 + 1e-9; });
    file.add_surface(below_board, [](auto const& x) { return x[1] < 1e-9 && x[0] > 1 - 1e-9; });
    file.add_surface(inner, [half](auto const& x) { return std::abs(x[0] - 1) < 1e-9 && (!half || x[1] < 0.5 + 1e-9); });
  }
  /// `refinements`: -1 for cells of several sizes.
  [[nodiscard]] ProblemSpec problem(int order, int refinements) const {
    ProblemSpec spec;
    spec.mesh = refinements < 0 ? by_chance(file.spec(), order, order < 3 ? 3 : 2, 3).mesh : file.spec();
    spec.mesh.refinements = std::max(refinements, 0);
    spec.order = order;
    return spec;
  }
  MeshFile file;
};

Quantities solved_inside(ProblemSpec const& spec) {
  Discretization discretization(spec);
  return discretization.quantities(solve(discretization));
}

double sum_of_surfaces(Quantities const& q) {
  double sum = 0;
  for (auto const& [id, boundary] : q.boundaries)
    sum += boundary.flux;
  return sum;
}

/// Orders, and refinements: cells numbered as they come, sorted, and by lattices; and refined locally.
template <class Action>
void for_meshes(Action const& action) {
  for (auto const& [order, refinements] : {std::pair{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 2}, {3, 0}, {1, -1}, {2, -1}, {3, -1}}) {
    SCOPED_TRACE("order " + std::to_string(order) + ", " + std::to_string(refinements) + " refinements");
    action(order, refinements);
  }
}

/// Of a problem whose solution has a jump of the flux at the surface alone, which the elements know.
void expect_no_estimate(Discretization const& discretization, std::span<double const> u) {
  for (Estimator const estimator : {Estimator::local_problems, Estimator::residual}) {
    auto const found = discretization.estimate_error(estimator, u).squares;
    EXPECT_LT(std::sqrt(std::accumulate(found.begin(), found.end(), 0.0)), 1e-8);
  }
}

TEST(InnerSurface, AnElectrodeHoldsItsValue) {
  Plate const plate;
  for_meshes([&](int order, int refinements) {
    ProblemSpec spec = plate.problem(order, refinements);
    spec.boundary = {dirichlet("0", {left, right}), dirichlet("1", {inner}), neumann("0")};
    Discretization discretization(spec);
    auto const u = solve(discretization);
    Quantities const q = discretization.quantities(u);
    if (refinements < 0) {
      expect_no_estimate(discretization, u);
      int n_hanging = 0;
      Constraints const& hanging = discretization.hanging_nodes();
      for (std::int64_t i = 0; i < hanging.size(); ++i)
        n_hanging += hanging.constrained(i) && std::abs(discretization.point(i)[0] - 1) < 1e-9 ? 1 : 0;
      EXPECT_GT(n_hanging, 0);
    }
    EXPECT_NEAR(q.energy, 1, 1e-12);
    EXPECT_NEAR(q.boundaries.at(inner).flux, -2, 1e-11);  // what leaves the domain there
    EXPECT_NEAR(q.boundaries.at(inner).area, 1, 1e-12);
    EXPECT_NEAR(q.boundaries.at(left).flux, 1, 1e-11);
    EXPECT_NEAR(q.boundaries.at(right).flux, 1, 1e-11);
  });
}

TEST(InnerSurface, AProbeOnAnElectrodeHasTheGradientOfOneSide) {
  Plate const plate;
  for_meshes([&](int order, int refinements) {
    ProblemSpec spec = plate.problem(order, refinements);
    spec.boundary = {dirichlet("0", {left}), dirichlet("3", {right}), dirichlet("1", {inner}), neumann("0")};
    Discretization discretization(spec);
    auto const u = solve(discretization);
    auto points = discretization.locate(std::vector<std::array<double, 3>>{{1, 0.3, 0.4}, {0.9, 0.3, 0.4}});
    auto const sides = choose_sides(discretization.sides_of(points));
    ASSERT_EQ(sides.size(), 1U);
    EXPECT_EQ(sides[0].side.point, 0);
    EXPECT_EQ(sides[0].side.material, 1U);  // the lowest id: the right one
    ASSERT_TRUE(sides[0].other);
    EXPECT_EQ(sides[0].other->material, 2U);
    discretization.move_to_cell(points[0], sides[0].side.cell);
    auto const at = discretization.values_at(values_among(u), points);
    EXPECT_NEAR(at[0].gradient[0], 2, 1e-10);
    EXPECT_NEAR(at[1].gradient[0], 1, 1e-10);
    spec.boundary = {dirichlet("0", {left}), dirichlet("3", {right}), neumann("0")};
    Discretization const free(spec);  // k is 1 on both sides
    EXPECT_TRUE(free.sides_of(free.locate(std::vector<std::array<double, 3>>{{1, 0.3, 0.4}})).empty());
  });
}

TEST(InnerSurface, AnElectrodeThatEndsInsideIsInBalance) {
  Plate const plate(true);
  for_meshes([&](int order, int refinements) {
    ProblemSpec spec = plate.problem(order, refinements);
    spec.coefficient = {{1, {"1 + x"}}, {2, {"3"}}};
    spec.boundary = {dirichlet("0", {left}), dirichlet("1", {inner}), neumann("0")};
    Quantities const q = solved_inside(spec);
    EXPECT_NEAR(q.boundaries.at(inner).flux, -2 * q.energy, 1e-11);
    EXPECT_NEAR(q.boundaries.at(inner).area, 0.5, 1e-12);
    EXPECT_NEAR(sum_of_surfaces(q), 0, 1e-11);
    // Beside it, the electrode is not there.
    Discretization discretization(spec);
    auto const u = solve(discretization);
    auto const at = discretization.values_at(
        values_among(u), discretization.locate(std::vector<std::array<double, 3>>{{1, 0.25, 0.5}, {1, 1, 0.5}}));
    EXPECT_NEAR(at[0].u, 1, 1e-11);
    EXPECT_LT(at[1].u, 0.99);
  });
}

TEST(InnerSurface, ASourceOnItIsAJumpOfTheFlux) {
  Plate const plate;
  for_meshes([&](int order, int refinements) {
    ProblemSpec spec = plate.problem(order, refinements);
    spec.boundary = {dirichlet("0", {left, right}), neumann("3", {inner}), neumann("0")};
    Discretization discretization(spec);
    auto const u = solve(discretization);  // 1.5 min(x, 2 - x)
    Quantities const q = discretization.quantities(u);
    if (refinements < 0) {
      expect_no_estimate(discretization, u);
    } else {  // nothing is left of rows without a given value; the rows of the two sides have what flows out there
      auto const left_over = discretization.residual(u, {}).values;
      double sum = 0, size = 0;
      for (double const value : left_over) {
        sum += value;
        size += std::abs(value);
      }
      EXPECT_NEAR(sum, 3, 1e-11);
      EXPECT_NEAR(size, 3, 1e-11);
    }
    EXPECT_NEAR(q.energy, 2.25, 1e-11);
    EXPECT_NEAR(q.max, 1.5, 1e-11);
    EXPECT_NEAR(q.boundaries.at(inner).flux, -3, 1e-12);
    EXPECT_NEAR(q.boundaries.at(left).flux, 1.5, 1e-11);
    EXPECT_NEAR(q.boundaries.at(right).flux, 1.5, 1e-11);
  });
}

TEST(InnerSurface, ASourceOnItCountsInAPureNeumannProblem) {
  Plate const plate;
  ProblemSpec spec = plate.problem(1, 0);
  spec.boundary = {neumann("3", {inner}), neumann("-1.5", {left, right}), neumann("0", {0, below_die, below_board})};
  Quantities const q = solved_inside(spec);
  EXPECT_NEAR(q.max - q.min, 1.5, 1e-11);
  spec.boundary[1].value = "0";
  Discretization incompatible(spec);
  EXPECT_THROW((void)incompatible.assemble(), InputError);
}

TEST(InnerSurface, TheFluxFromDieToBoardBalancesBoth) {
  Plate const plate;
  for_meshes([&](int order, int refinements) {
    ProblemSpec spec = plate.problem(order, refinements);
    spec.coefficient = {{1, {"1"}}, {2, {"20 + y"}}};
    spec.source = "0";
    spec.source_of_material = {{2, "1 + x*y"}};
    spec.point_sources = {{{0.9, 0.3, 0.4}, 0.5}};
    // Dirichlet values below both, which share the nodes of the edge between them with the surface.
    spec.boundary = {dirichlet("x*z", {below_die, below_board}), robin("2", "1", {right}), neumann("0")};
    Discretization discretization(spec);
    Quantities const q = discretization.quantities(solve(discretization));
    double const of_die = discretization.source_integral().sum + 0.5;
    auto const flux = [&](unsigned id) { return (id == inner ? q.surfaces : q.boundaries).at(id).flux; };
    // Through the surface from material 1, the board, to material 2, the die: the balances tell its sign.
    EXPECT_GT(std::abs(flux(inner)), 0.1);
    EXPECT_NEAR(flux(0) + flux(left) + flux(below_die) - flux(inner), of_die, 1e-11);
    EXPECT_NEAR(flux(below_board) + flux(right) + flux(inner), 0, 1e-11);
    EXPECT_NEAR(q.surfaces.at(inner).area, 1, 1e-12);
  });
}

TEST(InnerSurface, PartsOfAMeshAddUpToTheWhole) {
  Plate const plate;
  for (bool const held : {false, true}) {
    ProblemSpec spec = plate.problem(2, 1);
    spec.source = "1 + x*y";
    spec.boundary = {dirichlet("x*z", {below_die, below_board}), neumann("0")};
    if (held)
      spec.boundary.push_back(dirichlet("2", {inner}));
    Discretization whole(spec);
    auto const u = solve(whole);
    Quantities const expected = whole.quantities(u);
    for (int const ranks : {2, 3}) {
      BoundaryFlux found;
      for (int rank = 0; rank < ranks; ++rank) {
        found.add(fluxes_of_part(whole, whole.divided(ranks).part(rank), u).surfaces[inner]);
      }
      BoundaryFlux const of_whole = (held ? expected.boundaries : expected.surfaces).at(inner);
      EXPECT_NEAR(found.flux, of_whole.flux, 1e-11);
      EXPECT_NEAR(found.integral_u, of_whole.integral_u, 1e-11);
      EXPECT_EQ(found.max, of_whole.max);
      EXPECT_NEAR(found.area, 1, 1e-12);
    }
  }
}

TEST(InnerSurface, ARefinedTriangulationHasTheFacesOfLattices) {
  Plate const plate(true);
  ReferenceElement const element(1);
  Space const space(make_mesh(plate.problem(1, 2).mesh), element);
  ASSERT_EQ(space.inner_faces.size(), 2U * 16U);  // 2 of the file
  for (InnerFace const& face : space.inner_faces) {
    EXPECT_EQ(face.id, inner);
    auto const vertices = space.face_vertices(face.cells[0], face.faces[0]);
    EXPECT_EQ(vertices, space.face_vertices(face.cells[1], face.faces[1]));
    EXPECT_EQ(space.material(face.cells[0]), 2U);  // to larger x
    EXPECT_EQ(space.material(face.cells[1]), 1U);
    for (std::int32_t const vertex : vertices) {
      EXPECT_NEAR(space.point(vertex)[0], 1, 1e-12);
      EXPECT_LE(space.point(vertex)[1], 0.5 + 1e-12);
    }
  }
}

TEST(InnerSurface, OtherConditionsAreRefused) {
  Plate const plate;
  ProblemSpec spec = plate.problem(1, 0);
  auto const expect = [&](BoundaryCondition const& condition, char const* word) {
    spec.boundary = {dirichlet("0"), condition};
    try {
      Discretization const discretization(spec);
      ADD_FAILURE() << word;
    } catch (InputError const& error) {
      EXPECT_EQ(error.key(), "problem.boundary[1].ids");
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  expect(robin("1", "0", {inner}), "inside the mesh");
  BoundaryCondition periodic = dirichlet("0", {inner, left});
  periodic.type = BoundaryType::periodic;
  expect(periodic, "inside the mesh");
  // `all` never means it.
  spec.boundary = {dirichlet("1")};
  Quantities const q = solved_inside(spec);
  EXPECT_NEAR(q.surfaces.at(inner).flux, 0, 1e-12);
}

}  // namespace
}  // namespace poisson::assembly
