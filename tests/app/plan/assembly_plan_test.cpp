#include "app/plan/assembly_plan.hpp"

#include "app/config/config.hpp"
#include "app/config/problem.hpp"
#include "gpu/core/error.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace poisson::app {
namespace {

using Strings = std::vector<std::string>;

RunConfig config_of(std::string const& mesh, Strings const& sets) {
  return parse_configuration("problem:\n  mesh: " + mesh + "\n  boundary: [{ids: all, type: dirichlet, value: \"0\"}]\n",
                             "case.yaml", sets)
      .config();
}

/// A box, of which everything is known without its mesh.
AssemblyPlan plan_of_box(int ranks, std::string const& cells, Strings const& sets, Backend backend = Backend::cpu) {
  RunConfig const config = config_of("{cells: " + cells + "}", sets);
  assembly::MeshSummary const mesh = assembly::CheckedProblem(problem_of(config)).mesh();
  return plan_assembly(config, backend, mesh, division_of(config, mesh, ranks));
}

/// A mesh of seven coarse cells, whose summary needs no mesh.
AssemblyPlan plan_of_ball(int ranks, int refinements, Strings const& sets, assembly::MeshSummary mesh = {}) {
  RunConfig const config = config_of("{generator: hyper_ball, refinements: " + std::to_string(refinements) + "}", sets);
  std::int64_t const side = std::int64_t{1} << refinements, order = config.problem.order;
  mesh.cells = 7 * side * side * side;
  mesh.vertices = mesh.cells + 6 * side * side + 2;
  mesh.dofs = mesh.cells * order * order * order;
  mesh.nnz = 27 * mesh.dofs;
  if (refinements >= 2) {
    mesh.lattices = 7;
    mesh.lattice_nodes = order * side + 1;
  }
  return plan_assembly(config, Backend::cpu, mesh, division_of(config, mesh, ranks));
}

struct Row {
  int ranks;
  std::string mesh;  ///< cells of a box, or refinements of the ball
  Strings sets;
  Route route;
  Format format;
};

std::string const half_cds = "matrix.format=half_cds", matrix_free = "matrix.format=matrix_free",
                  varies = "problem.coefficient=1 + x",
                  sides_of_x =
                      "problem.boundary=[{ids: [1, 0], type: periodic, value: '2'}, {ids: all, type: dirichlet, value: '0'}]",
                  order_2 = "problem.element.order=2", order_3 = "problem.element.order=3",
                  in_two = "problem.mesh.regions=[{name: core, where: x < 0.5}]",
                  by_region = "problem.coefficient={core: '1', default: '2'}";

TEST(AssemblyPlan, OfBoxes) {
  std::vector<Row> const table{
      {1, "[8, 8, 8]", {half_cds}, Route::box, Format::half_cds},
      {3, "[8, 8, 8]", {half_cds}, Route::box, Format::half_cds},
      {1, "[8, 8, 8]", {half_cds, varies}, Route::box, Format::half_cds},
      {1, "[8, 8, 8]", {matrix_free}, Route::box, Format::matrix_free},
      {3, "[8, 8, 8]", {matrix_free}, Route::box, Format::matrix_free},
      {1, "[8, 8, 8]", {matrix_free, varies}, Route::cells, Format::matrix_free},
      {3, "[8, 8, 8]", {matrix_free, varies}, Route::cells, Format::matrix_free},
      {1, "[8, 8, 8]", {matrix_free, order_2}, Route::cells, Format::matrix_free},
      {5, "[1, 1, 2]", {matrix_free, order_2}, Route::cells, Format::matrix_free},
      {1, "[2, 2, 2]", {matrix_free}, Route::box, Format::matrix_free},
      {8, "[2, 2, 2]", {matrix_free}, Route::cells, Format::matrix_free},
      {1, "[1, 8, 8]", {matrix_free}, Route::cells, Format::matrix_free},
      {1, "[1, 8, 8]", {half_cds}, Route::csr, Format::csr},
      {8, "[2, 2, 2]", {half_cds}, Route::csr, Format::csr},
      {3, "[8, 8, 3]", {half_cds}, Route::box, Format::half_cds},
      {1, "[8, 8, 8]", {half_cds, order_2}, Route::csr, Format::csr},
      {1, "[8, 8, 8]", {half_cds, "problem.mesh.growth=[1.1, 1, 1]"}, Route::box, Format::half_cds},
      {1, "[8, 8, 8]", {matrix_free, "problem.mesh.growth=[1.1, 1, 1]"}, Route::cells, Format::matrix_free},
      {2, "[8, 8, 8]", {"matrix.format=csr"}, Route::csr, Format::csr},
      {2, "[8, 8, 8]", {"matrix.format=cds"}, Route::csr, Format::csr},
      {1, "[8, 8, 8]", {half_cds, "solver.matrix_precision=double_double"}, Route::csr, Format::csr},
      {1, "[8, 8, 8]", {half_cds, "matrix.conversion=host"}, Route::csr, Format::csr},
      {1, "[8, 8, 8]", {order_2}, Route::cells, Format::matrix_free},
      {1, "[8, 8, 8]", {order_2, "solver.preconditioner=ic0"}, Route::csr, Format::csr},
      {1, "[8, 8, 8]", {sides_of_x}, Route::box, Format::half_cds},
      {1, "[3, 8, 8]", {sides_of_x}, Route::box, Format::half_cds},
      {1, "[2, 8, 8]", {sides_of_x}, Route::csr, Format::csr},
      {3, "[8, 8, 8]", {sides_of_x}, Route::csr, Format::csr},
      {1, "[8, 8, 8]", {sides_of_x, varies}, Route::box, Format::half_cds},
      {1, "[8, 8, 8]", {sides_of_x, order_2}, Route::csr, Format::csr},
      {1, "[100, 50, 50]", {sides_of_x}, Route::box, Format::half_cds},
      {1, "[75, 50, 50]", {sides_of_x}, Route::csr, Format::csr},
      {1, "[75, 50, 50]", {sides_of_x, "solver.preconditioner=jacobi"}, Route::box, Format::half_cds},
      {1,
       "[8, 8, 8]",
       {"problem.boundary=[{ids: [0, 1], type: periodic, value: y}, {ids: all, type: dirichlet, value: '0'}]"},
       Route::csr,
       Format::csr},
      {3,
       "[8, 8, 8]",
       {half_cds, "problem.boundary=[{ids: [0, 1], type: periodic}, {ids: all, type: dirichlet, value: '0'}]"},
       Route::csr,
       Format::csr},
      {1,
       "[8, 8, 8]",
       {matrix_free, "problem.mesh.regions=[{name: core, where: x < 0.5}]", "problem.source={core: '1', default: '0'}"},
       Route::box,
       Format::matrix_free},
      {1, "[8, 8, 8]", {matrix_free, in_two, by_region}, Route::box, Format::matrix_free},
      {1,
       "[8, 8, 8]",
       {matrix_free, in_two, "problem.coefficient={core: '1', default: ['2', '3', '4']}"},
       Route::box,
       Format::matrix_free},
      {1, "[8, 8, 8]", {half_cds, in_two, by_region}, Route::box, Format::half_cds},
      {1, "[8, 8, 8]", {in_two, by_region}, Route::box, Format::half_cds},
      {1,
       "[8, 8, 8]",
       {matrix_free, in_two, "problem.coefficient={core: '1 + x', default: '2'}"},
       Route::cells,
       Format::matrix_free},
      {1,
       "[8, 8, 8]",
       {matrix_free, in_two, by_region, "problem.boundary=[{ids: all, type: robin, alpha: '1', value: '0'}]"},
       Route::cells,
       Format::matrix_free},
      {1, "[8, 8, 8]", {matrix_free, in_two, by_region, "problem.mesh.growth=[1.1, 1, 1]"}, Route::cells, Format::matrix_free},
      {1, "[1, 8, 8]", {matrix_free, in_two, by_region}, Route::cells, Format::matrix_free},
      {3, "[8, 8, 8]", {matrix_free, in_two, by_region}, Route::cells, Format::matrix_free},
  };
  for (Row const& row : table) {
    AssemblyPlan const plan = plan_of_box(row.ranks, row.mesh, row.sets);
    std::string const what = row.mesh + " on " + std::to_string(row.ranks) + " ranks: " + plan.text();
    EXPECT_EQ(plan.route, row.route) << what;
    EXPECT_EQ(plan.format, row.format) << what;
  }
}

TEST(AssemblyPlan, OfOtherMeshes) {
  std::vector<Row> const table{
      {1, "4", {half_cds}, Route::lattices, Format::half_cds},
      {3, "4", {half_cds}, Route::lattices, Format::half_cds},
      {1, "2", {half_cds}, Route::lattices, Format::half_cds},
      {3, "2", {half_cds}, Route::csr, Format::csr},
      {1, "1", {half_cds}, Route::csr, Format::csr},
      {1, "4", {half_cds, order_2}, Route::csr, Format::csr},
      {1, "4", {matrix_free}, Route::lattices, Format::matrix_free},
      {3, "4", {matrix_free, order_3}, Route::lattices, Format::matrix_free},
      {3, "2", {matrix_free}, Route::cells, Format::matrix_free},
      {1, "0", {matrix_free}, Route::cells, Format::matrix_free},
      {20, "0", {matrix_free, order_2}, Route::cells, Format::matrix_free},
      {1, "4", {order_2}, Route::lattices, Format::matrix_free},
      {3, "4", {order_2}, Route::lattices, Format::matrix_free},
      {3, "2", {order_2}, Route::csr, Format::csr},
      {3, "1", {order_2}, Route::csr, Format::csr},
      {1, "4", {half_cds, "problem.mesh.regions=[{name: core, where: x < 0.5}]"}, Route::lattices, Format::half_cds},
      {3, "4", {order_2, "problem.mesh.regions=[{name: core, where: x < 0.5}]"}, Route::lattices, Format::matrix_free},
      {1, "0", {matrix_free, "problem.mesh.regions=[{name: core, where: x < 0.5}]"}, Route::cells, Format::matrix_free},
  };
  for (Row const& row : table) {
    AssemblyPlan const plan = plan_of_ball(row.ranks, std::stoi(row.mesh), row.sets);
    std::string const what = row.mesh + " refinements on " + std::to_string(row.ranks) + " ranks: " + plan.text();
    EXPECT_EQ(plan.route, row.route) << what;
    EXPECT_EQ(plan.format, row.format) << what;
  }
}

/// Where one stencil says it all the source may be anything, also on blocks that are too thin for the stencil.
TEST(AssemblyPlan, SourcesByMaterialAreNotTheHosts) {
  Strings const by_material{matrix_free, "problem.mesh.regions=[{name: core, where: x < 0.5}]",
                            "problem.source={core: '1', default: '0'}"};
  AssemblyPlan const one = plan_of_box(1, "[2, 2, 2]", by_material), eight = plan_of_box(8, "[2, 2, 2]", by_material);
  EXPECT_EQ(one.route, Route::box);
  EXPECT_FALSE(one.source_on_host);
  EXPECT_EQ(eight.route, Route::cells);
  EXPECT_FALSE(eight.source_on_host);
  EXPECT_EQ(plan_of_box(1, "[1, 2, 2]", by_material).route, Route::cells) << "no stencil";
}

TEST(AssemblyPlan, WhatOneRankTakesIsTakenInParts) {
  EXPECT_TRUE(plan_of_box(8, "[2, 2, 2]", {half_cds}).whole_is_taken);
  EXPECT_FALSE(plan_of_box(8, "[1, 2, 2]", {half_cds}).whole_is_taken) << "the entries tell";
  EXPECT_TRUE(plan_of_ball(3, 2, {half_cds}).whole_is_taken);
  EXPECT_FALSE(plan_of_ball(3, 1, {half_cds}).whole_is_taken);
}

/// A rank without cells has an operator without rows, on every backend.
TEST(AssemblyPlan, RanksWithoutCells) {
  for (Backend const backend : {Backend::cpu, Backend::cuda})
    for (Strings const& sets : {Strings{order_2, matrix_free}, Strings{order_2}})
      EXPECT_EQ(plan_of_box(3, "[1, 1, 2]", sets, backend).route, Route::cells);
}

TEST(AssemblyPlan, TellsTheBackend) {
  using assembly::AssembledInto;
  EXPECT_EQ(plan_of_box(1, "[8, 8, 8]", {half_cds}, Backend::cuda).into(), AssembledInto::half_cds_on_device);
  EXPECT_EQ(plan_of_box(1, "[8, 8, 8]", {half_cds}).into(), AssembledInto::half_cds_on_host);
  EXPECT_EQ(plan_of_box(2, "[8, 8, 8]", {matrix_free, varies}, Backend::cuda).into(), AssembledInto::matrix_free_on_device);
  EXPECT_EQ(plan_of_box(2, "[8, 8, 8]", {"matrix.format=csr"}, Backend::cuda).into(), AssembledInto::csr);
}

TEST(AssemblyPlan, TellsWhy) {
  EXPECT_EQ(plan_of_box(1, "[8, 8, 8]", {half_cds}).text(), "half_cds, as it is stored (a box of order 1)");
  EXPECT_EQ(plan_of_box(3, "[8, 8, 8]", {matrix_free}).text(),
            "matrix_free, as it is stored (blocks of a box of order 1, whose inner rows are one stencil)");
  EXPECT_EQ(plan_of_box(8, "[2, 2, 2]", {matrix_free}).text(),
            "matrix_free, as it is stored (every cell by itself, order 1; the blocks of 8 ranks are too thin for a stencil)");
  EXPECT_EQ(plan_of_box(1, "[8, 8, 8]", {matrix_free, in_two, by_region}).text(),
            "matrix_free, as it is stored (a box of order 1, whose cells have labels and k a table)");
  EXPECT_EQ(plan_of_box(8, "[2, 2, 2]", {half_cds}).text(), "csr (the blocks of 8 ranks are too thin for half_cds)");
  EXPECT_EQ(plan_of_box(1, "[1, 8, 8]", {half_cds}).text(), "csr (the box has fewer than two cells in a direction)");
  EXPECT_EQ(plan_of_box(1, "[8, 8, 8]", {half_cds, "matrix.conversion=host"}).text(),
            "csr (matrix.conversion asks for a way of converting)");
  EXPECT_EQ(plan_of_ball(3, 2, {half_cds}).text(), "csr (pieces of 4 cells a side are too few for 3 ranks)");
  EXPECT_EQ(plan_of_ball(1, 0, {half_cds}).text(), "csr (the mesh is no box, and was refined less than twice)");
  EXPECT_EQ(plan_of_ball(3, 0, {half_cds, order_2}).text(), "csr (half_cds is assembled for order 1 alone)");
}

/// What matrix_free takes is a property of the problem, and not of its division.
TEST(AssemblyPlan, RefusesTheSameOnAnyNumberOfRanks) {
  assembly::MeshSummary periodic, surfaces, curved;
  periodic.periodic = true;
  surfaces.conditioned_surfaces = {7};
  curved.only_csr = true;
  struct Refused {
    Strings sets;
    assembly::MeshSummary mesh;
    std::string key, word;
  };
  std::vector<Refused> const table{
      {{}, periodic, "matrix.format", "periodic"},
      {{}, surfaces, "matrix.format", "surfaces"},
      {{}, curved, "matrix.format", "Gauss points"},
      {{"analysis.svd=[{of: operator}]"}, {}, "matrix.format", "analysis.svd"},
      {{"solver.matrix_precision=double_double"}, {}, "solver.matrix_precision", "double"},
  };
  for (Refused const& row : table)
    for (int const ranks : {1, 3}) {
      Strings sets = row.sets;
      sets.push_back(matrix_free);
      try {
        static_cast<void>(plan_of_ball(ranks, 3, sets, row.mesh));
        FAIL() << row.word;
      } catch (InputError const& error) {
        EXPECT_EQ(error.key(), row.key);
        EXPECT_NE(std::string(error.what()).find(row.word), std::string::npos) << error.what();
      }
    }
}

TEST(AssemblyPlan, OneRankIsADivisionOfOne) {
  RunConfig const config = config_of("{cells: [4, 5, 6]}", {});
  assembly::MeshSummary const mesh = assembly::CheckedProblem(problem_of(config)).mesh();
  Division const one = division_of(config, mesh, 1), three = division_of(config, mesh, 3), many = division_of(config, mesh, 121);
  EXPECT_EQ(one.with_cells, 1);
  EXPECT_EQ(one.fewest_nodes, (std::array<std::int64_t, 3>{5, 6, 7}));
  EXPECT_EQ(one.fewest_cells, (std::array<std::int64_t, 3>{4, 5, 6}));
  EXPECT_EQ(three.with_cells, 3);
  EXPECT_LT(three.fewest_nodes[2], 7);
  EXPECT_LT(many.with_cells, 121) << "121 is 11 x 11";
}

TEST(AssemblyPlan, LevelsOfBoxes) {
  EXPECT_TRUE(plan_of_box(3, "[8, 8, 8]", {half_cds}).has_box_levels);
  EXPECT_TRUE(plan_of_box(3, "[8, 8, 8]", {"matrix.format=csr"}).has_box_levels);
  EXPECT_FALSE(plan_of_box(3, "[8, 8, 8]", {matrix_free, varies}).has_box_levels) << "its rows have no entries";
  EXPECT_FALSE(plan_of_box(3, "[8, 8, 8]", {order_2}).has_box_levels);
  EXPECT_FALSE(plan_of_box(3, "[1, 8, 8]", {half_cds}).has_box_levels);
  EXPECT_TRUE(plan_of_box(1, "[8, 8, 8]", {matrix_free, varies}).has_order_one);
  EXPECT_FALSE(plan_of_ball(1, 0, {matrix_free}).has_order_one) << "its entries are there";
  EXPECT_TRUE(plan_of_ball(1, 0, {matrix_free, order_2}).has_order_one);
}

}  // namespace
}  // namespace poisson::app
