#include "app/command_words.hpp"

#include "app/console.hpp"

namespace poisson {

InputError usage_error(std::string const& command, std::string const& message) {
  return InputError(message + " (see 'poisson " + (command.empty() ? "" : command + " ") + "--help')");
}

double parse_real(std::string const& command, std::string const& option, std::string const& text, double lowest, double highest) {
  double value{};
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || !(value > lowest && value <= highest))
    throw usage_error(command, option + " must be a number above " + number_text(lowest) + ", at most " + number_text(highest) +
                                   ", found '" + text + "'");
  return value;
}

}  // namespace poisson
