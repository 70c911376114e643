#pragma once

#include "gpu/core/host_device.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Postfix code of a stack machine, to which functions of x, y and z are compiled. The host and devices run the same code.
namespace poisson {

// One list of the operators, so that the evaluations below cannot differ: name, value for the operands a, or a and b.
#define POISSON_UNARY_OPERATORS(OPERATOR)                                                                                          \
  OPERATOR(negate, -a)                                                                                                             \
  OPERATOR(square, a* a)                                                                                                           \
  OPERATOR(cube, a* a* a)                                                                                                          \
  OPERATOR(logical_not, a == 0 ? 1. : 0.)                                                                                          \
  OPERATOR(sin, std::sin(a))                                                                                                       \
  OPERATOR(cos, std::cos(a))                                                                                                       \
  OPERATOR(tan, std::tan(a))                                                                                                       \
  OPERATOR(asin, std::asin(a))                                                                                                     \
  OPERATOR(acos, std::acos(a))                                                                                                     \
  OPERATOR(atan, std::atan(a))                                                                                                     \
  OPERATOR(sinh, std::sinh(a))                                                                                                     \
  OPERATOR(cosh, std::cosh(a))                                                                                                     \
  OPERATOR(tanh, std::tanh(a))                                                                                                     \
  OPERATOR(asinh, std::asinh(a))                                                                                                   \
  OPERATOR(acosh, std::acosh(a))                                                                                                   \
  OPERATOR(atanh, std::atanh(a))                                                                                                   \
  OPERATOR(exp, std::exp(a))                                                                                                       \
  OPERATOR(log, std::log(a))                                                                                                       \
  OPERATOR(log2, std::log2(a))                                                                                                     \
  OPERATOR(log10, std::log10(a))                                                                                                   \
  OPERATOR(sqrt, std::sqrt(a))                                                                                                     \
  OPERATOR(cbrt, std::cbrt(a))                                                                                                     \
  OPERATOR(abs, std::abs(a))                                                                                                       \
  OPERATOR(sign, a > 0 ? 1. : a < 0 ? -1. : a)                                                                                     \
  OPERATOR(step, a >= 0 ? 1. : a < 0 ? 0. : a)                                                                                     \
  OPERATOR(floor, std::floor(a))                                                                                                   \
  OPERATOR(ceil, std::ceil(a))                                                                                                     \
  OPERATOR(round, std::round(a))                                                                                                   \
  OPERATOR(rint, std::rint(a))                                                                                                     \
  OPERATOR(erf, std::erf(a))                                                                                                       \
  OPERATOR(erfc, std::erfc(a))

// modulo has the sign of the divisor, as in most mathematical software and unlike C's fmod.
#define POISSON_BINARY_OPERATORS(OPERATOR)                                                                                         \
  OPERATOR(add, a + b)                                                                                                             \
  OPERATOR(subtract, a - b)                                                                                                        \
  OPERATOR(multiply, a* b)                                                                                                         \
  OPERATOR(divide, a / b)                                                                                                          \
  OPERATOR(power, std::pow(a, b))                                                                                                  \
  OPERATOR(less, a < b ? 1. : 0.)                                                                                                  \
  OPERATOR(less_equal, a <= b ? 1. : 0.)                                                                                           \
  OPERATOR(greater, a > b ? 1. : 0.)                                                                                               \
  OPERATOR(greater_equal, a >= b ? 1. : 0.)                                                                                        \
  OPERATOR(equal, a == b ? 1. : 0.)                                                                                                \
  OPERATOR(not_equal, a != b ? 1. : 0.)                                                                                            \
  OPERATOR(logical_and, a != 0 && b != 0 ? 1. : 0.)                                                                                \
  OPERATOR(logical_or, a != 0 || b != 0 ? 1. : 0.)                                                                                 \
  OPERATOR(atan2, std::atan2(a, b))                                                                                                \
  OPERATOR(hypot, std::hypot(a, b))                                                                                                \
  OPERATOR(modulo, a - b * std::floor(a / b))                                                                                      \
  OPERATOR(minimum, b < a || std::isnan(b) ? b : a)                                                                                \
  OPERATOR(maximum, b > a || std::isnan(b) ? b : a)

enum class Op : std::uint8_t {
  constant,  ///< pushes `value`
  x,
  y,
  z,
  jump_if_zero,  ///< pops a value; when it is 0 the instruction `target` is next
  jump,
#define POISSON_NAME(name, value) name,
  POISSON_UNARY_OPERATORS(POISSON_NAME) POISSON_BINARY_OPERATORS(POISSON_NAME)
#undef POISSON_NAME
};

/// Values that an operator pops; it pushes one.
[[nodiscard]] POISSON_HOST_DEVICE constexpr int operands_of(Op op) {
  return op < Op::negate ? 0 : op < Op::add ? 1 : 2;
}

struct Instruction {
  Op op{};
  union {
    double value;
    std::int64_t target;
  };
  Instruction(Op o, double v) : op(o), value(v) {}
  explicit Instruction(Op o) : op(o), value(0) {}
};

using ExpressionCode = std::vector<Instruction>;

/// Most values that any code has on its stack.
inline constexpr int expression_stack_size = 256;

/// Code as evaluations see it, in the memory of whoever runs it.
struct ExpressionView {
  Instruction const* instructions = nullptr;
  std::int32_t size = 0;
};

/// Values that the stack needs room for. Precondition: operands and branches match, as the compiler of expressions makes them.
[[nodiscard]] int stack_depth(ExpressionCode const& code);

/// The value at (x, y, z). Precondition: stack_depth is at most `stack_size`.
template <int stack_size>
[[nodiscard]] POISSON_HOST_DEVICE inline double evaluate(ExpressionView code, double x, double y, double z) {
  // The topmost value is in a register; what lies below it starts at stack[1].
  double stack[stack_size + 1];
  double* below = stack;
  double top = 0;
  for (std::int32_t i = 0; i < code.size; ++i) {
    Instruction const& instruction = code.instructions[i];
    switch (instruction.op) {
    case Op::constant:
      *below++ = top;
      top = instruction.value;
      break;
    case Op::x:
      *below++ = top;
      top = x;
      break;
    case Op::y:
      *below++ = top;
      top = y;
      break;
    case Op::z:
      *below++ = top;
      top = z;
      break;
    case Op::jump_if_zero: {
      bool const taken = top == 0;
      top = *--below;
      if (taken)
        i = static_cast<std::int32_t>(instruction.target) - 1;
      break;
    }
    case Op::jump:
      i = static_cast<std::int32_t>(instruction.target) - 1;
      break;
#define POISSON_CASE(name, value)                                                                                                  \
  case Op::name: {                                                                                                                 \
    double const a = top;                                                                                                          \
    top = value;                                                                                                                   \
    break;                                                                                                                         \
  }
      POISSON_UNARY_OPERATORS(POISSON_CASE)
#undef POISSON_CASE
#define POISSON_CASE(name, value)                                                                                                  \
  case Op::name: {                                                                                                                 \
    double const b = top, a = *--below;                                                                                            \
    top = value;                                                                                                                   \
    break;                                                                                                                         \
  }
      POISSON_BINARY_OPERATORS(POISSON_CASE)
#undef POISSON_CASE
    }
  }
  return top;
}

[[nodiscard]] inline double evaluate(ExpressionCode const& code, double x, double y, double z) {
  return evaluate<expression_stack_size>({code.data(), static_cast<std::int32_t>(code.size())}, x, y, z);
}

/// Values of an expression on lines of points with equal y and z, on the host: for tensor products of points. Operators are applied
/// to whole lines; what does not depend on x is computed once a line, and what depends on x alone once for all lines. Where the
/// code has branches, which points may take differently, points are evaluated one after another. Not shared between threads.
class LineEvaluator {
public:
  /// `code` and the n coordinates x outlive it.
  LineEvaluator(ExpressionCode const& code, std::int64_t n, double const* x);
  /// values[i] = code at (x[i], y, z), with the bits that `evaluate` gives.
  void operator()(double y, double z, double* values);

private:
  /// A value on the stack: an array over the line, or where that is null the same number everywhere.
  struct Value {
    double const* array = nullptr;
    double number = 0;
    bool of_x_only = false;
  };
  template <class F>
  void unary(std::size_t instruction, F const& f);
  template <class F>
  void binary(std::size_t instruction, F const& f);
  /// Where the result of the instruction goes, an array at height `depth` of the stack; null where it is known from an earlier
  /// line.
  double* result_of(std::size_t instruction, std::size_t depth, bool of_x_only);

  ExpressionCode const& code_;
  std::int64_t n_;
  double const* x_;
  bool branches_ = false;
  std::vector<Value> stack_;
  std::vector<std::vector<double>> by_depth_, by_instruction_;  ///< arrays of this line, and those of x only
};

}  // namespace poisson
