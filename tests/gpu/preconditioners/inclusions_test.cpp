#include "gpu/preconditioners/inclusions.hpp"

#include "gpu/elements/label_operator.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

/// Parts of a box whose k is far above that around them.
namespace poisson::testing::inclusion_tests {

namespace {

using Counts = std::array<std::int64_t, 3>;

/// Cells first <= cell < end have the label 1.
struct Part {
  Counts first, end;
};

/// A box with parts of another k, and values that are given at x = 0 and at the largest x.
struct Problem {
  Counts cells{24, 20, 16};
  std::vector<Part> parts;
  std::array<double, 3> k_around{1, 1, 1}, k_inside{1e6, 1e6, 1e6};
  std::array<double, 3> cell{1, 1, 1};

  [[nodiscard]] BoxElements box() const {
    BoxElements result;
    for (std::size_t d = 0; d < 3; ++d)
      result.nodes[d] = cells[d] + 1;
    result.cell = cell;
    result.faces.fill({BoxFace::Type::neumann});
    result.faces[0].type = result.faces[1].type = BoxFace::Type::dirichlet;
    return result;
  }
  [[nodiscard]] bool is_inside(std::int64_t x, std::int64_t y, std::int64_t z) const {
    bool found = false;
    for (Part const& part : parts)
      found = found || (part.first[0] <= x && x < part.end[0] && part.first[1] <= y && y < part.end[1] && part.first[2] <= z &&
                        z < part.end[2]);
    return found;
  }
  [[nodiscard]] LabelOperator labels(Context& context) const {
    std::vector<std::uint8_t> labels;
    for (std::int64_t z = 0; z < cells[2]; ++z)
      for (std::int64_t y = 0; y < cells[1]; ++y)
        for (std::int64_t x = 0; x < cells[0]; ++x)
          labels.push_back(is_inside(x, y, z) ? 1 : 0);
    std::vector<std::array<double, 3>> const k{k_around, k_inside};
    return {context, box(), uploaded(context, labels), k};
  }
};

std::unique_ptr<Matrix> stored(LabelOperator const& a) {
  Counts const nodes = a.view().box.nodes;
  Array<double> diagonals(a.context(), half_stencil::diagonals * a.n_rows());
  a.fill_diagonals(diagonals.data());
  std::vector<std::int32_t> offsets;
  for (int s = 0; s < half_stencil::diagonals; ++s)
    offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(s, nodes[0], nodes[0] * nodes[1])));
  return HalfCds::from_diagonals(a.context(), a.n_rows(), offsets, std::move(diagonals), 1);
}

std::vector<double> waves(std::int64_t n, double step) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < n; ++i)
    result.push_back(std::sin(step * static_cast<double>(i)));
  return result;
}

/// B r, with z = 0 before.
std::vector<double> applied(Context& context, Inclusions const& inclusions, std::vector<double> const& r) {
  Array<std::int32_t> stop(context, 1);
  stop.set_zero();
  Array<double> z(context, std::ssize(r));
  z.set_zero();
  inclusions.add(uploaded(context, r).data(), z.data(), stop.data());
  return downloaded(z);
}
std::vector<double> product(LabelOperator const& a, std::vector<double> const& x) {
  Array<double> y(a.context(), a.n_rows());
  static_cast<LinearOperator<double> const&>(a).product(1.0, uploaded(a.context(), x).data(), 0.0, y.data());
  return downloaded(y);
}

std::vector<Part> const three{{{3, 3, 3}, {6, 7, 6}}, {{12, 12, 9}, {13, 13, 10}}, {{16, 2, 2}, {21, 6, 5}}};

template <class B>
class InclusionTest : public OnBackend<B::value> {};
TYPED_TEST_SUITE(InclusionTest, Backends, BackendNames);

}  // namespace

// One of three cells, one of one cell, and one that is bent and touches itself by an edge alone. What touches a given value is
// none, nor is one whose k is lower.
TYPED_TEST(InclusionTest, PartsThatTouchNoGivenValueAreFound) {
  auto const count = [&](Problem const& problem) {
    LabelOperator const a = problem.labels(*this->context);
    auto const by_labels = Inclusions::find(a, problem.box().nodes), by_rows = Inclusions::find(*stored(a), problem.box().nodes);
    EXPECT_EQ(by_labels == nullptr, by_rows == nullptr);
    if (by_labels != nullptr && by_rows != nullptr) {
      EXPECT_EQ(by_labels->count(), by_rows->count());
    }
    return by_labels == nullptr ? 0 : by_labels->count();
  };
  EXPECT_EQ(count({.parts = three}), 3);
  std::vector<Part> parts = three;
  parts.push_back({{0, 10, 10}, {3, 12, 12}});  // at a value
  EXPECT_EQ(count({.parts = parts}), 3);
  parts.push_back({{3, 12, 12}, {5, 14, 14}});  // at that by an edge
  EXPECT_EQ(count({.parts = parts}), 3);
  parts.push_back({{13, 13, 10}, {14, 14, 11}});  // at the second one by a vertex
  EXPECT_EQ(count({.parts = parts}), 3);
  parts.push_back({{9, 0, 0}, {11, 2, 2}});  // at natural conditions
  EXPECT_EQ(count({.parts = parts}), 4);
  EXPECT_EQ(count({.parts = three, .k_around = {1e6, 1e6, 1e6}, .k_inside = {1, 1, 1}}), 0);
  EXPECT_EQ(count({.parts = three, .k_inside = {5, 5, 5}}), 0);
  EXPECT_EQ(count({.parts = {}}), 0);
  EXPECT_EQ(count({.cells = {6, 6, 6}, .parts = {{{1, 0, 0}, {5, 6, 6}}}}), 0);                                      // most nodes
  EXPECT_EQ(count({.cells = {90, 90, 90}, .parts = {{{5, 5, 5}, {56, 56, 56}}, {{70, 70, 70}, {72, 73, 74}}}}), 1);  // one is large
  EXPECT_EQ(count({.parts = three, .k_around = {1, 2, 3}, .k_inside = {1e7, 2e6, 3e7}, .cell = {1, 1.5, 0.8}}), 3);
}

