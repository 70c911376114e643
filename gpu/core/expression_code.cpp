#include "gpu/core/expression_code.hpp"

#include <algorithm>

namespace poisson {

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

LineEvaluator::LineEvaluator(ExpressionCode const& code, std::int64_t n, double const* x)
    : code_(code),
      n_(n),
      x_(x),
      branches_(
          std::any_of(code.begin(), code.end(), [](Instruction const& i) { return i.op == Op::jump || i.op == Op::jump_if_zero; })),
      by_depth_(static_cast<std::size_t>(stack_depth(code))),
      by_instruction_(code.size()) {}

double* LineEvaluator::result_of(std::size_t instruction, std::size_t depth, bool of_x_only) {
  std::vector<double>& array = of_x_only ? by_instruction_[instruction] : by_depth_[depth];
  if (of_x_only && !array.empty())
    return nullptr;
  array.resize(static_cast<std::size_t>(n_));
  return array.data();
}

template <class F>
void LineEvaluator::unary(std::size_t instruction, F const& f) {
  Value& top = stack_.back();
  if (top.array == nullptr) {
    top.number = f(top.number);
    return;
  }
  double const* const a = top.array;
  if (double* const out = result_of(instruction, stack_.size() - 1, top.of_x_only); out != nullptr)
    for (std::int64_t i = 0; i < n_; ++i)
      out[i] = f(a[i]);
  top.array = (top.of_x_only ? by_instruction_[instruction] : by_depth_[stack_.size() - 1]).data();
}

template <class F>
void LineEvaluator::binary(std::size_t instruction, F const& f) {
  Value const right = stack_.back();
  stack_.pop_back();
  Value& left = stack_.back();
  if (left.array == nullptr && right.array == nullptr) {
    left.number = f(left.number, right.number);
    left.of_x_only = left.of_x_only && right.of_x_only;
    return;
  }
  bool const of_x_only = left.of_x_only && right.of_x_only;
  double const *const a = left.array, *const b = right.array;
  if (double* const out = result_of(instruction, stack_.size() - 1, of_x_only); out != nullptr) {
    if (b == nullptr)
      for (std::int64_t i = 0; i < n_; ++i)
        out[i] = f(a[i], right.number);
    else if (a == nullptr)
      for (std::int64_t i = 0; i < n_; ++i)
        out[i] = f(left.number, b[i]);
    else
      for (std::int64_t i = 0; i < n_; ++i)
        out[i] = f(a[i], b[i]);
  }
  left = {(of_x_only ? by_instruction_[instruction] : by_depth_[stack_.size() - 1]).data(), 0, of_x_only};
}

void LineEvaluator::operator()(double y, double z, double* values) {
  if (branches_) {
    for (std::int64_t i = 0; i < n_; ++i)
      values[i] = evaluate(code_, x_[i], y, z);
    return;
  }
  stack_.clear();
  for (std::size_t at = 0; at < code_.size(); ++at)
    switch (code_[at].op) {
    case Op::constant:
      stack_.push_back({nullptr, code_[at].value, true});
      break;
    case Op::x:
      stack_.push_back({x_, 0, true});
      break;
    case Op::y:
      stack_.push_back({nullptr, y, false});
      break;
    case Op::z:
      stack_.push_back({nullptr, z, false});
      break;
    case Op::jump_if_zero:
    case Op::jump:
      break;  // not in here
#define POISSON_CASE(name, value)                                                                                                  \
  case Op::name:                                                                                                                   \
    unary(at, [](double a) -> double { return value; });                                                                           \
    break;
      POISSON_UNARY_OPERATORS(POISSON_CASE)
#undef POISSON_CASE
#define POISSON_CASE(name, value)                                                                                                  \
  case Op::name:                                                                                                                   \
    binary(at, [](double a, double b) -> double { return value; });                                                                \
    break;
      POISSON_BINARY_OPERATORS(POISSON_CASE)
#undef POISSON_CASE
    }
  Value const& result = stack_.back();
  if (result.array != nullptr)
    std::copy_n(result.array, n_, values);
  else
    std::fill_n(values, n_, result.number);
}

}  // namespace poisson
