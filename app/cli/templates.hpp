#pragma once

#include <span>
#include <string_view>

namespace poisson::app {

/// A configuration to begin with: a file of configs/templates, which the build puts into the program.
struct Template {
  std::string_view name;  ///< of the file, without extension
  std::string_view text;

  /// Its first line, which is a comment.
  [[nodiscard]] constexpr std::string_view description() const {
    std::string_view const line = text.substr(0, text.find('\n'));
    return line.starts_with("# ") ? line.substr(2) : line;
  }
};

/// A mesh file that templates read: its path, as they have it, and its text.
[[nodiscard]] Template const& template_mesh();

/// All of them, by name. Defined in a file that tools/embed_templates.cmake makes.
[[nodiscard]] std::span<Template const> templates();

}  // namespace poisson::app
