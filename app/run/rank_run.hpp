#pragma once

#include "app/config/run_config.hpp"
#include "app/run/rank_team.hpp"

namespace poisson::app {

/// All ranks must have read the same; a file may differ between machines. Collective: all throw InputError where they have not.
void require_same_configuration(RunConfig const& config, RankTeam& team);

}  // namespace poisson::app
