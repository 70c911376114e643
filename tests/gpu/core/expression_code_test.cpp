#include "gpu/core/expression_code.hpp"

#include "gpu/core/separated_code.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace poisson::testing {

namespace {

/// Every operator, on operands of every kind: a constant, x, y, and combinations.
std::vector<ExpressionCode> codes() {
  std::vector<ExpressionCode> all;
  std::vector<ExpressionCode> const operands{{Instruction(Op::constant, 0.3)},
                                             {Instruction(Op::x)},
                                             {Instruction(Op::y)},
                                             {Instruction(Op::x), Instruction(Op::constant, 2), Instruction(Op::multiply)},
                                             {Instruction(Op::x), Instruction(Op::y), Instruction(Op::add)},
                                             {Instruction(Op::z), Instruction(Op::sin)}};
  for (auto op = static_cast<int>(Op::negate); op <= static_cast<int>(Op::maximum); ++op)
    for (ExpressionCode const& a : operands) {
      ExpressionCode code = a;
      if (operands_of(static_cast<Op>(op)) == 1) {
        code.emplace_back(static_cast<Op>(op));
        all.push_back(code);
        continue;
      }
      for (ExpressionCode const& b : operands) {
        code = a;
        code.insert(code.end(), b.begin(), b.end());
        code.emplace_back(static_cast<Op>(op));
        all.push_back(code);
      }
    }
  // sin(x) * y + sin(x) * (x - z), with a part of x alone below other values of the stack
  all.push_back({Instruction(Op::y), Instruction(Op::x), Instruction(Op::sin), Instruction(Op::multiply), Instruction(Op::x),
                 Instruction(Op::sin), Instruction(Op::x), Instruction(Op::z), Instruction(Op::subtract), Instruction(Op::multiply),
                 Instruction(Op::add)});
  // x > y ? x : z
  ExpressionCode branches{Instruction(Op::x), Instruction(Op::y),    Instruction(Op::greater), Instruction(Op::jump_if_zero),
                          Instruction(Op::x), Instruction(Op::jump), Instruction(Op::z)};
  branches[3].target = 6;
  branches[5].target = 7;
  all.push_back(branches);
  return all;
}

TEST(ExpressionCode, LinesHaveTheBitsOfPoints) {
  std::vector<double> x;
  for (int i = 0; i < 37; ++i)
    x.push_back(-1.25 + 0.07 * i);
  std::vector<double> values(x.size());
  for (ExpressionCode const& code : codes()) {
    LineEvaluator line(code, static_cast<std::int64_t>(x.size()), x.data());
    for (auto const& [y, z] : {std::pair{0.5, -0.25}, {-1.0, 0.75}, {0.0, 2.0}}) {  // what is kept from one line must fit the next
      line(y, z, values.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        double const expected = evaluate(code, x[i], y, z);
        if (std::isnan(expected))
          EXPECT_TRUE(std::isnan(values[i]));
        else
          EXPECT_EQ(values[i], expected) << "operator " << static_cast<int>(code.back().op) << " at " << x[i] << ", " << y;
      }
    }
  }
}

TEST(ExpressionCode, SeparatedCodeHasTheBitsOfTheCode) {
  for (ExpressionCode const& code : codes()) {
    SeparatedCode const parts = separate(code);
    for (std::array<double, 3> const& at : {std::array<double, 3>{0.5, -0.25, 0.75}, {-1.25, 2, 0}, {0, 0.75, -3}}) {
      std::array<double, 3> inner{};
      for (std::size_t d = 0; d < 3; ++d) {
        std::array<double, 3> others{99, 99, 99};
        others[d] = at[d];
        inner[d] = evaluate(parts.inner[d], others[0], others[1], others[2]);
      }
      double const value = evaluate(parts.outer, inner[0], inner[1], inner[2]), expected = evaluate(code, at[0], at[1], at[2]);
      EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected)))
          << "operator " << static_cast<int>(code.back().op) << ": " << value << ", " << expected;
    }
  }
}

std::string text_of(ExpressionCode const& code) {
  std::string text;
  for (Instruction const& i : code)
    text += i.op == Op::constant   ? "c"
            : i.op == Op::x        ? "x"
            : i.op == Op::y        ? "y"
            : i.op == Op::z        ? "z"
            : i.op == Op::multiply ? "*"
            : i.op == Op::add      ? "+"
            : i.op == Op::sin      ? "s"
                                   : "?";
  return text;
}

TEST(ExpressionCode, PartsOfOneCoordinateAreTakenOut) {
  auto const expect = [](ExpressionCode const& code, std::string const& outer, std::array<std::string, 3> const& inner) {
    SeparatedCode const parts = separate(code);
    EXPECT_EQ(text_of(parts.outer), outer) << text_of(code);
    for (std::size_t d = 0; d < 3; ++d)
      EXPECT_EQ(text_of(parts.inner[d]), inner[d]) << text_of(code);
  };
  Instruction const x(Op::x), y(Op::y), z(Op::z), sin(Op::sin), times(Op::multiply), plus(Op::add), two(Op::constant, 2),
      three(Op::constant, 3);
  expect({two, x, times, sin, two, y, times, sin, times, z, sin, times}, "xy*z*", {"cx*s", "cy*s", "zs"});
  expect({x, two, x, times, sin, plus}, "x", {"xcx*s+", "y", "z"});                        // x alone
  expect({two, three, times}, "cc*", {"x", "y", "z"});                                     // none
  expect({y, sin, x, y, sin, times, plus}, "yxy*+", {"x", "ys", "z"});                     // sin(y) twice
  expect({y, x, y, sin, times, plus}, "yxys*+", {"x", "y", "z"});                          // y, and sin(y)
  expect({two, y, times, x, three, y, times, times, plus}, "cy*xcy**+", {"x", "y", "z"});  // 2 y, and 3 y
  expect({x, y, z, sin, plus, times, two, times}, "xyz+*c*", {"x", "y", "zs"});
  EXPECT_EQ(text_of(separate(codes().back()).outer), text_of(codes().back())) << "branches";
}

TEST(ExpressionCode, DepthOfTheStack) {
  EXPECT_EQ(stack_depth({Instruction(Op::constant, 1)}), 1);
  EXPECT_EQ(stack_depth({Instruction(Op::x), Instruction(Op::y), Instruction(Op::add)}), 2);
  EXPECT_EQ(stack_depth(
                {Instruction(Op::x), Instruction(Op::y), Instruction(Op::z), Instruction(Op::multiply), Instruction(Op::multiply)}),
            3);
  EXPECT_EQ(stack_depth(codes().back()), 2);
}

TEST(ExpressionCode, ValuesByHand) {
  auto const value = [](ExpressionCode const& code) { return evaluate(code, 2, -3, 0.5); };
  EXPECT_EQ(value({Instruction(Op::y), Instruction(Op::constant, 2), Instruction(Op::modulo)}), 1);  // the sign of the divisor
  EXPECT_EQ(value({Instruction(Op::x), Instruction(Op::cube), Instruction(Op::negate)}), -8);
  EXPECT_EQ(value({Instruction(Op::x), Instruction(Op::y), Instruction(Op::maximum), Instruction(Op::z), Instruction(Op::minimum)}),
            0.5);
  EXPECT_EQ(
      value({Instruction(Op::y), Instruction(Op::sign), Instruction(Op::z), Instruction(Op::step), Instruction(Op::subtract)}), -2);
  EXPECT_EQ(value({Instruction(Op::x), Instruction(Op::logical_not), Instruction(Op::z), Instruction(Op::logical_or)}), 1);
}

}  // namespace

}  // namespace poisson::testing
