#include "assembly/expression/parser.hpp"

#include "assembly/expression/expression.hpp"
#include "assembly/expression/function_table.hpp"
#include "gpu/core/nearest_name.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

// Both limits are far beyond what a person writes.
constexpr std::size_t max_length = 20000;
constexpr int max_nesting = 200;  ///< a pair of parentheses counts as two

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Whether a name needs no quotes: letters, digits and '_' in parts with '.' between them.
bool is_plain(std::string_view name) {
  bool part_begins = true;
  for (char const c : name) {
    if (c == '.' ? part_begins : !(is_letter(c) || is_digit(c)))
      return false;
    part_begins = c == '.';
  }
  return !part_begins;
}
/// A name as expressions have to write it: flux."hot wall".
std::string spelled(std::string_view name) {
  std::size_t const dot = name.find('.');
  if (is_plain(name) || dot == std::string_view::npos)
    return std::string(name);
  std::string text(name.substr(0, dot + 1));
  text += '"';
  for (char const c : name.substr(dot + 1)) {
    if (c == '"' || c == '\\')
      text += '\\';
    text += c;
  }
  return text + '"';
}

class Parser {
public:
  Parser(std::string_view text, ExpressionNames const& names) : text_(text), names_(names) {}

  ParsedExpression parse() {
    if (text_.size() > max_length)
      fail(0, "the expression has " + std::to_string(text_.size()) + " characters; at most " + std::to_string(max_length) +
                  " are allowed");
    skip_space();
    if (at_end())
      fail(position_, "the expression is empty; write a number or a formula in x, y and z");
    choice();
    if (!at_end())
      unexpected();
    return {code_.take(), uses_coordinates_, std::move(functions_)};
  }

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

  void push(Instruction instruction) {
    if (!code_.push(instruction))
      fail(position_, "the expression is nested too deeply");
  }

