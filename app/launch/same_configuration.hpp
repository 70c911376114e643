#pragma once

#include "app/config/run_config.hpp"
#include "app/launch/team.hpp"

namespace poisson::app {

/// All ranks must have read the same; a file may differ between machines. Collective: all throw InputError where they have not.
void require_same_configuration(RunConfig const& config, Team& team);

}  // namespace poisson::app
