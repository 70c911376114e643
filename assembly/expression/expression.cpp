#include "assembly/expression/expression.hpp"

#include "assembly/expression/code_builder.hpp"
#include "assembly/expression/parser.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::assembly {

// Expressions have a compiler of their own. muParser is not used: Debian's 2.3.3 truncates constants to integers when it folds &&
// (0.25 && 1 becomes 0), log is the decimal one there, and it cannot say where most errors are.

namespace {

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

struct Expression::Impl {
  std::string text, key;
  ExpressionCode code;
  bool constant = true;
  struct Use {
    std::size_t instruction;
    PointFunctions::mapped_type function;
  };
  std::vector<Use> uses;  ///< of functions: where their values go
};

Expression::Expression(std::string text, std::string key, ExpressionNames const& names) : impl_(std::make_unique<Impl>()) {
  impl_->text = std::move(text);
  impl_->key = std::move(key);
  try {
    ParsedExpression parsed = parse_expression(impl_->text, names);
    impl_->code = std::move(parsed.code);
    impl_->constant = !parsed.uses_coordinates;
    for (auto const& [instruction, name] : parsed.functions)
      impl_->uses.push_back({instruction, names.functions.at(name)});
    // A constant with a conditional in it is not folded while it is compiled.
    if (impl_->constant)
      impl_->code.assign(1, Instruction(Op::constant, evaluate(impl_->code, 0, 0, 0)));
  } catch (SyntaxError const& error) {
    throw InputError(impl_->key, error.message + with_caret(impl_->text, error.position));
  }
}

Expression::Expression(Expression const& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Expression::Expression(Expression&&) noexcept = default;
Expression::~Expression() = default;

double Expression::operator()(double x, double y, double z) const {
  if (impl_->uses.empty())
    return evaluate(impl_->code, x, y, z);
  thread_local ExpressionCode code;  // of any expression: its memory is kept
  code = impl_->code;
  for (auto const& [instruction, function] : impl_->uses)
    code[instruction] = Instruction(Op::constant, function({x, y, z}));
  return evaluate(code, x, y, z);
}
bool Expression::is_code() const noexcept {
  return impl_->uses.empty();
}
bool Expression::is_constant() const noexcept {
  return impl_->constant;
}
std::string const& Expression::text() const noexcept {
  return impl_->text;
}
ExpressionCode const& Expression::code() const noexcept {
  return impl_->code;
}
std::string const& Expression::key() const noexcept {
  return impl_->key;
}

}  // namespace poisson::assembly
