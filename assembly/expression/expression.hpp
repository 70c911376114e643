#pragma once

#include "gpu/core/expression_code.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace poisson::assembly {

/// The coordinates, constants and functions that an expression may use, in one line: "x, y, z, pi; sin, cos, ..., atan2(a, b),
/// ...".
[[nodiscard]] std::string expression_names();

/// Numbers by name, which expressions may use.
using Constants = std::map<std::string, double>;
/// Functions of a place by name, which expressions may use like constants. Thread-safe.
using PointFunctions = std::map<std::string, std::function<double(std::array<double, 3> const&)>>;

/// The names that expressions may use besides their own.
struct ExpressionNames {
  ExpressionNames() = default;
  ExpressionNames(Constants numbers) : constants(std::move(numbers)) {}  // NOLINT(google-explicit-constructor): often all there is
  ExpressionNames(Constants numbers, PointFunctions places) : constants(std::move(numbers)), functions(std::move(places)) {}
  Constants constants;
  PointFunctions functions;
};
/// Whether expressions have a meaning for this name already: a coordinate, pi, or a function.
[[nodiscard]] bool is_expression_name(std::string_view name);

/// A real function of x, y, z, given as an expression with + - * / ^, comparisons, && || !, a ? b : c, if(a, b, c), pi and the
/// functions of expression_names(). Comparisons and logical operators give 0 or 1. Evaluation is thread-safe.
class Expression {
public:
  /// Compiles the text. `key` is the YAML key path used in errors. Throws InputError for a syntax error or an unknown name; the
  /// message repeats the text with a caret under the place of the error, and suggests a similar name for an unknown one.
  Expression(std::string text, std::string key, ExpressionNames const& names = {});
  Expression(Expression const& other);
  Expression& operator=(Expression const&) = delete;
  Expression(Expression&&) noexcept;
  ~Expression();

  /// The value at (x, y, z); NaN or infinite where IEEE arithmetic makes it so. Throws nothing.
  [[nodiscard]] double operator()(double x, double y, double z) const;
  /// Whether none of x, y and z occurs in it, and no function of a place.
  [[nodiscard]] bool is_constant() const noexcept;
  /// Whether code() says it all: it uses no functions of ExpressionNames.
  [[nodiscard]] bool is_code() const noexcept;
  [[nodiscard]] std::string const& text() const noexcept;
  [[nodiscard]] ExpressionCode const& code() const noexcept;
  [[nodiscard]] std::string const& key() const noexcept;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace poisson::assembly
