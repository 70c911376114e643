#pragma once

#include "gpu/core/expression_code.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace poisson::assembly {

/// The coordinates, constants and functions that an expression may use, in one line: "x, y, z, pi; sin, cos, ..., atan2(a, b),
/// ...".
[[nodiscard]] std::string expression_names();

/// Numbers by name, which expressions may use.
using Constants = std::map<std::string, double>;
/// Whether expressions have a meaning for this name already: a coordinate, pi, or a function.
[[nodiscard]] bool is_expression_name(std::string_view name);

/// A real function of x, y, z, given as an expression with + - * / ^, comparisons, && || !, a ? b : c, if(a, b, c), pi and the
/// functions of expression_names(). Comparisons and logical operators give 0 or 1. Evaluation is thread-safe.
class Expression {
public:
  /// Compiles the text. `key` is the YAML key path used in errors. Throws InputError for a syntax error or an unknown name; the
  /// message repeats the text with a caret under the place of the error, and suggests a similar name for an unknown one.
  Expression(std::string text, std::string key, Constants const& constants = {});
  Expression(Expression const& other);
  Expression& operator=(Expression const&) = delete;
  Expression(Expression&&) noexcept;
  ~Expression();

  /// The value at (x, y, z); NaN or infinite where IEEE arithmetic makes it so. Throws nothing.
  [[nodiscard]] double operator()(double x, double y, double z) const;
  /// Whether none of x, y and z occurs in it.
  [[nodiscard]] bool is_constant() const noexcept;
  [[nodiscard]] std::string const& text() const noexcept;
  [[nodiscard]] ExpressionCode const& code() const noexcept;
  [[nodiscard]] std::string const& key() const noexcept;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace poisson::assembly
