#pragma once

#include "app/launch/exit_code.hpp"
#include "app/launch/launch.hpp"

#include <string>
#include <vector>

namespace poisson::app {

/// Prints what this program was built with and what this machine has: libraries, devices, bandwidths. `hosts`: the machine of every
/// rank; empty without a launcher.
void print_info(std::vector<std::string> const& hosts = {});

/// Calls print_info on the first of the ranks that a launcher has started, with the machines of all of them. Throws
/// EnvironmentError, the same on all ranks.
[[nodiscard]] ExitCode print_info_on_ranks(Launch const& launch);

}  // namespace poisson::app
