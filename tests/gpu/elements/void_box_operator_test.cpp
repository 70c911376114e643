#include "gpu/elements/void_box_operator.hpp"

#include "gpu/core/expression_code.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/quad.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

/// What void leaves of a box, beside the matrix of the whole box without the rows and columns of other nodes.
namespace poisson::testing::void_box_tests {

namespace {

using Type = BoxFace::Type;
using Counts = std::array<std::int64_t, 3>;

struct VoidBox {
  BoxElements box;
  std::vector<std::uint8_t> labels;
  std::vector<std::array<double, 3>> k{{0, 0, 0}};
  std::vector<std::int32_t> nodes;

  /// u is given at x = 0. A cell stays where holds(x, y, z) says so.
  template <class Holds>
  VoidBox(Counts const& cells, std::vector<std::array<double, 3>> const& of_labels, Holds const& holds) {
    k.insert(k.end(), of_labels.begin(), of_labels.end());
    for (std::size_t d = 0; d < 3; ++d) {
      box.nodes[d] = cells[d] + 1;
      box.cell[d] = 0.25;
    }
    box.faces[0].type = Type::dirichlet;
    std::mt19937 random(11);
    std::uniform_int_distribution<int> label(1, static_cast<int>(of_labels.size()));
    std::vector<std::uint8_t> of_node(static_cast<std::size_t>(box.n_rows()), 0);
    for (std::int64_t z = 0; z < cells[2]; ++z)
      for (std::int64_t y = 0; y < cells[1]; ++y)
        for (std::int64_t x = 0; x < cells[0]; ++x) {
          bool const stays = holds(x, y, z);
          labels.push_back(stays ? static_cast<std::uint8_t>(label(random)) : std::uint8_t{0});
          for (int a = 0; stays && a < 8; ++a)
            of_node[static_cast<std::size_t>(((z + (a >> 2)) * box.nodes[1] + y + (a >> 1 & 1)) * box.nodes[0] + x + (a & 1))] = 1;
        }
    for (std::size_t node = 0; node < of_node.size(); ++node)
      if (of_node[node] != 0)
        nodes.push_back(static_cast<std::int32_t>(node));
  }
  [[nodiscard]] std::unique_ptr<LabelOperator> of_box(Context& context) const {
    return std::make_unique<LabelOperator>(context, box, uploaded(context, labels), k);
  }
  [[nodiscard]] VoidBoxOperator on(Context& context) const { return {context, of_box(context), k, uploaded(context, nodes)}; }
};

/// Cells at random, on lines along x that begin where u is given, so that all of them hang together with that side.
VoidBox random_box(Counts const& cells, double share, std::vector<std::array<double, 3>> const& of_labels) {
  std::mt19937 random(17);
  std::uniform_real_distribution<double> any(0, 1);
  bool before = true;
  return {cells, of_labels, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
            before = (x == 0 || before) && (any(random) < share || (y % 3 == 0 && z % 4 == 0));
            return before;
          }};
}

std::vector<std::array<double, 3>> const one{{2, 2, 2}}, two{{1, 1, 1}, {100, 20, 30}};

/// Reference: sums over entries of the whole box.
template <class Value, class Entry>
std::vector<Value> sums_of(VoidBox const& of, CsrMatrix const& whole, Entry const& entry) {
  std::vector<std::int32_t> row_of(static_cast<std::size_t>(whole.n_rows), -1);
  for (std::size_t row = 0; row < of.nodes.size(); ++row)
    row_of[static_cast<std::size_t>(of.nodes[row])] = static_cast<std::int32_t>(row);
  std::vector<Value> sums(of.nodes.size(), Value(0));
  for (std::size_t row = 0; row < of.nodes.size(); ++row)
    for (std::int64_t e = whole.row_ptr[of.nodes[row]]; e < whole.row_ptr[of.nodes[row] + 1]; ++e)
      if (std::int32_t const column = row_of[static_cast<std::size_t>(whole.columns[e])]; column >= 0)
        sums[row] += entry(row, static_cast<std::size_t>(column), whole.values[e]);
      else
        EXPECT_EQ(whole.values[e], 0) << "a node that is left is coupled with one that is not";
  return sums;
}

}  // namespace

