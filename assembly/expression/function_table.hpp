#pragma once

#include "gpu/core/expression_code.hpp"

#include <span>
#include <string_view>

namespace poisson::assembly {

/// A function that expressions may call: of one argument or of two.
struct NamedFunction {
  std::string_view name;
  Op op;
  bool any_number = false;  ///< two or more arguments, folded from the left
};

/// All of them, as expression_names() lists them; `if` is no function but a part of the grammar.
[[nodiscard]] std::span<NamedFunction const> expression_functions();

}  // namespace poisson::assembly
