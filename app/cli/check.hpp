#pragma once

#include "app/config/config.hpp"

namespace poisson::app {

struct CheckOptions {
  bool verbose = false;  ///< print the resolved configuration, too
  bool quiet = false;    ///< print errors and warnings only
};

/// `poisson check`: prints what a run would cost, as YAML comments: unknowns, non-zeros, bytes per format, device and host memory;
/// and boundaries and materials; with `verbose` the resolved configuration as YAML before that. Returns the exit code. Throws
/// InputError for errors that only the mesh reveals.
int print_check(Configuration const& configuration, CheckOptions const& options);

/// The same for a run on that many ranks: how the box is cut, and unknowns and bytes of a rank. Nothing of the size of the mesh is
/// made. Throws InputError for what does not run on ranks yet.
int print_check_on_ranks(Configuration const& configuration, int ranks, CheckOptions const& options);

}  // namespace poisson::app
