#include "assembly/space/prolongation.hpp"

#include "assembly/discretization.hpp"
#include "tests/assembly/local_meshes.hpp"

#include <gtest/gtest.h>
#include <map>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

/// P from elements of order 1.
namespace poisson::assembly {

namespace {

ProblemSpec with_robin_values(std::string const& generator, int refinements, int order) {
  ProblemSpec spec;
  spec.mesh.generator = generator;
  spec.mesh.cells = {2, 3, 2};
  spec.mesh.refinements = refinements;
  spec.order = order;
  spec.coefficient = {{-1, {"1"}}};
  spec.source = "1";
  BoundaryCondition all;
  all.all_ids = true;
  all.type = BoundaryType::robin;
  all.alpha = "1";
  all.value = "0";
  spec.boundary = {all};
  return spec;
}

std::vector<double> times(CsrMatrix const& p, std::vector<double> const& x) {
  std::vector<double> y(static_cast<std::size_t>(p.n_rows), 0.0);
  for (std::int64_t row = 0; row < p.n_rows; ++row)
    for (std::int64_t e = p.row_ptr[row]; e < p.row_ptr[row + 1]; ++e)
      y[static_cast<std::size_t>(row)] += p.values[e] * x[static_cast<std::size_t>(p.columns[e])];
  return y;
}

std::vector<double> transposed_times(CsrMatrix const& p, std::vector<double> const& x) {
  std::vector<double> y(static_cast<std::size_t>(p.n_columns), 0.0);
  for (std::int64_t row = 0; row < p.n_rows; ++row)
    for (std::int64_t e = p.row_ptr[row]; e < p.row_ptr[row + 1]; ++e)
      y[static_cast<std::size_t>(p.columns[e])] += p.values[e] * x[static_cast<std::size_t>(row)];
  return y;
}

TEST(ProlongationOfOrderOne, HasAColumnForEveryVertexAndSumsToOne) {
  for (std::string const generator : {"box", "hyper_ball", "hyper_L", "cylinder"})
    for (int const refinements : {0, 1, 2})
      for (int const order : {1, 2, 3}) {
        ProblemSpec spec = with_robin_values(generator, refinements, order);
        Discretization const space(spec);
        spec.order = 1;
        Discretization const of_order_one(spec);
        CsrMatrix const p = space.prolongation_of_order_one();
        ASSERT_EQ(p.n_rows, space.summary().dofs);
        std::vector<bool> used(static_cast<std::size_t>(p.n_columns), false);
        std::int64_t units = 0;
        for (std::int64_t row = 0; row < p.n_rows; ++row) {
          double sum = 0;
          for (std::int64_t e = p.row_ptr[row]; e < p.row_ptr[row + 1]; ++e) {
            sum += p.values[e];
            used[static_cast<std::size_t>(p.columns[e])] = true;
            EXPECT_TRUE(e == p.row_ptr[row] || p.columns[e - 1] < p.columns[e]);
          }
          EXPECT_NEAR(sum, 1, 1e-14);
          units += p.row_ptr[row + 1] - p.row_ptr[row] == 1 && p.columns[p.row_ptr[row]] == row ? 1 : 0;
        }
        EXPECT_EQ(std::count(used.begin(), used.end(), true), of_order_one.summary().dofs) << generator;
        EXPECT_EQ(units, of_order_one.summary().dofs);
      }
}

/// On a box vertices are in the same order in both spaces, and trilinear functions are among those of order p: P^T A P is the
/// matrix of order 1.
TEST(ProlongationOfOrderOne, GivesTheMatrixOfOrderOne) {
  for (int const order : {2, 3, 4}) {
    ProblemSpec spec = with_robin_values("box", 0, order);
    spec.mesh.cells = {3, 2, 4};
    Discretization space(spec);
    spec.order = 1;
    Discretization of_order_one(spec);
    CsrMatrix const p = space.prolongation_of_order_one(), fine = space.assemble().matrix, coarse = of_order_one.assemble().matrix;
    std::vector<std::size_t> vertices;
    for (std::int64_t row = 0; row < p.n_rows; ++row)
      if (p.row_ptr[row + 1] - p.row_ptr[row] == 1)
        vertices.push_back(static_cast<std::size_t>(row));
    ASSERT_EQ(std::ssize(vertices), coarse.n_rows);
    std::vector<double> x(vertices.size()), at_vertices(static_cast<std::size_t>(p.n_columns), 0.0);
    for (std::size_t i = 0; i < x.size(); ++i)
      at_vertices[vertices[i]] = x[i] = std::sin(static_cast<double>(7 * i));
    std::vector<double> const result = transposed_times(p, times(fine, times(p, at_vertices))), expected = times(coarse, x);
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(result[vertices[i]], expected[i], 1e-13);
  }
}

/// With hanging nodes, too, functions of order 1 that are continuous are among those of order p.
TEST(ProlongationOfOrderOne, GivesTheMatrixOfOrderOneWithHangingNodes) {
  for (int const order : {2, 3})
    for (unsigned const seed : {1U, 2U}) {
      ProblemSpec spec = test::by_chance(test::flat_box({2, 3, 2}), order, 3, seed);
      spec.boundary = {test::on_all_boundaries(BoundaryType::robin, "x")};
      spec.boundary[0].alpha = "2";
      spec.coefficient = {{-1, {"1 + x"}}};
      spec.quadrature = order + 1;
      Discretization space(spec);
      spec.order = 1;
      Discretization of_order_one(spec);
      CsrMatrix const p = space.prolongation_of_order_one(), fine = space.assemble().matrix,
                      coarse = of_order_one.assemble().matrix;
      std::map<std::array<double, 3>, std::size_t> vertices;  // free ones
      for (std::int64_t row = 0; row < p.n_rows; ++row)
        if (p.row_ptr[row + 1] - p.row_ptr[row] == 1 && !space.hanging_nodes().constrained(row))
          vertices[space.point(row)] = static_cast<std::size_t>(row);
      std::vector<double> x(static_cast<std::size_t>(coarse.n_rows), 0.0), at_vertices(static_cast<std::size_t>(p.n_columns), 0.0);
      std::vector<std::size_t> vertex_of(x.size());
      std::size_t n_free = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (auto const unknown = static_cast<std::int64_t>(i); !of_order_one.hanging_nodes().constrained(unknown)) {
          vertex_of[i] = vertices.at(of_order_one.point(unknown));
          at_vertices[vertex_of[i]] = x[i] = std::sin(static_cast<double>(7 * i));
          ++n_free;
        }
      EXPECT_EQ(n_free, vertices.size());
      EXPECT_LT(n_free, x.size());
      std::vector<double> u = times(p, at_vertices);
      for (std::size_t i = 0; i < u.size(); ++i)
        if (space.hanging_nodes().constrained(static_cast<std::int64_t>(i)))  // rows of their own
          u[i] = 0;
      std::vector<double> const result = transposed_times(p, times(fine, u)), expected = times(coarse, x);
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!of_order_one.hanging_nodes().constrained(static_cast<std::int64_t>(i))) {
          EXPECT_NEAR(result[vertex_of[i]], expected[i], 1e-12);
        }
    }
}

}  // namespace
}  // namespace poisson::assembly
