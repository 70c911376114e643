#include "gpu/core/expression_code.hpp"

#include <algorithm>

namespace poisson {

namespace {

/// Points of a block: a few stacked values of them stay in the first-level cache.
constexpr std::int64_t block_points = 64;

bool has_branches(ExpressionCode const& code) {
  return std::any_of(code.begin(), code.end(), [](Instruction const& i) { return i.op == Op::jump || i.op == Op::jump_if_zero; });
}

/// One block; `stack` has room for stack_depth(code) * block_points values.
void evaluate_block(ExpressionCode const& code, std::int64_t n, double const* x, double const* y, double const* z, double* stack,
                    double* values) {
  double* top = stack - block_points;
  auto const push = [&](double const* from) {
    top += block_points;
    std::copy_n(from, n, top);
  };
  for (Instruction const& instruction : code)
    switch (instruction.op) {
    case Op::constant:
      top += block_points;
      std::fill_n(top, n, instruction.value);
      break;
    case Op::x:
      push(x);
      break;
    case Op::y:
      push(y);
      break;
    case Op::z:
      push(z);
      break;
    case Op::jump_if_zero:
    case Op::jump:
      break;  // not in here
#define POISSON_CASE(name, value)                                                                                                  \
  case Op::name:                                                                                                                   \
    for (std::int64_t i = 0; i < n; ++i) {                                                                                         \
      double const a = top[i];                                                                                                     \
      top[i] = value;                                                                                                              \
    }                                                                                                                              \
    break;
      POISSON_UNARY_OPERATORS(POISSON_CASE)
#undef POISSON_CASE
#define POISSON_CASE(name, value)                                                                                                  \
  case Op::name:                                                                                                                   \
    top -= block_points;                                                                                                           \
    for (std::int64_t i = 0; i < n; ++i) {                                                                                         \
      double const a = top[i], b = top[i + block_points];                                                                          \
      top[i] = value;                                                                                                              \
    }                                                                                                                              \
    break;
      POISSON_BINARY_OPERATORS(POISSON_CASE)
#undef POISSON_CASE
    }
  std::copy_n(top, n, values);
}

}  // namespace

int stack_depth(ExpressionCode const& code) {
  int depth = 0, most = 0;
  for (Instruction const& instruction : code) {
    switch (instruction.op) {
    case Op::constant:
    case Op::x:
    case Op::y:
    case Op::z:
      ++depth;
      break;
    case Op::jump_if_zero:
    case Op::jump:  // what the first branch has pushed, the second pushes in its place
      --depth;
      break;
    default:
      depth -= operands_of(instruction.op) - 1;
    }
    most = std::max(most, depth);
  }
  return most;
}

void evaluate_points(ExpressionCode const& code, std::int64_t n, double const* x, double const* y, double const* z,
                     double* values) {
  if (has_branches(code)) {
    ExpressionView const view{code.data(), static_cast<std::int32_t>(code.size())};
    for (std::int64_t i = 0; i < n; ++i)
      values[i] = evaluate<expression_stack_size>(view, x[i], y[i], z[i]);
    return;
  }
  double fixed[8 * block_points];
  std::vector<double> more;
  int const depth = stack_depth(code);
  double* stack = fixed;
  if (depth > 8) {
    more.resize(static_cast<std::size_t>(depth * block_points));
    stack = more.data();
  }
  for (std::int64_t begin = 0; begin < n; begin += block_points)
    evaluate_block(code, std::min(block_points, n - begin), x + begin, y + begin, z + begin, stack, values + begin);
}

}  // namespace poisson
