/// Loads of sources at points and along lines: hand-checked values, moments that are exact, and dense sums along lines.
#include "assembly/discretization.hpp"
#include "gpu/core/error.hpp"
#include "tests/convergence/support.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace poisson::assembly {
namespace {

using namespace test;
using Place = std::array<double, 3>;

ProblemSpec loaded_problem(MeshSpec mesh, int order = 1) {
  ProblemSpec spec;
  spec.mesh = std::move(mesh);
  spec.order = order;
  spec.boundary = {dirichlet("0")};
  return spec;
}

/// sum_i load_i g(x_i): the source applied to the interpolant of g.
double applied_to(Discretization const& discretization, std::function<double(double, double, double)> const& g) {
  auto const nodes = nodes_of(discretization).points;
  double sum = 0;
  for (auto const& [unknown, source, load, cell] : discretization.point_loads().loads) {
    double const* const x = nodes.data() + 3 * static_cast<std::ptrdiff_t>(unknown);
    sum += load * g(x[0], x[1], x[2]);
  }
  return sum;
}

TEST(PointLoads, OfAPointInOneTrilinearCell) {
  ProblemSpec spec = loaded_problem(box(1, 1, 1, {1, 2, 4}));
  spec.point_sources = {{{0.25, 1.5, 1}, 8}};
  Discretization const discretization(spec);
  std::array<double, 8> load{};
  for (auto const& [unknown, source, value, cell] : discretization.point_loads().loads)
    load.at(static_cast<std::size_t>(unknown)) += value;
  // 8 times (3/4, 1/4) x (1/4, 3/4) x (3/4, 1/4), x fastest
  std::array<double, 8> const expected{9. / 8, 3. / 8, 27. / 8, 9. / 8, 3. / 8, 1. / 8, 9. / 8, 3. / 8};
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(load[i], expected[i], 1e-15) << i;
  EXPECT_EQ(discretization.point_loads().integrals.sum, 8);
}

TEST(PointLoads, ANodeTakesAll) {
  for (int const order : {1, 2, 3}) {
    ProblemSpec spec = loaded_problem(box(2, 3, 2), order);
    spec.point_sources = {{{0.5, 1. / 3, 0.5}, -2}};  // a vertex of eight cells
    Discretization const discretization(spec);
    double largest = 0, rest = 0;
    for (auto const& [unknown, source, load, cell] : discretization.point_loads().loads)
      if (std::abs(load) > std::abs(largest))
        largest = load;
      else
        rest = std::max(rest, std::abs(load));
    EXPECT_NEAR(largest, -2, 1e-12);
    EXPECT_LT(rest, 1e-12);
  }
}

TEST(PointLoads, MomentsAreExactInCurvedCells) {
  for (auto const& mesh : {box(3, 2, 4, {1, 2, 0.5}), generator("hyper_ball", 1), generator("hyper_ball", 3),
                           generator("hyper_shell", 1, "0, 0, 0 : 0.2 : 1 : 6")})
    for (int const order : {1, 2}) {  // up to here output has the nodes themselves
      ProblemSpec spec = loaded_problem(mesh, order);
      spec.point_sources = {{{0.31, 0.4, 0.2}, 3}, {{0.52, 0.1, 0.27}, -1}};
      spec.line_sources = {{{0.3, 0.1, 0.25}, {0.6, 0.4, 0.1}, "2 + x"}};
      Discretization const discretization(spec);
      double const length = std::sqrt(0.09 + 0.09 + 0.0225), line = 2.45 * length;  // x is 0.45 in the middle
      EXPECT_NEAR(discretization.point_loads().integrals.sum, 2 + line, 1e-12);
      EXPECT_NEAR(discretization.point_loads().integrals.absolute, 4 + line, 1e-12);
      EXPECT_NEAR(applied_to(discretization, [](double, double, double) { return 1; }), 2 + line, 1e-12);
      // int (2 + x) x over x = 0.3 + 0.3 t
      double const moment = length * (2 * 0.45 + 0.09 + 0.09 + 0.03);
      EXPECT_NEAR(applied_to(discretization, [](double x, double, double) { return x; }), 3 * 0.31 - 0.52 + moment, 1e-9)
          << mesh.generator << ", order " << order;
    }
}

TEST(PointLoads, LinesAreCutAtTheFacesOfCells) {
  // The interpolant of x^2 is a polygon: the trapezoidal rule integrates it.
  ProblemSpec spec = loaded_problem(box(5, 2, 2));
  spec.line_sources = {{{0, 0.3, 0.6}, {1, 0.3, 0.6}, "1"}};
  double expected = 0;
  for (int i = 0; i < 5; ++i)
    expected += 0.2 * (0.04 * i * i + 0.04 * (i + 1) * (i + 1)) / 2;
  EXPECT_NEAR(applied_to(Discretization(spec), [](double x, double, double) { return x * x; }), expected, 1e-14);
}

TEST(PointLoads, LinesThroughRoundCellsEqualDenseSums) {
  ProblemSpec spec = loaded_problem(generator("hyper_ball", 2));
  Place const from{-0.5, -0.31, -0.22}, to{0.6, 0.4, 0.33};
  spec.line_sources = {{from, to, "1"}};
  Discretization const discretization(spec);
  auto const g = [](double x, double y, double z) { return x * x + y * z; };
  auto const nodes = nodes_of(discretization).points;
  HostVector<double> u(nodes.size() / 3);
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = g(nodes[3 * i], nodes[3 * i + 1], nodes[3 * i + 2]);
  constexpr int n = 20000;
  std::vector<Place> points;
  for (int i = 0; i < n; ++i) {
    double const t = (i + 0.5) / n;
    points.push_back({from[0] + t * (to[0] - from[0]), from[1] + t * (to[1] - from[1]), from[2] + t * (to[2] - from[2])});
  }
  double sum = 0;
  for (auto const& value : discretization.values_at(values_among(u), discretization.locate(points)))
    sum += value.u;
  double const length = std::sqrt(1.1 * 1.1 + 0.71 * 0.71 + 0.55 * 0.55);
  EXPECT_NEAR(applied_to(discretization, g), sum / n * length, 1e-7);
}

TEST(PointLoads, PlacesOutsideTheMeshAreRefused) {
  auto const refused = [](ProblemSpec const& spec, std::string const& key, std::string const& words) {
    try {
      Discretization const discretization(spec);
      ADD_FAILURE() << "not refused: " << words;
    } catch (InputError const& error) {
      EXPECT_EQ(error.key(), key);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  ProblemSpec spec = loaded_problem(generator("hyper_ball", 1));
  spec.point_sources = {{{0, 0, 0}, 1}, {{0, 0, 1.5}, 1}};
  refused(spec, "problem.point_sources[1].at", "the point (0, 0, 1.5) is outside the mesh");
  spec.point_sources.clear();
  spec.line_sources = {{{0, 0, 0}, {0, 0, 1.5}, "1"}};
  refused(spec, "problem.line_sources[0]", "the line leaves the mesh");
  spec.line_sources = {{{0, 0, 0}, {0, 0, 0}, "1"}};
  refused(spec, "problem.line_sources[0]", "no length");
  spec.line_sources = {{{0, 0, 0}, {0, 0, 0.5}, "1/(x - x)"}};
  refused(spec, "problem.line_sources[0].value", "finite");
}

TEST(PointLoads, SourcesByMaterialAndTheirTotal) {
  ProblemSpec spec = loaded_problem(box(4, 4, 4));
  spec.mesh.regions = {{"left", "x < 0.5"}, {"corner", "x > 0.5 && y > 0.5 && z > 0.5"}};
  spec.source = "2";
  spec.source_of_name = {{"left", "8*x"}, {"corner", "0"}};
  EXPECT_NEAR(Discretization(spec).assemble().integral_f, 1 + 2 * (0.5 - 0.125), 1e-13);
  spec.source_total = -7;
  EXPECT_NEAR(Discretization(spec).assemble().integral_f, -7, 1e-12);
  spec.point_sources = {{{0.5, 0.5, 0.5}, 3}};  // which are not scaled
  EXPECT_NEAR(Discretization(spec).assemble().integral_f, -4, 1e-12);
  spec.source = "0";
  spec.source_of_name.clear();
  EXPECT_THROW(Discretization{spec}, InputError);
}

}  // namespace
}  // namespace poisson::assembly
