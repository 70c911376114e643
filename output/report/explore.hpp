#pragma once

#include <string_view>

namespace poisson::output {

/// Style and script of Page::explore, which read the table of the page.
[[nodiscard]] std::string_view explore_style();
[[nodiscard]] std::string_view explore_script();

}  // namespace poisson::output
