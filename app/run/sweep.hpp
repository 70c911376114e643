#pragma once

#include "app/run/run.hpp"

#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

struct SweepOptions {
  RunOptions run;
  int jobs = 1;         ///< number of cases that run at a time
  bool resume = false;  ///< keep the results of finished cases whose files are all there; the fingerprint identifies a case
};

/// A case of a sweep: its configuration, or the error where its values give no valid one.
struct SweepCase {
  std::string text;  ///< "cells = [8, 8, 8], order = 2"
  std::optional<Configuration> configuration;
  std::string error;
};
/// The cases of `sweep`: all combinations of the values, or with zip the i-th values together. Throws InputError if no case is
/// valid.
[[nodiscard]] std::vector<SweepCase> sweep_cases(Configuration const& configuration);

/// Runs the cases of the configuration's `sweep`, each in a process of its own, so that a failure affects no other case. Writes
/// sweep.csv, sweep.json and a .pvd (of VTKHDF files a .hdf.series) of all cases. Returns the worst exit code of the cases, or that
/// of an interrupt. Throws InputError, EnvironmentError.
[[nodiscard]] ExitCode run_sweep(Configuration const& configuration, SweepOptions const& options, Console& console);

}  // namespace poisson::app
