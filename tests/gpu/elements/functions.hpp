#pragma once

#include "gpu/core/expression_code.hpp"

#include <array>
#include <cmath>
#include <functional>

namespace poisson::testing {

using Point = std::array<double, 3>;

/// A function as code, and in C++.
struct Data {
  ExpressionCode code;
  std::function<double(Point const&)> value;
};

inline Data constant(double c) {
  return {{Instruction(Op::constant, c)}, [c](Point const&) { return c; }};
}
/// a + b x y + c z
inline Data polynomial(double a, double b, double c) {
  using I = Instruction;
  return {{I(Op::constant, a), I(Op::constant, b), I(Op::x), I(Op::multiply), I(Op::y), I(Op::multiply), I(Op::add),
           I(Op::constant, c), I(Op::z), I(Op::multiply), I(Op::add)},
          [=](Point const& p) { return a + b * p[0] * p[1] + c * p[2]; }};
}
/// a + sin(b x + z)
inline Data sine(double a, double b) {
  using I = Instruction;
  return {{I(Op::constant, a), I(Op::constant, b), I(Op::x), I(Op::multiply), I(Op::z), I(Op::add), I(Op::sin), I(Op::add)},
          [=](Point const& p) { return a + std::sin(b * p[0] + p[2]); }};
}
/// z > 0.5 ? a : b x
inline Data branches(double a, double b) {
  using I = Instruction;
  ExpressionCode code{I(Op::z),    I(Op::constant, 0.5), I(Op::greater), I(Op::jump_if_zero), I(Op::constant, a),
                      I(Op::jump), I(Op::constant, b),   I(Op::x),       I(Op::multiply)};
  code[3].target = 6;
  code[5].target = 9;
  return {code, [=](Point const& p) { return p[2] > 0.5 ? a : b * p[0]; }};
}

}  // namespace poisson::testing
