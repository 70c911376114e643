#pragma once

#include "app/config/config.hpp"
#include "app/launch/team.hpp"

#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// `poisson bench`: `words` are the arguments after it. Returns the exit code. Throws InputError or EnvironmentError.
int run_bench_command(std::vector<std::string> const& words);

/// Runs `poisson bench` with the arguments `words` on several ranks. Collective. Returns the exit code. `configuration` gets the
/// one that `words` name, also when this throws. Throws InputError or EnvironmentError.
int run_bench_on_ranks(std::vector<std::string> const& words, Team& team, std::optional<Configuration>& configuration);

}  // namespace poisson::app
