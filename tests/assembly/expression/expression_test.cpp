#include "assembly/expression/expression.hpp"
#include "gpu/core/error.hpp"

#include <clocale>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <locale>
#include <numbers>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace poisson::assembly {
namespace {

double evaluate(std::string const& text, double x = 0.3, double y = -0.7, double z = 1.9) {
  return Expression(text, "key")(x, y, z);
}

/// The message of the error that `text` causes; fails when there is none.
std::string error_of(std::string const& text) {
  try {
    Expression expression(text, "problem.source");
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "problem.source");
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 200);
  return {};
}

/// Checks the message and that the caret stands under character `column` of `text`.
void expect_error(std::string const& text, std::string const& part, std::size_t column) {
  std::string const message = error_of(text);
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_NE(message.find("\n  " + text + "\n  " + std::string(column, ' ') + "^"), std::string::npos) << message;
}

TEST(Expression, NumbersInEverySpelling) {
  EXPECT_EQ(evaluate("1e-3"), 1e-3);
  EXPECT_EQ(evaluate("2."), 2.);
  EXPECT_EQ(evaluate(".5"), .5);
  EXPECT_EQ(evaluate("1.5E+2"), 150.);
  EXPECT_EQ(evaluate(" \t\n 7 \n"), 7.);
  EXPECT_EQ(evaluate("0.1"), 0.1);
  EXPECT_EQ(evaluate("pi"), std::numbers::pi);
}

TEST(Expression, PrecedenceAndAssociativity) {
  EXPECT_EQ(evaluate("2+3*4"), 14);
  EXPECT_EQ(evaluate("2-3-4"), -5);
  EXPECT_EQ(evaluate("16/4/2"), 2);
  EXPECT_EQ(evaluate("2^3^2"), 512);
  EXPECT_EQ(evaluate("-2^2"), -4);
  EXPECT_EQ(evaluate("2^-1"), 0.5);
  EXPECT_EQ(evaluate("-x^2", 3), -9);
  EXPECT_EQ(evaluate("2*-3"), -6);
  EXPECT_EQ(evaluate("--3"), 3);
  EXPECT_EQ(evaluate("1+2 < 4 && 3 > 2"), 1);
  EXPECT_EQ(evaluate("0 && 0 || 1"), 1);
  EXPECT_EQ(evaluate("1 || 0 && 0"), 1);
  EXPECT_EQ(evaluate("!0 + !5"), 1);
  EXPECT_EQ(evaluate("(2+3)*4"), 20);
  EXPECT_EQ(evaluate("1 ? 2 : 0 ? 3 : 4"), 2);
  EXPECT_EQ(evaluate("0 ? 2 : 0 ? 3 : 4"), 4);
  EXPECT_EQ(evaluate("1 ? 0 ? 5 : 6 : 7"), 6);
  EXPECT_EQ(evaluate("x < 0.5 ? 10 : 20", 0.4), 10);
  EXPECT_EQ(evaluate("x < 0.5 ? 10 : 20", 0.5), 20);
  EXPECT_EQ(evaluate("1 + (x > 0 ? 2 : 3) * 4", 1), 9);
  EXPECT_EQ(evaluate("1 + if(x > 0, 2, 3) * 4", -1), 13);
  EXPECT_EQ(evaluate("(x<=1) + (x>=1) + (x==1) + (x!=1)", 1), 3);
}

TEST(Expression, EveryFunctionAgainstTheStandardLibrary) {
  double const a = 0.37, b = -1.4;
  std::vector<std::pair<std::string, double>> const cases{{"sin(x)", std::sin(a)},
                                                          {"cos(x)", std::cos(a)},
                                                          {"tan(x)", std::tan(a)},
                                                          {"asin(x)", std::asin(a)},
                                                          {"acos(x)", std::acos(a)},
                                                          {"atan(x)", std::atan(a)},
                                                          {"atan2(x,y)", std::atan2(a, b)},
                                                          {"sinh(x)", std::sinh(a)},
                                                          {"cosh(x)", std::cosh(a)},
                                                          {"tanh(x)", std::tanh(a)},
                                                          {"asinh(x)", std::asinh(a)},
                                                          {"acosh(1+x)", std::acosh(1 + a)},
                                                          {"atanh(x)", std::atanh(a)},
                                                          {"exp(x)", std::exp(a)},
                                                          {"log(x)", std::log(a)},
                                                          {"ln(x)", std::log(a)},
                                                          {"log2(x)", std::log2(a)},
                                                          {"log10(x)", std::log10(a)},
                                                          {"sqrt(x)", std::sqrt(a)},
                                                          {"cbrt(y)", std::cbrt(b)},
                                                          {"abs(y)", 1.4},
                                                          {"sign(y)", -1},
                                                          {"sign(0*x)", 0},
                                                          {"sign(x)", 1},
                                                          {"min(x,y)", b},
                                                          {"max(x,y)", a},
                                                          {"min(x,y,-7,3)", -7},
                                                          {"max(x,y,-7,3)", 3},
                                                          {"floor(y)", -2},
                                                          {"ceil(y)", -1},
                                                          {"round(y)", -1},
                                                          {"rint(y)", -1},
                                                          {"rint(2.5+0*x)", 2},
                                                          {"round(2.5+0*x)", 3},
                                                          {"erf(x)", std::erf(a)},
                                                          {"erfc(x)", std::erfc(a)},
                                                          {"step(x)", 1},
                                                          {"step(y)", 0},
                                                          {"step(0*x)", 1},
                                                          {"mod(y,1)", -1.4 + 2},
                                                          {"mod(5.5,2)", 1.5},
                                                          {"pow(x,2.5)", std::pow(a, 2.5)},
                                                          {"hypot(x,y)", std::hypot(a, b)},
                                                          {"x^2", a * a},
                                                          {"x^3", a * a * a},
                                                          {"x^2.5", std::pow(a, 2.5)},
                                                          {"x^y", std::pow(a, b)}};
  for (auto const& [text, expected] : cases)
    EXPECT_DOUBLE_EQ(evaluate(text, a, b), expected) << text;
}

