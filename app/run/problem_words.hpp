#pragma once

#include "app/config/run_config.hpp"

#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// The problem as a reader would state it: what is solved, where, with which data. Rows of a label and a text.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> problem_in_words(RunConfig const& config);

}  // namespace poisson::app
