#pragma once

#include "app/run/run.hpp"

#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

struct SweepOptions {
  RunOptions run;
  int jobs = 1;         ///< cases at a time
  bool resume = false;  ///< keep the results of cases that are done, their files complete; a case is known by the fingerprint of
                        ///< its configuration
};

/// A case of a sweep: its values, and its configuration or why it has none.
struct SweepCase {
  std::string text;  ///< "cells = [8, 8, 8], order = 2"
  std::optional<Configuration> configuration;
  std::string error;
};
/// Every combination of the values. Throws InputError where no case is a valid configuration.
[[nodiscard]] std::vector<SweepCase> sweep_cases(Configuration const& configuration);

/// Runs every case of the configuration's `sweep` in a process of its own, so that one that fails costs no other. Writes
/// sweep.csv, sweep.json and a .pvd over the cases. Returns the worst of the cases' exit codes, after an interrupt its own.
[[nodiscard]] ExitCode run_sweep(Configuration const& configuration, SweepOptions const& options, Console& console);

}  // namespace poisson::app