/// A random expression as text and, independently of any parser, as a function.
struct RandomExpression {
  std::string text;
  std::function<double(double, double, double)> value;
};

RandomExpression random_expression(std::mt19937& random, int depth) {
  auto const pick = [&](auto const& list) -> auto const& {
    return list[random() % list.size()];
  };
  using Value = std::function<double(double, double, double)>;
  if (depth == 0) {
    static std::vector<RandomExpression> const leaves{
        {"x", [](double x, double, double) { return x; }},   {"y", [](double, double y, double) { return y; }},
        {"z", [](double, double, double z) { return z; }},   {"pi", [](double, double, double) { return std::numbers::pi; }},
        {"2", [](double, double, double) { return 2.; }},    {"3.", [](double, double, double) { return 3.; }},
        {".25", [](double, double, double) { return .25; }}, {"1e-3", [](double, double, double) { return 1e-3; }}};
    return pick(leaves);
  }
  static std::vector<std::pair<std::string, double (*)(double)>> const unary{{"sin", [](double a) { return std::sin(a); }},
                                                                             {"cos", [](double a) { return std::cos(a); }},
                                                                             {"atan", [](double a) { return std::atan(a); }},
                                                                             {"abs", [](double a) { return std::abs(a); }},
                                                                             {"-", [](double a) { return -a; }},
                                                                             {"!", [](double a) { return a == 0 ? 1. : 0.; }}};
  static std::vector<std::pair<std::string, double (*)(double, double)>> const binary{
      {"+", [](double a, double b) { return a + b; }},
      {"-", [](double a, double b) { return a - b; }},
      {"*", [](double a, double b) { return a * b; }},
      {"/", [](double a, double b) { return a / b; }},
      {"<", [](double a, double b) { return double(a < b); }},
      {">=", [](double a, double b) { return double(a >= b); }},
      {"&&", [](double a, double b) { return double(a != 0 && b != 0); }},
      {"||", [](double a, double b) { return double(a != 0 || b != 0); }}};
  RandomExpression const a = random_expression(random, depth - 1), b = random_expression(random, depth - 1);
  switch (random() % 5) {
  case 0: {
    auto const& [name, f] = pick(unary);
    return {"(" + std::string(name).append("(").append(a.text).append("))"),
            [f = f, a = a.value](double x, double y, double z) { return f(a(x, y, z)); }};
  }
  case 1:
    return {"max(" + a.text + ", " + b.text + ")", [a = a.value, b = b.value](double x, double y, double z) {
              return std::isnan(b(x, y, z)) ? b(x, y, z) : std::max(a(x, y, z), b(x, y, z));
            }};
  case 2: {
    RandomExpression const c = random_expression(random, depth - 1);
    Value const value = [a = a.value, b = b.value, c = c.value](double x, double y, double z) {
      return a(x, y, z) != 0 ? b(x, y, z) : c(x, y, z);
    };
    if (random() % 2)
      return {"if(" + a.text + ", " + b.text + ", " + c.text + ")", value};
    return {"(" + a.text + " ? " + b.text + " : " + c.text + ")", value};
  }
  default: {
    auto const& [name, f] = pick(binary);
    return {"(" + std::string(a.text).append(name).append(b.text).append(")"),
            [f = f, a = a.value, b = b.value](double x, double y, double z) { return f(a(x, y, z), b(x, y, z)); }};
  }
  }
}