// B is symmetric, and B A the projection on e_c that is orthogonal by A: B A B = B where these share no cell. They are constant on
// an inclusion, and 0 far from it.
TYPED_TEST(InclusionTest, CorrectionsAreOrthogonalProjections) {
  Problem const problem{.parts = three};
  LabelOperator const a = problem.labels(*this->context);
  Counts const nodes = problem.box().nodes;
  auto const inclusions = Inclusions::find(a, nodes);
  ASSERT_NE(inclusions, nullptr);
  std::vector<double> const r = waves(a.n_rows(), 0.7), s = waves(a.n_rows(), 1.3);
  std::vector<double> const br = applied(*this->context, *inclusions, r), bs = applied(*this->context, *inclusions, s),
                            by_rows = applied(*this->context, *Inclusions::find(*stored(a), nodes), r),
                            again = applied(*this->context, *inclusions, product(a, br));
  double r_bs = 0, s_br = 0, largest = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    r_bs += r[i] * bs[i];
    s_br += s[i] * br[i];
    largest = std::max(largest, std::abs(br[i]));
  }
  EXPECT_NEAR(r_bs, s_br, 1e-12 * std::abs(r_bs));
  EXPECT_GT(largest, 0);
  for (std::size_t i = 0; i < r.size(); ++i) {
    EXPECT_NEAR(by_rows[i], br[i], 1e-12 * largest);
    EXPECT_NEAR(again[i], br[i], 1e-8 * largest);  // of couplings that are a millionth
  }
  for (std::int64_t z = 0; z < nodes[2]; ++z)
    for (std::int64_t y = 0; y < nodes[1]; ++y)
      for (std::int64_t x = 0; x < nodes[0]; ++x) {
        double const value = br[static_cast<std::size_t>((z * nodes[1] + y) * nodes[0] + x)];
        bool near = false;
        for (Part const& part : three) {
          std::int64_t const inside = (part.first[2] * nodes[1] + part.first[1]) * nodes[0] + part.first[0];
          Counts const at{x, y, z};
          bool within = true, in_layers = true;
          for (std::size_t d = 0; d < 3; ++d) {
            within = within && part.first[d] <= at[d] && at[d] <= part.end[d];
            in_layers = in_layers && part.first[d] - 2 <= at[d] && at[d] <= part.end[d] + 2;
          }
          near = near || in_layers;
          if (within) {
            EXPECT_NEAR(value, br[static_cast<std::size_t>(inside)], 1e-4 * largest);
          }
        }
        if (!near) {
          EXPECT_EQ(value, 0);
        }
      }
  // Beside a stop nothing is done, and what is there stays.
  Array<std::int32_t> const stop = uploaded(*this->context, std::vector<std::int32_t>{1});
  Array<double> z = uploaded(*this->context, s);
  inclusions->add(uploaded(*this->context, r).data(), z.data(), stop.data());
  EXPECT_EQ(downloaded(z), s);
}

// Cubes behind walls of one cell, a million times as conductive as these: coarse levels do not see the walls.
TYPED_TEST(InclusionTest, IterationsDoNotGrowWithTheirNumber) {
  Problem problem{.cells = {48, 48, 48}, .parts = {}, .k_around = {1e6, 1e6, 1e6}, .k_inside = {1, 1, 1}};
  for (std::int64_t z = 0; z < 6; ++z)
    for (std::int64_t y = 0; y < 6; ++y)
      for (std::int64_t x = 0; x < 6; ++x) {
        Counts const first{8 * x + 1 + (y + z) % 2, 8 * y + 1 + (x + z) % 2, 8 * z + 1 + x % 2};
        std::int64_t const edge = 4 + (x + y + z) % 3;
        for (std::size_t d = 0; d < 3; ++d)
          for (std::int64_t const side : {std::int64_t{0}, edge - 1}) {
            Part wall{first, {first[0] + edge, first[1] + edge, first[2] + edge}};
            wall.first[d] += side;
            wall.end[d] = wall.first[d] + 1;
            problem.parts.push_back(wall);
          }
      }
  LabelOperator const a = problem.labels(*this->context);
  auto const rows = stored(a);
  std::vector<double> b = waves(a.n_rows(), 0.3);
  for (std::int64_t i = 0; i < a.n_rows(); ++i)
    if (i % 49 == 0 || i % 49 == 48)
      b[static_cast<std::size_t>(i)] = 0;
  Array<double> const rhs = uploaded(*this->context, b);
  for (Matrix const* const matrix : {static_cast<Matrix const*>(&a), static_cast<Matrix const*>(rows.get())}) {
    SolverOptions options;
    options.method = Method::cg;
    options.preconditioner = PreconditionerKind::multigrid;
    options.box_nodes = problem.box().nodes;
    options.tolerance = 1e-10;
    Array<double> x, x_low;
    SolverResult const result = solve(*matrix, rhs, x, x_low, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_LE(result.iterations, 18);
    std::vector<double> const ax = product(a, downloaded(x));
    double residual = 0, norm = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      residual += (b[i] - ax[i]) * (b[i] - ax[i]);
      norm += b[i] * b[i];
    }
    EXPECT_LE(std::sqrt(residual), 2e-10 * std::sqrt(norm));
  }
}

}  // namespace poisson::testing::inclusion_tests