template <class B>
class VoidBoxes : public OnBackend<B::value> {
protected:
  template <class V>
  void check_in(VoidBox const& of) {
    VoidBoxOperator const a = of.on(*this->context);
    CsrMatrix const whole = of.of_box(*this->context)->to_csr();
    std::int64_t const n = a.n_rows();
    auto const x = random_numbers<V>(n, 3), b = random_numbers<V>(n, 5);
    auto const expected =
        sums_of<double>(of, whole, [&](std::size_t, std::size_t column, double v) { return v * static_cast<double>(x[column]); });
    auto const diagonal =
        sums_of<double>(of, whole, [](std::size_t row, std::size_t column, double v) { return row == column ? v : 0; });
    double const tolerance = 300 * static_cast<double>(std::numeric_limits<V>::epsilon());
    Array<V> const x_there = uploaded(*this->context, x);
    Array<V> y = uploaded(*this->context, b), d(*this->context, n), of_dot(*this->context, 1);
    Array<std::int32_t> const stop = uploaded(*this->context, std::vector<std::int32_t>{0});
    LinearOperator<V> const& in_v = a;
    in_v.product(V(-2), x_there.data(), V(0.5), y.data());
    auto const with_factors = downloaded(y);
    in_v.product_dot(x_there.data(), y.data(), of_dot.data(), stop.data());
    auto const product = downloaded(y);
    in_v.diagonal(d.data());
    auto const found = downloaded(d);
    double dot = 0, size = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(product[i]), expected[i], tolerance * diagonal[i]) << i;
      ASSERT_NEAR(static_cast<double>(with_factors[i]), 0.5 * static_cast<double>(b[i]) - 2 * expected[i],
                  tolerance * (diagonal[i] + 1))
          << i;
      ASSERT_NEAR(static_cast<double>(found[i]), diagonal[i], tolerance * diagonal[i]) << i;
      dot += static_cast<double>(x[i]) * expected[i];
      size += diagonal[i];
    }
    EXPECT_NEAR(static_cast<double>(downloaded(of_dot)[0]), dot, tolerance * size);
  }
};
TYPED_TEST_SUITE(VoidBoxes, Backends, BackendNames);

TYPED_TEST(VoidBoxes, ProductsInDoubleAndSingle) {
  for (auto const& of : {random_box({7, 6, 9}, 0.6, one), random_box({33, 12, 10}, 0.8, two), random_box({2, 2, 2}, 1, one)}) {
    this->template check_in<double>(of);
    this->template check_in<float>(of);
  }
}

TYPED_TEST(VoidBoxes, DoubleDoubleTheCheckAndEntries) {
  VoidBox const of = random_box({11, 9, 8}, 0.7, two);
  VoidBoxOperator const a = of.on(*this->context);
  CsrMatrix const csr = a.to_csr();
  std::int64_t const n = a.n_rows();
  auto const x = random_numbers<DoubleDouble>(n, 11);
  auto const b = random_numbers<double>(n, 13);
  Vector<DoubleDouble> const x_there(*this->context, std::span<DoubleDouble const>(x));
  Vector<DoubleDouble> y(*this->context, n);
  Array<double> const b_there = uploaded(*this->context, b);
  Array<double> r(*this->context, n);
  // The whole box, whose other entries are 0.
  auto const labels = of.of_box(*this->context);
  std::vector<DoubleDouble> x_of_box(static_cast<std::size_t>(labels->n_rows()));
  std::vector<double> b_of_box(x_of_box.size(), 0);
  for (std::size_t i = 0; i < of.nodes.size(); ++i) {
    x_of_box[static_cast<std::size_t>(of.nodes[i])] = x[i];
    b_of_box[static_cast<std::size_t>(of.nodes[i])] = b[i];
  }
  Vector<DoubleDouble> const x_whole(*this->context, std::span<DoubleDouble const>(x_of_box));
  Vector<DoubleDouble> y_whole(*this->context, labels->n_rows());
  Array<double> const b_whole = uploaded(*this->context, b_of_box);
  Array<double> r_whole(*this->context, labels->n_rows());
  labels->product(DoubleDouble(1), x_whole.data(), DoubleDouble(0), y_whole.data());
  ASSERT_TRUE(labels->residual(x_whole.data().hi, x_whole.data().lo, b_whole.data(), r_whole.data()));
  auto const exact = download(y_whole);
  auto const exact_residual = downloaded(r_whole);
  a.product(DoubleDouble(1), x_there.data(), DoubleDouble(0), y.data());
  ASSERT_TRUE(a.residual(x_there.data().hi, x_there.data().lo, b_there.data(), r.data()));
  auto const found = download(y);
  auto const residual = downloaded(r);
  std::vector<double> of_csr(static_cast<std::size_t>(n), 0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t e = csr.row_ptr[i]; e < csr.row_ptr[i + 1]; ++e)
      of_csr[static_cast<std::size_t>(i)] += csr.values[e] * x[static_cast<std::size_t>(csr.columns[e])].hi;
  for (std::size_t i = 0; i < of_csr.size(); ++i) {
    auto const node = static_cast<std::size_t>(of.nodes[i]);
    ASSERT_EQ(found[i].hi, exact[node].hi) << i;
    ASSERT_EQ(found[i].lo, exact[node].lo) << i;
    ASSERT_EQ(residual[i], exact_residual[node]) << i;
    ASSERT_NEAR(of_csr[i], found[i].hi, 1e-12) << i;
  }
  auto const copy = a.copy_to(*this->context);
  EXPECT_EQ(copy->to_csr().values, csr.values);
  EXPECT_EQ(copy->to_csr().columns, csr.columns);
}

