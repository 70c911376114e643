#include "assembly/expression/function_table.hpp"

#include "assembly/expression/expression.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace poisson::assembly {

namespace {

constexpr auto functions = std::to_array<NamedFunction>({
    {"sin", Op::sin},     {"cos", Op::cos},     {"tan", Op::tan},           {"asin", Op::asin},         {"acos", Op::acos},
    {"atan", Op::atan},   {"sinh", Op::sinh},   {"cosh", Op::cosh},         {"tanh", Op::tanh},         {"asinh", Op::asinh},
    {"acosh", Op::acosh}, {"atanh", Op::atanh}, {"exp", Op::exp},           {"log", Op::log},           {"ln", Op::log},
    {"log2", Op::log2},   {"log10", Op::log10}, {"sqrt", Op::sqrt},         {"cbrt", Op::cbrt},         {"abs", Op::abs},
    {"sign", Op::sign},   {"step", Op::step},   {"floor", Op::floor},       {"ceil", Op::ceil},         {"round", Op::round},
    {"rint", Op::rint},   {"erf", Op::erf},     {"erfc", Op::erfc},         {"atan2", Op::atan2},       {"pow", Op::power},
    {"hypot", Op::hypot}, {"mod", Op::modulo},  {"min", Op::minimum, true}, {"max", Op::maximum, true},
});

}  // namespace

std::span<NamedFunction const> expression_functions() {
  return functions;
}

bool is_expression_name(std::string_view name) {
  constexpr auto others = std::to_array<std::string_view>({"x", "y", "z", "pi", "if"});
  return std::find(others.begin(), others.end(), name) != others.end() ||
         std::any_of(functions.begin(), functions.end(), [&](NamedFunction const& f) { return f.name == name; });
}

std::string expression_names() {
  std::string names = "x, y, z, pi";
  char const* separator = "; ";
  for (NamedFunction const& function : functions) {
    names.append(separator).append(function.name);
    if (operands_of(function.op) == 2)
      names += function.any_number ? "(a, b, ...)" : "(a, b)";
    separator = ", ";
  }
  return names + ", if(condition, a, b)";
}

}  // namespace poisson::assembly
