#pragma once

#include "app/config/config.hpp"

namespace poisson::app {

struct CheckOptions {
  bool verbose = false;  ///< print the resolved configuration, too
  bool quiet = false;    ///< print errors and warnings only
};

/// `poisson check`: prints what a run on so many ranks would cost, as YAML comments: unknowns, non-zeros, how the matrix is made,
/// its format, device and host memory; on several ranks how the mesh is cut, and what the rank with most takes; and boundaries and
/// materials; with `verbose` the resolved configuration as YAML before that. Returns the exit code. Throws InputError for errors
/// that only the mesh reveals.
int print_check(Configuration const& configuration, int ranks, CheckOptions const& options);

}  // namespace poisson::app
