#pragma once

#include "app/run/run.hpp"

namespace poisson::app {

struct SweepOptions {
  RunOptions run;
  int jobs = 1;  ///< cases at a time
  bool resume =
      false;  ///< keep the results of cases that are done, their files complete; a case is known by the fingerprint of its configuration
};

/// Runs every case of the configuration's `sweep` in a process of its own, so that one that fails costs no other. Writes
/// sweep.csv, sweep.json and a .pvd over the cases. Returns the worst of the cases' exit codes, after an interrupt its own.
[[nodiscard]] ExitCode run_sweep(Configuration const& configuration, SweepOptions const& options, Console& console);

}  // namespace poisson::app
