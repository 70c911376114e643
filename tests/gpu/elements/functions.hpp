#pragma once

#include "gpu/core/expression_code.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

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

/// The entries xx, yy, zz, xy, xz, yz of a tensor that varies, and is positive definite everywhere (Gershgorin).
inline std::vector<Data> full_tensor() {
  return {sine(4, 1), constant(3), sine(5, 2), sine(0, 3), constant(-0.7), sine(0.2, 1)};
}
/// Entry (d, e) of the tensor whose components are one number, its diagonal, or its six entries.
inline double tensor_at(std::vector<Data> const& k, std::size_t d, std::size_t e, Point const& at) {
  if (d == e)
    return k[k.size() == 1 ? 0 : d].value(at);
  return k.size() == 6 ? k[d + e + 2].value(at) : 0;
}

/// `high` where the number that `condition` leaves is positive, else 1.
inline ExpressionCode one_or(double high, ExpressionCode condition) {
  using I = Instruction;
  for (I const& i :
       {I(Op::constant, 0.), I(Op::greater), I(Op::jump_if_zero), I(Op::constant, high), I(Op::jump), I(Op::constant, 1.)})
    condition.push_back(i);
  std::size_t const n = condition.size();
  condition[n - 4].target = static_cast<std::int32_t>(n - 1);
  condition[n - 2].target = static_cast<std::int32_t>(n);
  return condition;
}
/// `high` in every other octant of the unit cube, else 1.
inline Data octants(double high) {
  using I = Instruction;
  ExpressionCode code;
  for (Op const direction : {Op::x, Op::y, Op::z}) {
    for (I const& i : {I(direction), I(Op::constant, -0.5), I(Op::add)})
      code.push_back(i);
    if (direction != Op::x)
      code.push_back(I(Op::multiply));
  }
  return {one_or(high, code), [=](Point const& p) { return (p[0] - 0.5) * (p[1] - 0.5) * (p[2] - 0.5) > 0 ? high : 1; }};
}
/// `high` in a ball of radius 0.3 about the centre of the unit cube, else 1.
inline Data ball(double high) {
  using I = Instruction;
  ExpressionCode code{I(Op::constant, 0.09)};
  for (Op const direction : {Op::x, Op::y, Op::z})
    for (I const& i : {I(direction), I(Op::constant, -0.5), I(Op::add), I(direction), I(Op::constant, -0.5), I(Op::add),
                       I(Op::multiply), I(Op::constant, -1.), I(Op::multiply), I(Op::add)})
      code.push_back(i);
  return {one_or(high, code), [=](Point const& p) {
            double r2 = 0;
            for (double const v : p)
              r2 += (v - 0.5) * (v - 0.5);
            return r2 < 0.09 ? high : 1;
          }};
}

/// Nodes of cells whose edges grow by `growth`.
inline std::vector<double> graded(double origin, double extent, std::int64_t cells, double growth) {
  std::vector<double> x{origin};
  double edge = 1;
  for (std::int64_t i = 0; i < cells; ++i, edge *= growth)
    x.push_back(x.back() + edge);
  double const length = x.back() - origin;
  for (double& at : x)
    at = origin + extent * ((at - origin) / length);
  x.back() = origin + extent;
  return x;
}

}  // namespace poisson::testing
