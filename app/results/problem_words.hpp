#pragma once

#include "app/config/run_config.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::app {

/// The problem as a reader would state it: what is solved, where, with which data. Rows of a label and a text.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> problem_in_words(RunConfig const& config);

/// "-x", "+x", ... for the text of a boundary's id where it is that of a side of the generator's box; else empty.
[[nodiscard]] std::string side_of_box(std::string_view id, RunConfig const& config);

}  // namespace poisson::app
