#pragma once

#include "app/config/config.hpp"
#include "app/launch/team.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// `poisson bench`: `words` are the arguments after it, and `threads` gives the number of threads
/// where they name none (0: all that the process may use). Collective. Returns the exit code. `configuration` gets the one that
/// `words` name, also when this throws. Throws InputError or EnvironmentError.
int run_bench_command(std::vector<std::string> const& words, Team& team, std::function<int()> const& threads,
                      std::optional<Configuration>& configuration);

}  // namespace poisson::app
