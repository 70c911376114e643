#pragma once

#include "assembly/expression/code_builder.hpp"
#include "assembly/expression/expression.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::assembly {

/// What is wrong with the text of an expression, and at which byte of it.
struct SyntaxError {
  std::size_t position;
  std::string message;
};

struct ParsedExpression {
  ExpressionCode code;
  bool uses_coordinates = false;  ///< x, y or z occurs, or a function of a place
  /// Functions of a place by name, and the instructions that stand for their values: they push x.
  std::vector<std::pair<std::size_t, std::string>> functions;
};

/// Compiles the text of an expression. Recursive descent, lowest precedence first:
///   choice = or ["?" choice ":" choice];  or = and {"||" and};  and = comparison {"&&" comparison};
///   comparison = sum [relation sum];  sum = product {("+"|"-") product};  product = unary {("*"|"/") unary};
///   unary = ("-"|"+"|"!") unary | power;  power = primary ["^" unary];
///   primary = number | "x" | "y" | "z" | "pi" | constant | function "(" choice {"," choice} ")" | "(" choice ")"
/// A name has letters, digits and '_'; one of a constant may have parts with '.' between them. A part with other characters stands
/// in quotes, flux."hot wall" or flux.'hot wall'; without them it is found where no other reading is possible: flux.cold-side.
/// The length of the text and its nesting are limited, so that neither recursion nor stack overflows whatever the input.
/// Throws SyntaxError.
[[nodiscard]] ParsedExpression parse_expression(std::string_view text, ExpressionNames const& names = {});

}  // namespace poisson::assembly
