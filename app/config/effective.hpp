#pragma once

#include "app/config/run_config.hpp"

namespace poisson::app {

/// Gives the configuration the boundary conditions of one problem of analysis.effective: u - (the coordinate in this direction) is
/// periodic, or u is 0 and the length of the box on the two sides of this direction, and the others are insulated. Precondition:
/// the mesh is a box, whose coordinates are known.
void set_effective_problem(RunConfig& config, bool periodic, Direction direction);

}  // namespace poisson::app
