#pragma once

#include <string_view>
#include <vector>

namespace poisson::assembly {

/// Returns the text without white space at either end.
[[nodiscard]] inline std::string_view trim(std::string_view text) {
  auto const first = text.find_first_not_of(" \t\r\n\v\f");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t\r\n\v\f") - first + 1);
}

/// The parts between separators, trimmed; at least one.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    auto const place = text.find(separator);
    parts.push_back(trim(text.substr(0, place)));
    if (place == std::string_view::npos)
      return parts;
    text.remove_prefix(place + 1);
  }
}

}  // namespace poisson::assembly
