#pragma once

#include "app/config/config.hpp"

namespace poisson::app {

/// `poisson check`: prints the resolved configuration as YAML, followed, as YAML comments, by its estimated cost: unknowns,
/// non-zeros, bytes per format, device and host memory. Throws InputError for mistakes that only the mesh reveals.
int print_check(Configuration const& configuration);

}  // namespace poisson::app
