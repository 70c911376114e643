#pragma once

#include "app/run/rank_team.hpp"
#include "app/run/run.hpp"

namespace poisson::app {

/// Whether the ranks share blocks of a box on which multigrid has levels.
[[nodiscard]] bool has_blocks(RunConfig const& config);

/// All ranks must have read the same; a file may differ between machines. Collective: all throw InputError where they have not.
void require_same_configuration(RunConfig const& config, RankTeam& team);

/// Throws InputError for the first key that asks for what several ranks cannot do yet.
void require_runs_on_ranks(RunConfig const& config);

/// run_case on several ranks, each with a block of a box (assembly/mesh/box_partition.hpp) or a part of another mesh
/// (assembly/space/space_partition.hpp): its rows, its cells, its piece of the files. Collective: all ranks have the same
/// configuration, and return or throw the same. Throws InputError for what does not run on several ranks yet.
[[nodiscard]] ExitCode run_case_on_ranks(Configuration const& configuration, RunOptions const& options, Console& console,
                                         RankTeam& team, InternalRunOptions internal = {});

}  // namespace poisson::app
