#pragma once

#include "app/config/config.hpp"
#include "app/launch/team.hpp"

#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// `poisson bench`: `words` are the arguments after it. Returns the exit code. Throws InputError or EnvironmentError.
int run_bench_command(std::vector<std::string> const& words);

/// The same on several ranks. Collective. `configuration` gets that of the words, also when it throws.
int run_bench_on_ranks(std::vector<std::string> const& words, Team& team, std::optional<Configuration>& configuration);

}  // namespace poisson::app
