#pragma once

#include "assembly/expression/code_builder.hpp"

#include <cstddef>
#include <map>
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
///   primary = number | "x" | "y" | "z" | "pi" | constant | function "(" choice {"," choice} ")" | "(" choice ")"
/// A name has letters, digits and '_'; one of a constant may have parts with '.' between them.
/// The length of the text and its nesting are limited, so that neither recursion nor stack overflows whatever the input.
/// Throws SyntaxError.
[[nodiscard]] ParsedExpression parse_expression(std::string_view text, std::map<std::string, double> const& constants = {});

}  // namespace poisson::assembly
