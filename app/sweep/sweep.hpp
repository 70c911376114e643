#pragma once

#include "app/run/run.hpp"
#include "app/sweep/sweep_cases.hpp"

#include <string>
#include <vector>

namespace poisson::app {

struct SweepOptions {
  RunOptions run;
  int jobs = 0;                 ///< number of cases that run at a time; 0: as many as there are `gpus`, without them 1
  bool resume = false;          ///< keep the results of finished cases whose files are all there; the fingerprint identifies a case
  std::string command_of_case;  ///< how a command begins that runs one case: with CONFIG and --set
  std::string gpus;             ///< see devices_for_cases; empty: cases find a device themselves
};

/// The devices of `--gpus`, as values of CUDA_VISIBLE_DEVICES: of "3" the first three, of "0,2" those with these numbers. `present`
/// is how many devices there are, and `visible` that variable in this process (null: not set), which numbers them. Throws
/// InputError.
[[nodiscard]] std::vector<std::string> devices_for_cases(std::string const& gpus, int present, char const* visible);

/// Runs the cases of the configuration's `sweep` in copies of this process (app/sweep/case_workers.hpp), so that a failure affects
/// no other case, and what they share is read and loaded once. Precondition: that of Worker (app/io/child_process.hpp). Writes
/// sweep.csv, sweep.json and a .pvd (of VTKHDF files a .hdf.series) of all cases. Returns the worst exit code of the cases, or that
/// of an interrupt. Throws InputError, EnvironmentError.
[[nodiscard]] ExitCode run_sweep(Configuration const& configuration, SweepOptions const& options, Console& console);

/// Writes what run_sweep writes from what is there of the cases, and tells which are missing, running or failed. Returns the code
/// that run_sweep would; at least exit_environment where a case is missing. Throws InputError, EnvironmentError.
[[nodiscard]] ExitCode collect_sweep(Configuration const& configuration, RunOptions const& options, Console& console);

/// Prints a line for every case: its number, the name of its folder ("-" where it is not valid, with a warning), and its settings
/// key.path=value; a tab between them.
void list_sweep(Configuration const& configuration);

/// Runs one case, called as sweep_case (sweep_cases.hpp) takes it, in its folder of the sweep's directory, and keeps it if it is
/// finished and `options.overwrite` is not set. Writes nothing else there, so that other cases may run at the same time, elsewhere
/// too. Collective. Returns the exit code of the case; its log tells of its errors, and so does standard error. Throws
/// InputError.
[[nodiscard]] ExitCode run_sweep_case(Configuration const& configuration, std::string const& name, RunOptions const& options,
                                      Console& console, Team& team);

/// The same for a case that is known, of the sweep of `configuration`. `kept` as in InternalRunOptions.
[[nodiscard]] ExitCode run_known_case(Configuration const& configuration, NumberedCase found, RunOptions const& options,
                                      Console& console, Team& team, Kept* kept = nullptr);

}  // namespace poisson::app
