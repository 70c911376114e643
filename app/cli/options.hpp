#pragma once

#include "gpu/core/error.hpp"
#include "gpu/core/names.hpp"
#include "gpu/core/nearest_name.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

/// Parsing of options and their values. All functions throw usage_error.
namespace poisson::app {

/// The InputError for an error in the command line.
[[nodiscard]] InputError usage_error(std::string const& command, std::string const& message);

/// The options of a command line.
struct ParsedOptions {
  boost::program_options::variables_map map;
  /// Positional arguments.
  std::vector<std::string> arguments;
};

/// Parses `words` into the variables that `visible` binds. Prints `visible` for --help, which every command has. `arguments` is the
/// name of a hidden option for positional arguments; if it is null, they are errors.
[[nodiscard]] ParsedOptions read_options(std::string const& command, std::vector<std::string> const& words,
                                         boost::program_options::options_description const& visible,
                                         char const* arguments = nullptr);

/// The integers of "64,128", each in [lowest, highest].
template <class I>
std::vector<I> parse_integers(std::string const& command, std::string const& option, std::string const& text, I lowest, I highest,
                              bool power_of_two = false) {
  std::vector<I> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    I value{};
    auto const [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end || value < lowest || value > highest ||
        (power_of_two && !std::has_single_bit(static_cast<std::uint64_t>(value))))
      throw usage_error(command, option + " must be " + (power_of_two ? "powers of two" : "integers") + " from " +
                                     std::to_string(lowest) + " to " + std::to_string(highest) + ", separated by commas; found '" +
                                     text.substr(begin, end - begin) + "'");
    result.push_back(value);
    begin = end + 1;
  }
  return result;
}

/// An integer in [lowest, highest].
template <class I>
I parse_integer(std::string const& command, std::string const& option, std::string const& text, I lowest, I highest) {
  I value{};
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < lowest || value > highest)
    throw usage_error(command, option + " must be an integer from " + std::to_string(lowest) + " to " + std::to_string(highest) +
                                   ", found '" + text + "'");
  return value;
}

/// A value of an enumeration by its name. The error lists all names and suggests a similar one. Without `with_auto` the name
/// "auto" does not exist.
template <class E>
E parse_named(std::string const& command, std::string const& what, std::string const& word, bool with_auto = true) {
  if (auto const value = parse_name<E>(word); value && (with_auto || word != "auto"))
    return *value;
  std::vector<std::string_view> names;
  std::string known;
  for (auto const& entry : Names<E>::values) {
    if (!with_auto && entry.name == "auto")
      continue;
    names.push_back(entry.name);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  std::string const near = nearest_name(word, names);
  throw usage_error(command, "unknown " + what + " '" + word + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                 "; there are " + known);
}

/// The values of "cg,bicgstab"; for "all", every value.
template <class E>
std::vector<E> parse_names(std::string const& command, std::string const& what, std::string const& text, bool with_auto = true) {
  std::vector<E> result;
  if (text == "all") {
    for (auto const& entry : Names<E>::values)
      if (with_auto || entry.name != "auto")
        result.push_back(entry.value);
    return result;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    result.push_back(parse_named<E>(command, what, text.substr(begin, end - begin), with_auto));
    begin = end + 1;
  }
  return result;
}

/// A number in (lowest, highest].
[[nodiscard]] double parse_real(std::string const& command, std::string const& option, std::string const& text, double lowest,
                                double highest);

}  // namespace poisson::app