TEST(Expression, RandomExpressionsHaveTheValueOfTheirTree) {
  std::mt19937 random(7);
  int finite = 0;
  for (int i = 0; i < 2000; ++i) {
    RandomExpression const sample = random_expression(random, 1 + i % 6);
    Expression const expression(sample.text, "");
    for (int k = 0; k < 3; ++k) {
      double const x = 0.1 + 0.3 * k, y = -0.8 + 0.7 * k, z = 1.3 - 0.2 * k;
      double const expected = sample.value(x, y, z), found = expression(x, y, z);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << sample.text;
      } else {
        ++finite;
        EXPECT_EQ(found, expected) << sample.text;
      }
    }
  }
  EXPECT_GT(finite, 5000);
}

TEST(Expression, KnowsWhatIsConstant) {
  EXPECT_TRUE(Expression("3*pi^2 + sin(1)", "").is_constant());
  EXPECT_TRUE(Expression("1 < 2 ? 5 : 6", "").is_constant());
  EXPECT_EQ(evaluate("1 < 2 ? 5 : 6"), 5);
  EXPECT_FALSE(Expression("0*x", "").is_constant());
  EXPECT_FALSE(Expression("1 ? 2 : z", "").is_constant());
}

TEST(Expression, OnlyTheBranchTakenCounts) {
  EXPECT_EQ(evaluate("x == 0 ? 1 : sin(x)/x", 0), 1);
  EXPECT_EQ(evaluate("if(x > 1, 1/0, 2)", 0), 2);
}

TEST(Expression, CopiesAreIndependentAndThreadSafe) {
  Expression const original("sin(x)*y + z^2", "k");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&wrong, t, copy = original] {
      for (int i = 0; i < 20000; ++i) {
        double const x = 0.001 * i, y = static_cast<double>(t), z = 0.5;
        wrong[t] += copy(x, y, z) != std::sin(x) * y + z * z;
      }
    });
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  EXPECT_EQ(Expression(original).text(), "sin(x)*y + z^2");
  EXPECT_EQ(Expression(original).key(), "k");
}

TEST(Expression, DoesNotDependOnTheLocale) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
  };
  std::locale const before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  char const* const set = std::setlocale(LC_ALL, "de_DE.UTF-8");
  EXPECT_EQ(evaluate("1.5 + 0.25"), 1.75);
  std::locale::global(before);
  if (set)
    std::setlocale(LC_ALL, "C");
}

TEST(Expression, ErrorsShowThePlace) {
  expect_error("sin(x", "never closed", 3);
  expect_error("x + ", "ends where", 4);
  expect_error("x + * y", "'*' stands where", 4);
  expect_error("2x", "operator is missing", 1);
  expect_error("2 x", "operator is missing", 2);
  expect_error("x (y)", "x is not a function", 0);
  expect_error("x)", "no '(' before it", 1);
  expect_error("()", "nothing between", 1);
  expect_error("x = 3", "assignment", 2);
  expect_error("x == 3 = 1", "assignment", 7);
  expect_error("1, 2", "one result", 1);
  expect_error("(1, 2)", "one result", 2);
  expect_error("\"text\"", "strings", 0);
  expect_error("x + 'a'", "strings", 4);
  expect_error("sinn(x)", "did you mean 'sin'", 0);
  expect_error("1 + Sqrt(x)", "did you mean 'sqrt'", 4);
  expect_error("2*t", "'t' is not known", 2);
  expect_error("sin", "its arguments follow", 0);
  expect_error("sin x", "its arguments follow", 0);
  expect_error("sin()", "takes 1 argument, not 0", 0);
  expect_error("sin(x, y)", "takes 1 argument, not 2", 0);
  expect_error("1+atan2(x)", "takes 2 arguments, not 1", 2);
  expect_error("min(x)", "two or more", 0);
  expect_error("if(x, 1)", "3 arguments, not 2", 0);
  expect_error("if(x)", "3 arguments, not 1", 0);
  expect_error("if(x, 1, 2, 3)", "3 arguments, not more", 0);
  expect_error("x ? 1", "':' of this '?'", 2);
  expect_error("x : 1", "no '?' before", 2);
  expect_error("0 < x < 1", "chained", 6);
  expect_error("x & y", "write '&&'", 2);
  expect_error("x ** 2", "'^'", 2);
  expect_error("x % 2", "mod(a, b)", 2);
  expect_error("1e", "not a number", 0);
  expect_error("1.2.3", "not a number", 0);
  expect_error("1e999", "range", 0);
  expect_error(".", "'.' stands where", 0);
  expect_error("x; y", "';' is not allowed", 1);
  expect_error("", "empty", 0);
  expect_error("   ", "empty", 3);
}

