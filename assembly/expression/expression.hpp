#pragma once

#include "gpu/core/expression_code.hpp"

#include <memory>
#include <span>
#include <string>

namespace poisson::assembly {

/// Constants and functions that an expression may use, in one line: "x, y, z, pi; sin, cos, ..., atan2(a, b), ...".
[[nodiscard]] std::string expression_names();

/// An expression in x, y, z and pi: + - * / ^, comparisons, && ||, a ? b : c and if(a, b, c), the usual functions.
/// Copies are independent, so that each thread evaluates its own.
class Expression {
public:
  /// `key` is the YAML key path used in errors. Throws InputError whose message repeats the text with a caret under the
  /// place that is wrong, says what is wrong there, and suggests a near name for an unknown one.
  Expression(std::string text, std::string key);
  Expression(Expression const& other);
  Expression& operator=(Expression const&) = delete;
  Expression(Expression&&) noexcept;
  ~Expression();

  [[nodiscard]] double operator()(double x, double y, double z) const;
  /// No x, y or z in it.
  [[nodiscard]] bool is_constant() const noexcept;
  [[nodiscard]] std::string const& text() const noexcept;
  [[nodiscard]] ExpressionCode const& code() const noexcept;
  [[nodiscard]] std::string const& key() const noexcept;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace poisson::assembly
