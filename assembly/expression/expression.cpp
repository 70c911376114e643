#include "assembly/expression/expression.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

// Expressions are compiled to postfix code for a stack machine. muParser is not used: Debian's 2.3.3 truncates constants to
// integers when it folds && (0.25 && 1 becomes 0), log is the decimal one there, and it cannot say where most errors are. The
// limits keep the compiler's recursion and the machine's stack bounded whatever the input; both are far beyond what a person
// writes.
constexpr std::size_t max_length = 20000;
constexpr int max_nesting = 200;  ///< a pair of parentheses counts as two
constexpr std::size_t stack_size = 256;

enum class Op : std::uint8_t {
  constant,
  x,
  y,
  z,
  // The functions call_1 and call_2 pop one or two values and push one, as every operator below does.
  call_1,
  call_2,
  add,
  subtract,
  multiply,
  divide,
  power,
  square,
  cube,
  negate,
  logical_not,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  jump_if_zero,
  jump,
};

using Function1 = double (*)(double);
using Function2 = double (*)(double, double);

struct Instruction {
  Op op{};
  union {
    double value;
    Function1 call_1;
    Function2 call_2;
    std::size_t target;
  };
  Instruction(Op o, double v) : op(o), value(v) {}
  explicit Instruction(Op o) : op(o), value(0) {}
  explicit Instruction(Function1 f) : op(Op::call_1), call_1(f) {}
  explicit Instruction(Function2 f) : op(Op::call_2), call_2(f) {}
};

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

struct NamedFunction {
  std::string_view name;
  Function1 one = nullptr;
  Function2 two = nullptr;
  bool any_number = false;  ///< two or more arguments, folded from the left
};

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

double run(std::vector<Instruction> const& code, double x, double y, double z) {
  // Left uninitialised: the compiler below bounds the depth. The first element stays unused, `top` is the last one in use.
  double stack[stack_size + 1];
  double* top = stack;
  Instruction const* const begin = code.data();
  Instruction const* const end = begin + code.size();
  auto const binary = [&top](auto f) {
    double const b = *top--;
    *top = f(*top, b);
  };
  for (Instruction const* i = begin; i != end; ++i) {
    switch (i->op) {
    case Op::constant:
      *++top = i->value;
      break;
    case Op::x:
      *++top = x;
      break;
    case Op::y:
      *++top = y;
      break;
    case Op::z:
      *++top = z;
      break;
    case Op::call_1:
      *top = i->call_1(*top);
      break;
    case Op::call_2:
      binary(i->call_2);
      break;
    case Op::add:
      binary([](double a, double b) { return a + b; });
      break;
    case Op::subtract:
      binary([](double a, double b) { return a - b; });
      break;
    case Op::multiply:
      binary([](double a, double b) { return a * b; });
      break;
    case Op::divide:
      binary([](double a, double b) { return a / b; });
      break;
    case Op::power:
      binary([](double a, double b) { return std::pow(a, b); });
      break;
    case Op::square:
      *top *= *top;
      break;
    case Op::cube:
      *top *= *top * *top;
      break;
    case Op::negate:
      *top = -*top;
      break;
    case Op::logical_not:
      *top = *top == 0 ? 1. : 0.;
      break;
    case Op::less:
      binary([](double a, double b) { return a < b ? 1. : 0.; });
      break;
    case Op::less_equal:
      binary([](double a, double b) { return a <= b ? 1. : 0.; });
      break;
    case Op::greater:
      binary([](double a, double b) { return a > b ? 1. : 0.; });
      break;
    case Op::greater_equal:
      binary([](double a, double b) { return a >= b ? 1. : 0.; });
      break;
    case Op::equal:
      binary([](double a, double b) { return a == b ? 1. : 0.; });
      break;
    case Op::not_equal:
      binary([](double a, double b) { return a != b ? 1. : 0.; });
      break;
    case Op::logical_and:
      binary([](double a, double b) { return a != 0 && b != 0 ? 1. : 0.; });
      break;
    case Op::logical_or:
      binary([](double a, double b) { return a != 0 || b != 0 ? 1. : 0.; });
      break;
    case Op::jump_if_zero:
      if (*top-- == 0)
        i = begin + i->target - 1;
      break;
    case Op::jump:
      i = begin + i->target - 1;
      break;
    }
  }
  return *top;
}

struct SyntaxError {
  std::size_t position;
  std::string message;
};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Recursive descent, lowest precedence first:
///   choice = or ["?" choice ":" choice];  or = and {"||" and};  and = comparison {"&&" comparison};
///   comparison = sum [relation sum];  sum = product {("+"|"-") product};  product = unary {("*"|"/") unary};
///   unary = ("-"|"+"|"!") unary | power;  power = primary ["^" unary]
class Compiler {
public:
  explicit Compiler(std::string_view text) : text_(text) {}

