#include "assembly/expression/function_table.hpp"

#include "assembly/expression/expression.hpp"

#include <array>
#include <cmath>
#include <string>

namespace poisson::assembly {

namespace {

double sign(double a) {
  return a > 0 ? 1. : a < 0 ? -1. : a;
}
double step(double a) {
  return a >= 0 ? 1. : a < 0 ? 0. : a;
}
double minimum(double a, double b) {
  return b < a || std::isnan(b) ? b : a;
}
double maximum(double a, double b) {
  return b > a || std::isnan(b) ? b : a;
}
// As in most mathematical software (and unlike C's fmod) the result has the sign of the divisor.
double modulo(double a, double b) {
  return a - b * std::floor(a / b);
}

constexpr auto functions = std::to_array<NamedFunction>({
    {"sin", [](double a) { return std::sin(a); }},
    {"cos", [](double a) { return std::cos(a); }},
    {"tan", [](double a) { return std::tan(a); }},
    {"asin", [](double a) { return std::asin(a); }},
    {"acos", [](double a) { return std::acos(a); }},
    {"atan", [](double a) { return std::atan(a); }},
    {"sinh", [](double a) { return std::sinh(a); }},
    {"cosh", [](double a) { return std::cosh(a); }},
    {"tanh", [](double a) { return std::tanh(a); }},
    {"asinh", [](double a) { return std::asinh(a); }},
    {"acosh", [](double a) { return std::acosh(a); }},
    {"atanh", [](double a) { return std::atanh(a); }},
    {"exp", [](double a) { return std::exp(a); }},
    {"log", [](double a) { return std::log(a); }},
    {"ln", [](double a) { return std::log(a); }},
    {"log2", [](double a) { return std::log2(a); }},
    {"log10", [](double a) { return std::log10(a); }},
    {"sqrt", [](double a) { return std::sqrt(a); }},
    {"cbrt", [](double a) { return std::cbrt(a); }},
    {"abs", [](double a) { return std::fabs(a); }},
    {"sign", sign},
    {"step", step},
    {"floor", [](double a) { return std::floor(a); }},
    {"ceil", [](double a) { return std::ceil(a); }},
    {"round", [](double a) { return std::round(a); }},
    {"rint", [](double a) { return std::rint(a); }},
    {"erf", [](double a) { return std::erf(a); }},
    {"erfc", [](double a) { return std::erfc(a); }},
    {"atan2", nullptr, [](double a, double b) { return std::atan2(a, b); }},
    {"pow", nullptr, [](double a, double b) { return std::pow(a, b); }},
    {"hypot", nullptr, [](double a, double b) { return std::hypot(a, b); }},
    {"mod", nullptr, modulo},
    {"min", nullptr, minimum, true},
    {"max", nullptr, maximum, true},
});

}  // namespace

std::span<NamedFunction const> expression_functions() {
  return functions;
}

std::string expression_names() {
  std::string names = "x, y, z, pi";
  char const* separator = "; ";
  for (NamedFunction const& function : functions) {
    names.append(separator).append(function.name);
    if (function.two)
      names += function.any_number ? "(a, b, ...)" : "(a, b)";
    separator = ", ";
  }
  return names + ", if(condition, a, b)";
}

}  // namespace poisson::assembly
