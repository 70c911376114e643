#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// Postfix code of a stack machine, to which expressions are compiled.
namespace poisson::assembly {

enum class Op : std::uint8_t {
  constant,
  x,
  y,
  z,
  // The functions call_1 and call_2 pop one or two values and push one, as every operator below does.
  call_1,
  call_2,
  add,
  subtract,
  multiply,
  divide,
  power,
  square,
  cube,
  negate,
  logical_not,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  jump_if_zero,
  jump,
};

using Function1 = double (*)(double);
using Function2 = double (*)(double, double);

struct Instruction {
  Op op{};
  union {
    double value;
    Function1 call_1;
    Function2 call_2;
    std::size_t target;
  };
  Instruction(Op o, double v) : op(o), value(v) {}
  explicit Instruction(Op o) : op(o), value(0) {}
  explicit Instruction(Function1 f) : op(Op::call_1), call_1(f) {}
  explicit Instruction(Function2 f) : op(Op::call_2), call_2(f) {}
};

using Bytecode = std::vector<Instruction>;

/// Values that the stack of `evaluate` has room for.
inline constexpr std::size_t stack_size = 256;

/// The value of the code at (x, y, z). Precondition: BytecodeBuilder made it, whose push never returned false.
[[nodiscard]] double evaluate(Bytecode const& code, double x, double y, double z);

/// Appends instructions in postfix order: operands first, then their operator. Folds operators of constants.
class BytecodeBuilder {
public:
  /// Appends a constant or a coordinate. False when `evaluate` would need more than stack_size values.
  [[nodiscard]] bool push(Instruction instruction);
  /// Appends an operator of the `operands` values on top of the stack, or its result when they are constants.
  void apply(Instruction instruction, std::size_t operands);

  /// A conditional, of which only the branch taken is evaluated: condition, begin_branches, first branch, next_branch, second
  /// branch, end_branches. Each call takes what the one before it returned.
  [[nodiscard]] std::size_t begin_branches();
  [[nodiscard]] std::size_t next_branch(std::size_t to_second);
  void end_branches(std::size_t to_end);

  /// The code, once it is complete.
  [[nodiscard]] Bytecode take() { return std::move(code_); }

private:
  Bytecode code_;
  std::size_t fold_limit_ = 0;  ///< no instruction before this one may be folded: a jump leads to this place
  std::size_t depth_ = 0;       ///< values on the stack
};

}  // namespace poisson::assembly
