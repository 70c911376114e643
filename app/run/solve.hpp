#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/launch/exit_code.hpp"
#include "app/launch/team.hpp"
#include "app/run/run.hpp"

namespace poisson::app {

/// Solves the system in the files of configuration.config().system. Files, exit codes and exceptions as of run_case. The first rank
/// reads the files, and every rank gets its share of the rows, by their entries. Collective.
[[nodiscard]] ExitCode solve_system(Configuration const& configuration, RunOptions const& options, Console& console, Team& team);

}  // namespace poisson::app
