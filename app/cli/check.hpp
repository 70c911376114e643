#pragma once

#include "app/config/config.hpp"

namespace poisson::app {

/// `poisson check`: prints the resolved configuration as YAML and, as YAML comments, its estimated cost: unknowns, non-zeros, bytes
/// per format, device and host memory. Returns the exit code. Throws InputError for errors that only the mesh reveals.
int print_check(Configuration const& configuration);

/// The same for a run on that many ranks: how the box is cut, and unknowns and bytes of a rank. Nothing of the size of the mesh is
/// made. Throws InputError for what does not run on ranks yet.
int print_check_on_ranks(Configuration const& configuration, int ranks);

}  // namespace poisson::app
