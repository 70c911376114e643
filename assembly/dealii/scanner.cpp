#include "assembly/dealii/scanner.hpp"

#include "assembly/text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace poisson::assembly {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

}  // namespace

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text.substr(0, 40)) + (text.size() > 40 ? "..." : "") + "'";
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    text = trim(text);
    if (text.empty())
      return words;
    std::size_t n = 0;
    while (n < text.size() && !is_blank(text[n]))
      ++n;
    words.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
}

std::string_view MeshText::word() {
  line_taken_ = false;
  for (;;) {
    if (rest_.empty())
      return {};
    char const c = rest_.front();
    if (c == '\n')
      ++line_;
    else if (!is_blank(c))
      break;
    rest_.remove_prefix(1);
  }
  std::size_t n = 0;
  while (n < rest_.size() && rest_[n] != '\n' && !is_blank(rest_[n]))
    ++n;
  std::string_view const result = rest_.substr(0, n);
  rest_.remove_prefix(n);
  return result;
}

std::string_view MeshText::word_before_comment() {
  for (;;) {
    std::string_view const found = word();
    std::size_t const comment = found.find('#');
    if (comment == std::string_view::npos)
      return found;
    std::string_view rest;
    next_line(rest);
    if (comment > 0)
      return found.substr(0, comment);
  }
}

std::string_view MeshText::peek_word() {
  std::string_view const rest = rest_;
  std::int64_t const line = line_;
  bool const taken = line_taken_;
  std::string_view const result = word();
  rest_ = rest;
  line_ = line;
  line_taken_ = taken;
  return result;
}

bool MeshText::next_line(std::string_view& text) {
  if (line_taken_) {
    // rest_ stands at the newline that ends the line given last.
    if (rest_.empty())
      return false;
    rest_.remove_prefix(1);
    ++line_;
  }
  if (rest_.empty())
    return false;
  std::size_t const n = std::min(rest_.find('\n'), rest_.size());
  text = trim(rest_.substr(0, n));
  rest_.remove_prefix(n);
  line_taken_ = true;
  return true;
}

std::string_view MeshText::peek_line() {
  std::string_view const rest = rest_;
  std::int64_t const line = line_;
  bool const taken = line_taken_;
  std::string_view result;
  if (!next_line(result))
    result = {};
  rest_ = rest;
  line_ = line;
  line_taken_ = taken;
  return result;
}

void MeshText::end_of_line() {
  if (rest_.starts_with("\r\n"))
    rest_.remove_prefix(1);
  if (rest_.starts_with('\n')) {
    rest_.remove_prefix(1);
    ++line_;
  }
  line_taken_ = false;
}

std::string_view MeshText::bytes(std::int64_t count, std::int64_t size, char const* what) {
  binary_ = true;
  line_taken_ = false;
  if (count < 0 || count > static_cast<std::int64_t>(rest_.size()) / size)
    fail(std::string("the file ends where ") + what + " should be");
  std::string_view const result = rest_.substr(0, static_cast<std::size_t>(count * size));
  rest_.remove_prefix(result.size());
  return result;
}

bool MeshText::go_to(std::string_view mark) {
  std::size_t const n = std::min(rest_.find(mark), rest_.size());
  line_ += std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(n), '\n');
  rest_.remove_prefix(n);
  line_taken_ = false;
  return !rest_.empty();
}

std::int64_t MeshText::to_integer(std::string_view word, char const* what) const {
  std::int64_t value = 0;
  std::string_view const digits = word.starts_with('+') ? word.substr(1) : word;
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (word.empty())
    fail(std::string("the file ends, or the line does, where ") + what + " should be");
  if (error != std::errc{} || end != digits.data() + digits.size() || std::abs(value) > (std::int64_t{1} << 60))
    fail(in_quotes(word) + " stands where " + what + " (a whole number) should be");
  return value;
}

double MeshText::to_real(std::string_view word, char const* what) const {
  double value = 0;
  std::string fortran;  // "1.5D+00"
  std::string_view digits = word.starts_with('+') ? word.substr(1) : word;
  if (digits.find_first_of("dD") != std::string_view::npos) {
    fortran = digits;
    std::replace_if(
        fortran.begin(), fortran.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
    digits = fortran;
  }
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (word.empty())
    fail(std::string("the file ends, or the line does, where ") + what + " should be");
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument)
    fail(in_quotes(word) + " stands where " + what + " (a number) should be");
  // What is too small for double precision is zero; from_chars does not say which side it was.
  if (error == std::errc::result_out_of_range)
    value = digits.find("e-") != std::string_view::npos || digits.find("E-") != std::string_view::npos ? 0. : INFINITY;
  if (!std::isfinite(value) || std::abs(value) > 1e100)
    fail(std::string(what) + " is " + in_quotes(word) + "; it must be finite and below 1e100");
  return value;
}

double MeshText::finite(double value, char const* what) const {
  if (!std::isfinite(value) || std::abs(value) > 1e100)
    fail(std::string(what) + " is " + std::to_string(value) + "; it must be finite and below 1e100");
  return value;
}

std::int64_t MeshText::integer(char const* what) {
  return to_integer(word(), what);
}
double MeshText::real(char const* what) {
  return to_real(word(), what);
}

std::int64_t MeshText::count(char const* what) {
  std::int64_t const count = integer(what);
  if (count < 0)
    fail(std::string(what) + " is " + std::to_string(count));
  return count;
}

}  // namespace poisson::assembly
