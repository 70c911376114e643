/// The cells of a box in which k or f jumps: row by row on a box, and cell by cell where deal.II has made the same cells.
#include "assembly/discretization.hpp"
#include "assembly/system/data_check.hpp"
#include "tests/convergence/support.hpp"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

using namespace test;

DataFindings findings_of(MeshSpec mesh, CoefficientExpressions const& core, CoefficientExpressions const& rest,
                         std::string const& source, int order) {
  ProblemSpec problem;
  problem.mesh = std::move(mesh);
  problem.mesh.regions = {{"core", "y < 0.4 && z > 0.3"}};
  problem.order = order;
  problem.coefficient_of_name["core"] = core;
  problem.coefficient[-1] = rest;
  problem.source = source;
  BoundaryCondition& condition = problem.boundary.emplace_back();
  condition.all_ids = true;
  condition.type = BoundaryType::dirichlet;
  return Discretization(problem).data_findings();
}

class CellsWithJumps : public testing::TestWithParam<int> {};

TEST_P(CellsWithJumps, AreThoseOfTheSameCellsByDealii) {
  MeshSpec const here = box(6, 5, 4);
  MeshSpec other;
  other.generator = "subdivided_hyper_rectangle";
  other.arguments = "6, 5, 4 : 0, 0, 0 : 1, 1, 1 : true";
  std::string const step = "x + 0.3*y < 0.47 ? 1 : 5", smooth = "1 + 0.1*x*y*z", steep = "exp(20*z)";
  struct Case {
    CoefficientExpressions core, rest;
    std::string source;
  };
  std::vector<Case> const cases{{{"1"}, {step}, "0"},
                                {{step}, {"2"}, step},
                                {{smooth}, {smooth}, "x*y"},
                                {{steep}, {smooth, smooth, step}, "z > 0.53"},
                                {{"3"}, {"4"}, "x*x + y*y < 0.3 ? 4 : 1"}};
  double found = 0;
  for (Case const& c : cases) {
    DataFindings const by_rows = findings_of(here, c.core, c.rest, c.source, GetParam()),
                       by_cells = findings_of(other, c.core, c.rest, c.source, GetParam());
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(by_rows.jumps[i].count, by_cells.jumps[i].count) << c.source << " " << i;
      found += by_rows.jumps[i].count;
    }
  }
  EXPECT_GT(found, 20);
}

INSTANTIATE_TEST_SUITE_P(Orders, CellsWithJumps, testing::Values(1, 2, 3));

}  // namespace
}  // namespace poisson::assembly
