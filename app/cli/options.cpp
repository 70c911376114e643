#include "app/cli/options.hpp"

#include "app/io/console.hpp"

#include <iostream>

namespace poisson::app {

namespace po = boost::program_options;

InputError usage_error(std::string const& command, std::string const& message) {
  return InputError(message + " (see 'poisson " + (command.empty() ? "" : command + " ") + "--help')");
}

ParsedOptions read_options(std::string const& command, std::vector<std::string> const& words,
                           po::options_description const& visible, char const* arguments) {
  ParsedOptions given;
  po::options_description all;
  all.add(visible);
  po::positional_options_description positional;
  if (arguments != nullptr) {
    all.add_options()(arguments, po::value(&given.arguments));
    positional.add(arguments, -1);
  }
  try {
    // No abbreviations: a script must not break when an option is added.
    auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(words).options(all).positional(positional).style(style).run(), given.map);
    po::notify(given.map);
  } catch (po::error const& error) {
    throw usage_error(command, error.what());
  }
  if (given.map["help"].as<bool>())
    std::cout << visible;
  return given;
}

double parse_real(std::string const& command, std::string const& option, std::string const& text, double lowest, double highest) {
  double value{};
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || !(value > lowest && value <= highest))
    throw usage_error(command, option + " must be a number above " + number_text(lowest) + ", at most " + number_text(highest) +
                                   ", found '" + text + "'");
  return value;
}

}  // namespace poisson::app
