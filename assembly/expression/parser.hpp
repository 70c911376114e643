#pragma once

#include "assembly/expression/code_builder.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace poisson::assembly {

/// What is wrong with the text of an expression, and at which byte of it.
struct SyntaxError {
  std::size_t position;
  std::string message;
};

struct ParsedExpression {
  ExpressionCode code;
  bool uses_coordinates = false;  ///< x, y or z occurs
};

/// Compiles the text of an expression. Recursive descent, lowest precedence first:
///   choice = or ["?" choice ":" choice];  or = and {"||" and};  and = comparison {"&&" comparison};
///   comparison = sum [relation sum];  sum = product {("+"|"-") product};  product = unary {("*"|"/") unary};
///   unary = ("-"|"+"|"!") unary | power;  power = primary ["^" unary];
///   primary = number | "x" | "y" | "z" | "pi" | function "(" choice {"," choice} ")" | "(" choice ")"
/// The length of the text and its nesting are limited, so that neither recursion nor stack overflows whatever the input.
/// Throws SyntaxError.
[[nodiscard]] ParsedExpression parse_expression(std::string_view text);

}  // namespace poisson::assembly
