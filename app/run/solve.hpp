#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/run/exit_code.hpp"
#include "app/run/rank_team.hpp"
#include "app/run/run.hpp"

namespace poisson::app {

/// Solves the system in the files of configuration.config().system. Files, exit codes and exceptions as of run_case.
[[nodiscard]] ExitCode solve_system(Configuration const& configuration, RunOptions const& options, Console& console);
/// The same on several ranks. Each reads the files and keeps its share of the rows, by their entries. Collective: all ranks have
/// the same configuration, and return or throw the same.
[[nodiscard]] ExitCode solve_system_on_ranks(Configuration const& configuration, RunOptions const& options, Console& console,
                                             RankTeam& team);

}  // namespace poisson::app
