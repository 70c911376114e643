#pragma once

#include <string>
#include <vector>

namespace poisson::app {

/// `poisson predict`; returns the exit code. Throws InputError, EnvironmentError.
[[nodiscard]] int run_predict_command(std::vector<std::string> const& words);

}  // namespace poisson::app
