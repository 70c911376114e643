#pragma once

#include "app/launch/team.hpp"

#include <functional>
#include <string>

namespace poisson::app {

/// Options of the command line that are not part of the configuration.
struct RunOptions {
  std::string path;  ///< of the configuration file; empty for a system from files
  bool overwrite = false;
  bool resume = false;     ///< go on from the checkpoint of an earlier run, if there is one
  bool verbose = false;    ///< print the table of formats, in a sweep into the log of each case
  int threads = 0;         ///< 0: all that the process may use
  int threads_alone = 0;   ///< of the first of several ranks while the others wait for it; 0: as `threads`
  std::string command;     ///< the command line, for the record
  std::string matrix_out;  ///< the file to write the assembled matrix to, as SystemFiles takes it; empty: none
};

struct Kept;  // app/run/kept.hpp

/// Options of a run that the program sets and not the user; for cases of a sweep.
struct InternalRunOptions {
  std::string name;                                  ///< of the case
  bool own_folder = false;                           ///< the program created the results directory for this run
  bool keep_unknowns = false;                        ///< also write the solution as solution.mtx, for analyses of several cases
  std::reference_wrapper<Team> team = alone_team();  ///< the ranks that share the run
  Kept* kept = nullptr;  ///< what earlier runs have left for this one, and this one leaves; null: nothing
};

}  // namespace poisson::app