  std::vector<Instruction> compile() {
    if (text_.size() > max_length)
      fail(0, "the expression has " + std::to_string(text_.size()) + " characters; at most " + std::to_string(max_length) +
                  " are allowed");
    skip_space();
    if (at_end())
      fail(position_, "the expression is empty; write a number or a formula in x, y and z");
    choice();
    if (!at_end())
      unexpected();
    return std::move(code_);
  }
  [[nodiscard]] bool uses_coordinates() const noexcept { return uses_coordinates_; }

private:
  [[noreturn]] void fail(std::size_t position, std::string message) const { throw SyntaxError{position, std::move(message)}; }

  [[nodiscard]] bool at_end() const { return position_ >= text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  void skip_space() {
    while (!at_end() && is_space(text_[position_]))
      ++position_;
  }
  bool accept(std::string_view token) {
    if (text_.substr(position_, token.size()) != token)
      return false;
    position_ += token.size();
    skip_space();
    return true;
  }

  /// Says why nothing that may follow a complete operand stands here.
  [[noreturn]] void unexpected() const {
    char const c = peek();
    if (c == '=')
      fail(position_, "assignment is not allowed; equality is written '=='");
    if (c == ',')
      fail(position_, "an expression has one result; ',' only separates the arguments of a function");
    if (c == ')')
      fail(position_, "this ')' has no '(' before it");
    if (c == ':')
      fail(position_, "this ':' has no '?' before it");
    if (c == '&' || c == '|')
      fail(position_, std::string("'") + c + "' alone is not an operator; write '" + c + c + "'");
    if (c == '(' || c == '.' || is_digit(c) || is_letter(c))
      fail(position_, "an operator is missing here; a product is written with '*'");
    if (c == '%')
      fail(position_, "'%' is not an operator; write mod(a, b)");
    fail(position_, foreign_character());
  }
  [[nodiscard]] std::string foreign_character() const {
    char const c = peek();
    if (c == '"' || c == '\'')
      return "strings are not allowed in an expression";
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f)
      return "a control character (code " + std::to_string(static_cast<unsigned char>(c)) + ") is not allowed";
    if (static_cast<unsigned char>(c) >= 0x80)
      return "only ASCII characters are allowed in an expression (write pi, '-', '*')";
    return std::string("'") + c + "' is not allowed here";
  }

  /// Appends an operator, or its result when its operands are constants.
  void emit(Instruction instruction, std::size_t operands) {
    bool constant = code_.size() >= fold_limit_ + operands;
    for (std::size_t i = 0; constant && i < operands; ++i)
      constant = code_[code_.size() - 1 - i].op == Op::constant;
    if (constant) {
      std::vector<Instruction> piece(code_.end() - static_cast<std::ptrdiff_t>(operands), code_.end());
      piece.push_back(instruction);
      double const value = run(piece, 0, 0, 0);
      code_.erase(code_.end() - static_cast<std::ptrdiff_t>(operands), code_.end());
      code_.emplace_back(Op::constant, value);
    } else if (instruction.op == Op::power && code_.size() > fold_limit_ && code_.back().op == Op::constant &&
               (code_.back().value == 2 || code_.back().value == 3)) {
      code_.back() = Instruction(code_.back().value == 2 ? Op::square : Op::cube);
    } else {
      code_.push_back(instruction);
    }
    depth_ -= operands - 1;
  }
  void push(Instruction instruction) {
    code_.push_back(instruction);
    if (++depth_ > stack_size)
      fail(position_, "the expression is nested too deeply");
  }

  void choice() {
    if (++nesting_ > max_nesting)
      fail(position_, "the expression is nested too deeply");
    logical_or();
    std::size_t const question = position_;
    if (accept("?")) {
      std::size_t const to_else = begin_branch();
      choice();
      if (!accept(":"))
        fail(at_end() ? question : position_, "the ':' of this '?' is missing");
      std::size_t const to_end = next_branch(to_else);
      choice();
      end_branch(to_end);
    }
    --nesting_;
  }
  // Of a conditional only the branch taken is evaluated: the condition is followed by jumps. Constants must not be folded
  // across the place that a jump leads to.
  std::size_t begin_branch() {
    code_.emplace_back(Op::jump_if_zero);
    --depth_;
    fold_limit_ = code_.size();
    return code_.size() - 1;
  }
  std::size_t next_branch(std::size_t to_else) {
    code_.emplace_back(Op::jump);
    --depth_;
    code_[to_else].target = fold_limit_ = code_.size();
    return code_.size() - 1;
  }
  void end_branch(std::size_t to_end) { code_[to_end].target = fold_limit_ = code_.size(); }

