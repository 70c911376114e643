#include "assembly/expression/code_builder.hpp"

namespace poisson::assembly {

bool CodeBuilder::push(Instruction instruction) {
  code_.push_back(instruction);
  return ++depth_ <= static_cast<std::size_t>(expression_stack_size);
}

void CodeBuilder::apply(Instruction instruction, std::size_t operands) {
  bool constant = code_.size() >= fold_limit_ + operands;
  for (std::size_t i = 0; constant && i < operands; ++i)
    constant = code_[code_.size() - 1 - i].op == Op::constant;
  if (constant) {
    ExpressionCode piece(code_.end() - static_cast<std::ptrdiff_t>(operands), code_.end());
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

std::size_t CodeBuilder::begin_branches() {
  code_.emplace_back(Op::jump_if_zero);
  --depth_;
  fold_limit_ = code_.size();
  return code_.size() - 1;
}

std::size_t CodeBuilder::next_branch(std::size_t to_second) {
  code_.emplace_back(Op::jump);
  --depth_;
  code_[to_second].target = static_cast<std::int64_t>(fold_limit_ = code_.size());
  return code_.size() - 1;
}

void CodeBuilder::end_branches(std::size_t to_end) {
  code_[to_end].target = static_cast<std::int64_t>(fold_limit_ = code_.size());
}

}  // namespace poisson::assembly
