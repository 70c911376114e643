#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/run/exit_code.hpp"
#include "app/run/rank_team.hpp"
#include "app/run/result_record.hpp"

#include <functional>
#include <string>

namespace poisson::app {

/// Options of the command line that are not part of the configuration.
struct RunOptions {
  std::string path;  ///< of the configuration file; empty for a system from files
  bool overwrite = false;
  bool verbose = false;    ///< print the table of formats, in a sweep into the log of each case
  int threads = 0;         ///< 0: all that the process may use
  std::string command;     ///< the command line, for the record
  std::string matrix_out;  ///< the file to write the assembled matrix to, as SystemFiles takes it; empty: none
};

/// Options of a run that the program sets and not the user; for cases of a sweep.
struct InternalRunOptions {
  bool own_folder = false;                               ///< the program created the results directory for this run
  bool keep_unknowns = false;                            ///< also write the solution as solution.mtx, for analyses of several cases
  std::reference_wrapper<RankTeam> team = alone_team();  ///< the ranks that share the run
};

/// Runs one configuration from the mesh to the files, and prints its stages. Every rank of the team has a block of a box
/// (assembly/mesh/box_partition.hpp) or a part of another mesh (assembly/space/space_partition.hpp): its rows, its cells, its piece
/// of the files. Collective: all ranks have the same configuration, and return or throw the same. Returns exit_done,
/// exit_not_converged (results are written, and the record tells) or the code of an interrupt: during the solve, the current
/// iterate is written; before it, only the record. Throws InputError (wrong configuration) or EnvironmentError.
[[nodiscard]] ExitCode run_case(Configuration const& configuration, RunOptions const& options, Console& console,
                                InternalRunOptions const& internal = {});

}  // namespace poisson::app
