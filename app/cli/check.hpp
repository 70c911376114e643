#pragma once

#include "app/config/config.hpp"

namespace poisson::app {

/// `poisson check`: the resolved configuration as YAML on standard output, followed, as YAML comments, by what it would take:
/// unknowns, non-zeros, bytes per format, device and host memory. Throws InputError for what only the mesh can tell.
int print_check(Configuration const& configuration);

}  // namespace poisson::app
