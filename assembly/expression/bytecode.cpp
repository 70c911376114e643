#include "assembly/expression/bytecode.hpp"

#include <cmath>

namespace poisson::assembly {

double evaluate(Bytecode const& code, double x, double y, double z) {
  // Left uninitialised: BytecodeBuilder bounds the depth. The first element stays unused, `top` is the last one in use.
  double stack[stack_size + 1];
  double* top = stack;
  Instruction const* const begin = code.data();
  Instruction const* const end = begin + code.size();
  auto const binary = [&top](auto f) {
    double const b = *top--;
    *top = f(*top, b);
  };
  for (Instruction const* i = begin; i != end; ++i) {
    switch (i->op) {
    case Op::constant:
      *++top = i->value;
      break;
    case Op::x:
      *++top = x;
      break;
    case Op::y:
      *++top = y;
      break;
    case Op::z:
      *++top = z;
      break;
    case Op::call_1:
      *top = i->call_1(*top);
      break;
    case Op::call_2:
      binary(i->call_2);
      break;
    case Op::add:
      binary([](double a, double b) { return a + b; });
      break;
    case Op::subtract:
      binary([](double a, double b) { return a - b; });
      break;
    case Op::multiply:
      binary([](double a, double b) { return a * b; });
      break;
    case Op::divide:
      binary([](double a, double b) { return a / b; });
      break;
    case Op::power:
      binary([](double a, double b) { return std::pow(a, b); });
      break;
    case Op::square:
      *top *= *top;
      break;
    case Op::cube:
      *top *= *top * *top;
      break;
    case Op::negate:
      *top = -*top;
      break;
    case Op::logical_not:
      *top = *top == 0 ? 1. : 0.;
      break;
    case Op::less:
      binary([](double a, double b) { return a < b ? 1. : 0.; });
      break;
    case Op::less_equal:
      binary([](double a, double b) { return a <= b ? 1. : 0.; });
      break;
    case Op::greater:
      binary([](double a, double b) { return a > b ? 1. : 0.; });
      break;
    case Op::greater_equal:
      binary([](double a, double b) { return a >= b ? 1. : 0.; });
      break;
    case Op::equal:
      binary([](double a, double b) { return a == b ? 1. : 0.; });
      break;
    case Op::not_equal:
      binary([](double a, double b) { return a != b ? 1. : 0.; });
      break;
    case Op::logical_and:
      binary([](double a, double b) { return a != 0 && b != 0 ? 1. : 0.; });
      break;
    case Op::logical_or:
      binary([](double a, double b) { return a != 0 || b != 0 ? 1. : 0.; });
      break;
    case Op::jump_if_zero:
      if (*top-- == 0)
        i = begin + i->target - 1;
      break;
    case Op::jump:
      i = begin + i->target - 1;
      break;
    }
  }
  return *top;
}

bool BytecodeBuilder::push(Instruction instruction) {
  code_.push_back(instruction);
  return ++depth_ <= stack_size;
}

void BytecodeBuilder::apply(Instruction instruction, std::size_t operands) {
  bool constant = code_.size() >= fold_limit_ + operands;
  for (std::size_t i = 0; constant && i < operands; ++i)
    constant = code_[code_.size() - 1 - i].op == Op::constant;
  if (constant) {
    Bytecode piece(code_.end() - static_cast<std::ptrdiff_t>(operands), code_.end());
    piece.push_back(instruction);
    double const value = evaluate(piece, 0, 0, 0);
    code_.erase(code_.end() - static_cast<std::ptrdiff_t>(operands), code_.end());
    code_.emplace_back(Op::constant, value);
  } else if (instruction.op == Op::power && code_.size() > fold_limit_ && code_.back().op == Op::constant &&
             (code_.back().value == 2 || code_.back().value == 3)) {
    code_.back() = Instruction(code_.back().value == 2 ? Op::square : Op::cube);
  } else {
    code_.push_back(instruction);
  }
  depth_ -= operands - 1;
}

std::size_t BytecodeBuilder::begin_branches() {
  code_.emplace_back(Op::jump_if_zero);
  --depth_;
  fold_limit_ = code_.size();
  return code_.size() - 1;
}

std::size_t BytecodeBuilder::next_branch(std::size_t to_second) {
  code_.emplace_back(Op::jump);
  --depth_;
  code_[to_second].target = fold_limit_ = code_.size();
  return code_.size() - 1;
}

void BytecodeBuilder::end_branches(std::size_t to_end) {
  code_[to_end].target = fold_limit_ = code_.size();
}

}  // namespace poisson::assembly