  void logical_or() {
    logical_and();
    while (accept("||")) {
      logical_and();
      emit(Instruction(Op::logical_or), 2);
    }
  }
  void logical_and() {
    comparison();
    while (accept("&&")) {
      comparison();
      emit(Instruction(Op::logical_and), 2);
    }
  }
  bool relation(Op& op) {
    if (accept("<="))
      op = Op::less_equal;
    else if (accept(">="))
      op = Op::greater_equal;
    else if (accept("=="))
      op = Op::equal;
    else if (accept("!="))
      op = Op::not_equal;
    else if (accept("<"))
      op = Op::less;
    else if (accept(">"))
      op = Op::greater;
    else
      return false;
    return true;
  }
  void comparison() {
    sum();
    Op op{};
    if (relation(op)) {
      sum();
      emit(Instruction(op), 2);
      std::size_t const second = position_;
      if (relation(op))
        fail(second, "comparisons cannot be chained; write a < b && b < c");
    }
  }
  void sum() {
    product();
    for (;;) {
      Op const op = peek() == '+' ? Op::add : Op::subtract;
      if (!accept("+") && !accept("-"))
        return;
      product();
      emit(Instruction(op), 2);
    }
  }
  void product() {
    unary();
    for (;;) {
      if (peek() == '*' && peek(1) == '*')
        fail(position_, "'**' is not an operator; a power is written '^'");
      Op const op = peek() == '*' ? Op::multiply : Op::divide;
      if (!accept("*") && !accept("/"))
        return;
      unary();
      emit(Instruction(op), 2);
    }
  }
  void unary() {
    if (++nesting_ > max_nesting)
      fail(position_, "the expression is nested too deeply");
    if (accept("-")) {
      unary();
      emit(Instruction(Op::negate), 1);
    } else if (accept("+")) {
      unary();
    } else if (peek() == '!' && peek(1) != '=' && accept("!")) {
      unary();
      emit(Instruction(Op::logical_not), 1);
    } else {
      primary();
      if (accept("^")) {
        unary();
        emit(Instruction(Op::power), 2);
      }
    }
    --nesting_;
  }

