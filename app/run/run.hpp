#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/launch/exit_code.hpp"
#include "app/launch/run_options.hpp"

namespace poisson::app {

/// Runs one configuration from the mesh to the files, and prints its stages. Every rank of the team has a block of a box
/// (assembly/mesh/box_partition.hpp) or a part of another mesh (assembly/space/space_partition.hpp): its rows, its cells, its piece
/// of the files. Collective: all ranks have the same configuration, and return or throw the same. Returns exit_done,
/// exit_not_converged (results are written, and the record tells) or the code of an interrupt: during the solve, the current
/// iterate is written; before it, only the record. Throws InputError (wrong configuration) or EnvironmentError.
[[nodiscard]] ExitCode run_case(Configuration const& configuration, RunOptions const& options, Console& console,
                                InternalRunOptions const& internal = {});

}  // namespace poisson::app
