#pragma once

#include "gpu/core/expression_code.hpp"

#include <cstddef>
#include <utility>

namespace poisson::assembly {

/// Appends instructions in postfix order: operands first, then their operator. Folds operators of constants.
class CodeBuilder {
public:
  /// Appends a constant or a coordinate. False when `evaluate` would need more than expression_stack_size values.
  [[nodiscard]] bool push(Instruction instruction);
  /// Appends an operator of the `operands` values on top of the stack, or its result when they are constants.
  void apply(Instruction instruction, std::size_t operands);

  /// A conditional, of which only the branch taken is evaluated: condition, begin_branches, first branch, next_branch, second
  /// branch, end_branches. Each call takes what the one before it returned.
  [[nodiscard]] std::size_t begin_branches();
  [[nodiscard]] std::size_t next_branch(std::size_t to_second);
  void end_branches(std::size_t to_end);

  /// How many instructions there are.
  [[nodiscard]] std::size_t size() const { return code_.size(); }
  /// The code, once it is complete.
  [[nodiscard]] ExpressionCode take() { return std::move(code_); }

private:
  ExpressionCode code_;
  std::size_t fold_limit_ = 0;  ///< no instruction before this one may be folded: a jump leads to this place
  std::size_t depth_ = 0;       ///< values on the stack
};

}  // namespace poisson::assembly
