#pragma once

#include "app/config/config.hpp"

namespace poisson::app {

/// `poisson check`: prints the resolved configuration as YAML and, as YAML comments, its estimated cost: unknowns, non-zeros, bytes
/// per format, device and host memory. Returns the exit code. Throws InputError for errors that only the mesh reveals.
int print_check(Configuration const& configuration);

}  // namespace poisson::app