TEST(Expression, CaretCountsCharactersNotBytes) {
  std::string const message = error_of("x + \xcf\x80");
  EXPECT_NE(message.find("only ASCII"), std::string::npos);
  EXPECT_NE(message.find("\n      ^"), std::string::npos) << message;
  EXPECT_NE(error_of(std::string("x\0y", 3)).find("control character"), std::string::npos);
}

TEST(Expression, HugeInputIsAnErrorAndNotACrash) {
  std::size_t const n = 100000;
  for (std::string const& text : {std::string(n, '('), std::string(n, '-') + "1", std::string(n, '!') + "1", std::string(n, 'x')})
    EXPECT_LT(error_of(text).size(), 500u);
  std::string nested, powers = "x", choices = "x", calls;
  for (int i = 0; i < 2000; ++i) {
    nested += "(";
    powers += "^x";
    choices += "?x:x";
    calls += "sin(";
  }
  for (std::string const& text : {nested, powers, choices, calls})
    EXPECT_NE(error_of(text).find("nested too deeply"), std::string::npos);
  // What people write stays far below the limits: 50 levels, and a long sum.
  EXPECT_EQ(evaluate(std::string(50, '(') + "x" + std::string(50, ')'), 4), 4);
  std::string sum = "x";
  for (int i = 0; i < 5000; ++i)
    sum += "+1";
  EXPECT_EQ(evaluate(sum, 1), 5001);
}

TEST(Expression, Constants) {
  Constants const constants{{"k", 3}, {"flux.heater", 2}, {"flux.0", 4}, {"k_2", 5}};
  EXPECT_EQ(Expression("k*x + k_2", "", constants)(2, 0, 0), 11);
  EXPECT_EQ(Expression("1 / flux.heater", "", constants)(0, 0, 0), 0.5);
  EXPECT_EQ(Expression("flux.0*flux.heater-.5", "", constants)(0, 0, 0), 7.5);
  EXPECT_TRUE(Expression("k > 2 ? k : 0", "", constants).is_constant());
  for (char const* const text : {"kk", "flux", "flux.heate", "flux.1", "k.", "k(2)", "k 2", "2k"})
    EXPECT_THROW(Expression(text, "", constants), InputError) << text;
  for (char const* const name : {"x", "y", "z", "pi", "if", "sin", "max"})
    EXPECT_TRUE(is_expression_name(name)) << name;
  EXPECT_FALSE(is_expression_name("k"));
}

TEST(Expression, RandomTextNeverCrashes) {
  std::mt19937 random(11);
  std::string const alphabet = "xyzpi sincoexpf(),.+-*/^<>=!&|?:0123456789eE\"'\n%";
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n)
      text += alphabet[random() % alphabet.size()];
    try {
      static_cast<void>(Expression(text, "")(1, 2, 3));
      ++accepted;
    } catch (InputError const&) {
    }
  }
  EXPECT_GT(accepted, 10);
}

TEST(Expression, NamesWithOtherCharacters) {
  Constants const names{{"flux.cold-side", 2}, {"flux.hot wall", 3},  {"volume.2 % (v/v)", 5},
                        {"volume.2", 7},       {R"(area.a"b\c)", 11}, {"probe.tip 1.gradient.x", 13},
                        {"max", 17},           {"side", 19},          {"flux.hot", 23}};
  auto const value = [&](std::string const& text) { return Expression(text, "key", names)(0, 0, 0); };
  EXPECT_EQ(value("1/flux.cold-side"), 0.5);
  EXPECT_EQ(value("flux.cold-side-side"), -17);
  EXPECT_EQ(value(R"(-flux."cold-side"^2)"), -4);
  EXPECT_EQ(value(R"(flux."hot wall" + flux.'hot wall')"), 6);
  EXPECT_EQ(value(R"e(volume."2 % (v/v)")e"), 5);
  EXPECT_EQ(value(R"(area."a\"b\\c")"), 11);
  EXPECT_EQ(value(R"(probe."tip 1".gradient.x)"), 13);
  EXPECT_EQ(value("probe.tip 1.gradient.x"), 13);
  EXPECT_EQ(value("flux.hot - side"), 4);
  EXPECT_EQ(value("max(max, 18)"), 18);
  auto const error = [&](std::string const& text) {
    try {
      value(text);
    } catch (InputError const& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  // Two readings: neither is taken in silence.
  EXPECT_NE(error("volume.2 % (v/v)").find(R"e(write volume."2 % (v/v)")e"), std::string::npos);
  EXPECT_NE(error("flux.hot wall").find(R"(write flux."hot wall")"), std::string::npos);
  EXPECT_NE(error(R"(flux."hot wal")").find(R"(did you mean 'flux."hot wall"'?)"), std::string::npos);
  EXPECT_NE(error(R"(flux."hot wall)").find("this quote is never closed"), std::string::npos);
}

}  // namespace
}  // namespace poisson::assembly
