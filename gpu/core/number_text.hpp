#pragma once

#include <sstream>
#include <string>

namespace poisson {

/// `value` with three significant digits, for messages.
[[nodiscard]] inline std::string number(double value) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(3);
  text << value;
  return text.str();
}

}  // namespace poisson
