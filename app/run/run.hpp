#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/run/exit_code.hpp"
#include "app/run/result_record.hpp"

#include <string>

namespace poisson::app {

/// What a command line gives beside the configuration.
struct RunOptions {
  std::string path;  ///< of the configuration file; empty for a system from files
  bool overwrite = false;
  bool verbose = false;  ///< the log of every case of a sweep has the table of formats too
  int threads = 0;       ///< 0: all that the process may use
};

/// What the program itself asks of a run, beside what the user sets.
struct RunHooks {
  bool own_folder = false;     ///< the results directory is one that the program made for this run
  bool keep_unknowns = false;  ///< the solution is written as solution.mtx too, for what looks at several
};

/// Solves one configuration from mesh to files, and tells the console. Returns exit_done or exit_not_converged (results are written
/// and marked); throws InputError (wrong configuration) or EnvironmentError. An interrupt during the solve writes what there
/// is; one before it writes only the record.
[[nodiscard]] ExitCode run_case(Configuration const& configuration, RunOptions const& options, Console& console,
                                RunHooks const& hooks = {});

}  // namespace poisson::app
