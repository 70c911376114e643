#pragma once

#include "app/config/config.hpp"

#include <functional>

namespace poisson::app {

/// Exit codes of the program (see the README).
enum ExitCode : int { exit_done = 0, exit_usage = 1, exit_not_converged = 2, exit_environment = 3 };

/// Calls `body` and returns its exit code; turns every exception into one "poisson: error: ..." on standard error and the exit code
/// that belongs to it. `configuration` (may be null) tells the place in the file that an error's key stands at.
int exit_code_of(Configuration const* configuration, std::function<int()> const& body);

}  // namespace poisson::app
