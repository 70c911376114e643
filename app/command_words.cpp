#include "app/command_words.hpp"

namespace poisson {

InputError usage_error(std::string const& command, std::string const& message) {
  return InputError(message + " (see 'poisson " + (command.empty() ? "" : command + " ") + "--help')");
}

}  // namespace poisson