  void primary() {
    char const c = peek();
    if (at_end())
      fail(position_, "the expression ends where a number, a name or '(' should follow");
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (is_letter(c)) {
      name();
    } else if (c == '(') {
      std::size_t const open = position_;
      accept("(");
      if (peek() == ')')
        fail(position_, "there is nothing between these parentheses");
      choice();
      close(open);
    } else if (std::string_view("+-*/^<>=!&|?:,.)").find(c) != std::string_view::npos) {
      fail(position_, std::string("'") + c + "' stands where a number, a name or '(' should be");
    } else {
      fail(position_, foreign_character());
    }
  }
  void close(std::size_t open) {
    if (accept(")"))
      return;
    if (at_end())
      fail(open, "this '(' is never closed");
    unexpected();
  }
  void number() {
    double value = 0;
    // std::from_chars knows no locale.
    auto const [end, error] = std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
    if (error != std::errc{})
      fail(position_, "this number is beyond the range of double precision");
    std::size_t const begin = position_;
    position_ = static_cast<std::size_t>(end - text_.data());
    if (is_letter(peek()) || is_digit(peek()) || peek() == '.')
      fail(is_letter(peek()) && peek() != 'e' && peek() != 'E' ? position_ : begin,
           is_letter(peek()) && peek() != 'e' && peek() != 'E' ? "an operator is missing here; a product is written with '*'"
                                                               : "this is not a number");
    skip_space();
    push(Instruction(Op::constant, value));
  }
  void name() {
    std::size_t const begin = position_;
    while (is_letter(peek()) || is_digit(peek()))
      ++position_;
    std::string_view const word = text_.substr(begin, position_ - begin);
    skip_space();
    bool const called = peek() == '(';
    if (word == "x" || word == "y" || word == "z" || word == "pi") {
      if (called)
        fail(begin, std::string(word) + " is not a function; a product is written with '*'");
      uses_coordinates_ = uses_coordinates_ || word != "pi";
      push(word == "pi" ? Instruction(Op::constant, std::numbers::pi)
                        : Instruction(word == "x"   ? Op::x
                                      : word == "y" ? Op::y
                                                    : Op::z));
      return;
    }
    if (word == "if") {
      conditional(begin);
      return;
    }
    for (NamedFunction const& function : functions)
      if (function.name == word) {
        call(function, begin);
        return;
      }
    std::vector<std::string_view> known{"x", "y", "z", "pi", "if"};
    for (NamedFunction const& function : functions)
      known.push_back(function.name);
    std::string message = "'" + std::string(word.substr(0, 40)) + "' is not known";
    if (std::string const near = nearest_name(word, known); !near.empty())
      message += "; did you mean '" + near + "'? Known are ";
    else
      message += "; known are ";
    fail(begin, message + expression_names());
  }
  [[noreturn]] void wrong_count(std::string_view name, std::size_t begin, std::string const& wanted, int found) const {
    fail(begin, std::string(name) + " takes " + wanted + ", not " + std::to_string(found));
  }
  void open_call(std::string_view name, std::size_t begin) {
    if (!accept("("))
      fail(begin, std::string(name) + " is a function; its arguments follow in parentheses");
  }
  void call(NamedFunction const& function, std::size_t begin) {
    std::size_t const open = position_;
    open_call(function.name, begin);
    std::string const wanted = function.any_number ? "two or more arguments" : function.two ? "2 arguments" : "1 argument";
    if (peek() == ')')
      wrong_count(function.name, begin, wanted, 0);
    int found = 0;
    do {
      choice();
      ++found;
      if (function.any_number && found > 1)
        emit(Instruction(function.two), 2);
      else if (!function.any_number && found > 100)
        break;
    } while (accept(","));
    close(open);
    if (function.any_number ? found < 2 : found != (function.two ? 2 : 1))
      wrong_count(function.name, begin, wanted, found);
    if (function.one)
      emit(Instruction(function.one), 1);
    else if (!function.any_number)
      emit(Instruction(function.two), 2);
  }
  void conditional(std::size_t begin) {
    std::size_t const open = position_;
    open_call("if", begin);
    if (peek() == ')')
      wrong_count("if", begin, "3 arguments", 0);
    choice();
    std::size_t const to_else = begin_branch();
    int found = 1;
    std::size_t to_end = 0;
    if (accept(",")) {
      choice();
      ++found;
      to_end = next_branch(to_else);
      if (accept(",")) {
        choice();
        ++found;
        if (peek() == ',')
          ++found;
      }
    }
    if (found == 3 || peek() != ',')
      close(open);
    if (found != 3)
      fail(begin, found > 3 ? "if takes 3 arguments, not more" : "if takes 3 arguments, not " + std::to_string(found));
    end_branch(to_end);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::vector<Instruction> code_;
  std::size_t fold_limit_ = 0;  ///< instructions before this one may be jumped over
  std::size_t depth_ = 0;
  int nesting_ = 0;
  bool uses_coordinates_ = false;
};

/// Two lines: the text around `position`, and a caret under it. Counts UTF-8 characters, not bytes.
std::string with_caret(std::string_view text, std::size_t position) {
  constexpr std::size_t context = 60;
  position = std::min(position, text.size());
  auto const continues = [&](std::size_t i) { return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
  std::size_t begin = position > context ? position - context : 0;
  std::size_t end = std::min(text.size(), position + context);
  while (continues(begin))
    ++begin;
  while (continues(end))
    ++end;
  std::string line = begin > 0 ? "..." : "";
  std::string caret(line.size(), ' ');
  for (std::size_t i = begin; i < end; ++i) {
    unsigned char const c = static_cast<unsigned char>(text[i]);
    line += c < 0x20 || c == 0x7f ? ' ' : text[i];
    if (i < position && !continues(i))
      caret += ' ';
  }
  return "\n  " + line + (end < text.size() ? "..." : "") + "\n  " + caret + "^";
}

}  // namespace

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

struct Expression::Impl {
  std::string text, key;
  std::vector<Instruction> code;
  bool constant = true;
};

Expression::Expression(std::string text, std::string key) : impl_(std::make_unique<Impl>()) {
  impl_->text = std::move(text);
  impl_->key = std::move(key);
  try {
    Compiler compiler(impl_->text);
    impl_->code = compiler.compile();
    impl_->constant = !compiler.uses_coordinates();
    // A constant with a conditional in it is not folded while it is compiled.
    if (impl_->constant)
      impl_->code.assign(1, Instruction(Op::constant, run(impl_->code, 0, 0, 0)));
  } catch (SyntaxError const& error) {
    throw InputError(impl_->key, error.message + with_caret(impl_->text, error.position));
  }
}

Expression::Expression(Expression const& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Expression::Expression(Expression&&) noexcept = default;
Expression::~Expression() = default;

double Expression::operator()(double x, double y, double z) const {
  return run(impl_->code, x, y, z);
}
bool Expression::is_constant() const noexcept {
  return impl_->constant;
}
std::string const& Expression::text() const noexcept {
  return impl_->text;
}
std::string const& Expression::key() const noexcept {
  return impl_->key;
}

}  // namespace poisson::assembly