TYPED_TEST(VoidBoxes, MultigridOfTheWholeBoxIsGoodForWhatIsLeft) {
  for (double const most : {-0.5, 0.5}) {  // two thirds of the cells, and a third, are void
    VoidBox const of({32, 30, 31}, one, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      auto const wave = [](std::int64_t i) { return std::sin(0.6 * static_cast<double>(i)); };
      return wave(x) + wave(y) + wave(z) < most;
    });
    VoidBoxOperator const a = of.on(*this->context);
    Array<double> const b = uploaded(*this->context, random_numbers<double>(a.n_rows(), 5));
    SolverOptions options;
    options.preconditioner = PreconditionerKind::multigrid;
    options.tolerance = 1e-10;
    Array<double> x, x_low, r(*this->context, a.n_rows());
    SolverResult const result = solve(a, b, x, x_low, options);
    EXPECT_EQ(result.status, SolverStatus::converged);
    EXPECT_LE(result.iterations, 12);
    ASSERT_TRUE(a.residual(x.data(), nullptr, b.data(), r.data()));
    double of_r = 0, of_b = 0;
    auto const left = downloaded(r), right = downloaded(b);
    for (std::size_t i = 0; i < left.size(); ++i) {
      of_r += left[i] * left[i];
      of_b += right[i] * right[i];
    }
    EXPECT_LE(std::sqrt(of_r / of_b), 2e-10);
    // Several right-hand sides at once have the bits of one on the host; on a device dots may be added in another order.
    std::vector<Array<double>> columns, xs(3), lows(3);
    for (unsigned const seed : {7U, 5U, 9U})
      columns.push_back(uploaded(*this->context, random_numbers<double>(a.n_rows(), seed)));
    auto const results = solve_block(a, columns, xs, lows, options);
    ASSERT_EQ(results.size(), 3U);
    auto const at_once = downloaded(xs[1]), alone = downloaded(x);
    if (this->context->backend() == Backend::cpu) {
      EXPECT_EQ(results[1].iterations, result.iterations);
      EXPECT_EQ(at_once, alone);
    }
    double largest = 0;
    for (double const value : alone)
      largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < alone.size(); ++i)
      ASSERT_NEAR(at_once[i], alone[i], 1e-8 * largest) << i;
  }
}

/// -k u'' = 0 in a duct along x, u = 0 at x = 0 and 1 at the other end: the rows of what is left say it, and the whole box's sides
/// give the right-hand side.
TYPED_TEST(VoidBoxes, ASystemFromAProblem) {
  BoxProblem problem;
  problem.cells = {6, 5, 4};
  problem.extent = {3, 1, 1};
  ExpressionCode const zero{Instruction(Op::constant, 0)}, unit{Instruction(Op::constant, 1)};
  problem.coefficient = {zero};
  problem.coefficient_on_host = [](std::int64_t, std::int64_t, int, double*) { FAIL() << "materials say it all"; };
  problem.source = zero;
  problem.materials.emplace();
  problem.materials->has_void = true;
  problem.materials->coefficients = {{zero}, {{Instruction(Op::constant, 7)}}};
  problem.materials->of_planes = [](std::int64_t first, std::int64_t count, std::uint8_t* numbers) {
    for (std::int64_t z = 0; z < count; ++z)
      for (std::int64_t y = 0; y < 5; ++y)
        for (std::int64_t x = 0; x < 6; ++x)
          *numbers++ = first + z == 1 && y >= 2 ? 1 : 0;
  };
  problem.faces[0] = {BoxProblem::Face::Type::dirichlet, 0, zero, {}};
  problem.faces[1] = {BoxProblem::Face::Type::dirichlet, 1, unit, {}};
  for (std::size_t face = 2; face < 6; ++face)
    problem.faces[face] = {BoxProblem::Face::Type::neumann, 2, zero, {}};
  std::vector<std::int32_t> nodes;
  for (std::int32_t z = 1; z <= 2; ++z)
    for (std::int32_t y = 2; y <= 5; ++y)
      for (std::int32_t x = 0; x <= 6; ++x)
        nodes.push_back((z * 6 + y) * 7 + x);
  VoidBoxSystem const system = make_void_box(*this->context, problem, nodes);
  ASSERT_EQ(system.matrix->n_rows(), std::ssize(nodes));
  std::vector<double> u;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::int32_t const x = nodes[i] % 7;
    u.push_back(x == 0 || x == 6 ? 0 : x / 6.0);
  }
  Array<double> const of_u = uploaded(*this->context, u);
  Array<double> r(*this->context, of_u.size());
  ASSERT_TRUE(system.matrix->residual(of_u.data(), nullptr, system.rhs.data(), r.data()));
  for (double const value : downloaded(r))
    EXPECT_NEAR(value, 0, 1e-13);
}

}  // namespace poisson::testing::void_box_tests