  void choice() {
    if (++nesting_ > max_nesting)
      fail(position_, "the expression is nested too deeply");
    logical_or();
    std::size_t const question = position_;
    if (accept("?")) {
      std::size_t const to_else = code_.begin_branches();
      choice();
      if (!accept(":"))
        fail(at_end() ? question : position_, "the ':' of this '?' is missing");
      std::size_t const to_end = code_.next_branch(to_else);
      choice();
      code_.end_branches(to_end);
    }
    --nesting_;
  }
  void logical_or() {
    logical_and();
    while (accept("||")) {
      logical_and();
      code_.apply(Instruction(Op::logical_or), 2);
    }
  }
  void logical_and() {
    comparison();
    while (accept("&&")) {
      comparison();
      code_.apply(Instruction(Op::logical_and), 2);
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
      code_.apply(Instruction(op), 2);
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
      code_.apply(Instruction(op), 2);
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
      code_.apply(Instruction(op), 2);
    }
  }
  void unary() {
    if (++nesting_ > max_nesting)
      fail(position_, "the expression is nested too deeply");
    if (accept("-")) {
      unary();
      code_.apply(Instruction(Op::negate), 1);
    } else if (accept("+")) {
      unary();
    } else if (peek() == '!' && peek(1) != '=' && accept("!")) {
      unary();
      code_.apply(Instruction(Op::logical_not), 1);
    } else {
      primary();
      if (accept("^")) {
        unary();
        code_.apply(Instruction(Op::power), 2);
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
  /// The text between quotes that begins here; a backslash stands before a quote or a backslash that belongs to it.
  std::string quoted() {
    std::size_t const begin = position_;
    char const quote = text_[position_++];
    std::string part;
    for (; !at_end() && peek() != quote; ++position_) {
      if (peek() == '\\' && (peek(1) == '"' || peek(1) == '\'' || peek(1) == '\\'))
        ++position_;
      part += peek();
    }
    if (at_end())
      fail(begin, "this quote is never closed");
    ++position_;
    return part;
  }
  /// A name with its parts, without quotes. `in_quotes`: a part has some.
  std::string scan_name(bool& in_quotes) {
    std::string word;
    for (;;) {
      if (is_letter(peek()) || is_digit(peek())) {
        word += text_[position_++];
      } else if (peek() == '.' && (is_letter(peek(1)) || is_digit(peek(1)))) {
        word += text_[position_++];
      } else if (peek() == '.' && (peek(1) == '"' || peek(1) == '\'')) {
        word += text_[position_++];
        word += quoted();
        in_quotes = true;
      } else {
        return word;
      }
    }
  }
  /// The longest name of a constant that stands at `begin` letter by letter and has other characters than names have; empty: none.
  [[nodiscard]] std::string_view unquoted_name(std::size_t begin) const {
    std::string_view found;
    for (auto const& [name, value] : names_.constants)
      if (std::size_t const end = begin + name.size(); name.size() > found.size() && text_.substr(begin, name.size()) == name &&
                                                       !is_plain(name) &&
                                                       (end == text_.size() || !(is_letter(text_[end]) || is_digit(text_[end]))))
        found = name;
    return found;
  }
  void name() {
    std::size_t const begin = position_;
    bool in_quotes = false;
    std::string word = scan_name(in_quotes);
    // Names from mesh files may have characters of operators: flux.cold-side.
    if (auto const longer = in_quotes ? std::string_view() : unquoted_name(begin); longer.size() > word.size()) {
      if (names_.constants.contains(word))
        fail(begin, "this may be " + spelled(word) + " or " + spelled(longer) + "; write " + spelled(longer) +
                        " for the second, and (" + spelled(word) + ") for the first");
      word = longer;
      position_ = begin + word.size();
    }
    skip_space();
    bool const called = peek() == '(';
    if (word == "x" || word == "y" || word == "z" || word == "pi") {
      if (called)
        fail(begin, word + " is not a function; a product is written with '*'");
      uses_coordinates_ = uses_coordinates_ || word != "pi";
      push(word == "pi" ? Instruction(Op::constant, std::numbers::pi)
                        : Instruction(word == "x"   ? Op::x
                                      : word == "y" ? Op::y
                                                    : Op::z));
      return;
    }
    auto const constant = names_.constants.find(word);
    auto const of_place = names_.functions.find(word);
    bool const is_function = std::any_of(expression_functions().begin(), expression_functions().end(),
                                         [&](NamedFunction const& function) { return function.name == word; });
    if ((constant != names_.constants.end() || of_place != names_.functions.end()) && !(called && is_function)) {
      if (called)
        fail(begin, word + " is not a function; a product is written with '*'");
      if (constant != names_.constants.end()) {
        push(Instruction(Op::constant, constant->second));
      } else {
        functions_.emplace_back(code_.size(), of_place->first);
        uses_coordinates_ = true;
        push(Instruction(Op::x));  // which is not folded, unlike a constant
      }
      return;
    }
    if (word == "if") {
      conditional(begin);
      return;
    }
    for (NamedFunction const& function : expression_functions())
      if (function.name == word) {
        call(function, begin);
        return;
      }
    std::vector<std::string_view> known{"x", "y", "z", "pi", "if"};
    for (NamedFunction const& function : expression_functions())
      known.push_back(function.name);
    std::map<std::string, std::vector<std::string>> families;  // by what comes before the first dot: flux.0, flux.1, ...
    auto const add = [&](std::string const& name) {
      known.push_back(name);
      families[name.find('.') == std::string::npos ? name : name.substr(0, name.find('.') + 1)].push_back(spelled(name));
    };
    for (auto const& [name, value] : names_.constants)
      add(name);
    for (auto const& [name, value] : names_.functions)
      add(name);
    std::string names;
    for (auto const& [family, members] : families)
      if (!called)  // these are no functions
        names += members.front() + (members.size() > 2 ? ", ..." : "") + (members.size() > 1 ? ", " + members.back() : "") + ", ";
    std::string message = "'" + word.substr(0, 40) + "' is not known";
    if (word == "u" || word == "t")
      fail(begin, message +
                      (word == "u" ? ": no value can depend on the solution u, since the equation is linear"
                                   : ": there is no time t, since the problem is steady") +
                      "; known are " + expression_names());
    if (std::string const near = nearest_name(word, known); !near.empty())
      message += "; did you mean '" + spelled(near) + "'? Known are ";
    else
      message += "; known are ";
    fail(begin, message + names + expression_names());
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
    std::string const wanted = function.any_number             ? "two or more arguments"
                               : operands_of(function.op) == 2 ? "2 arguments"
                                                               : "1 argument";
    if (peek() == ')')
      wrong_count(function.name, begin, wanted, 0);
    int found = 0;
    do {
      choice();
      ++found;
      if (function.any_number && found > 1)
        code_.apply(Instruction(function.op), 2);
      else if (!function.any_number && found > 100)
        break;
    } while (accept(","));
    close(open);
    if (function.any_number ? found < 2 : found != (operands_of(function.op)))
      wrong_count(function.name, begin, wanted, found);
    if (!function.any_number)
      code_.apply(Instruction(function.op), static_cast<std::size_t>(operands_of(function.op)));
  }
  void conditional(std::size_t begin) {
    std::size_t const open = position_;
    open_call("if", begin);
    if (peek() == ')')
      wrong_count("if", begin, "3 arguments", 0);
    choice();
    std::size_t const to_else = code_.begin_branches();
    int found = 1;
    std::size_t to_end = 0;
    if (accept(",")) {
      choice();
      ++found;
      to_end = code_.next_branch(to_else);
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
    code_.end_branches(to_end);
  }

  std::string_view text_;
  ExpressionNames const& names_;
  std::size_t position_ = 0;
  CodeBuilder code_;
  std::vector<std::pair<std::size_t, std::string>> functions_;
  int nesting_ = 0;
  bool uses_coordinates_ = false;
};

}  // namespace

ParsedExpression parse_expression(std::string_view text, ExpressionNames const& names) {
  return Parser(text, names).parse();
}

}  // namespace poisson::assembly
