#pragma once

#include "gpu/core/communicator.hpp"

#include <memory>
#include <string>

namespace poisson::app {

/// What a launcher (mpirun, srun) tells a process that it started, in environment variables.
struct Launch {
  int rank = 0, size = 1;
  bool seen = false;  ///< there are traces of the launcher itself; variables alone may be left over from another one

  [[nodiscard]] bool has_ranks() const { return size > 1; }
  /// Whether this process tells what all ranks find wrong: the first one, and every one where there may be no first.
  [[nodiscard]] bool tells() const { return rank == 0 || !seen; }
};

/// Reads what a launcher has set in the environment. Without a launcher there is one rank.
[[nodiscard]] Launch launch_of_environment();

/// The ranks that the launcher started, by MPI: `libpoisson_mpi.so`, which is loaded from beside the program only here, so that a
/// process alone does not wait for MPI. Throws EnvironmentError where it cannot be loaded, or is not the MPI of the launcher.
[[nodiscard]] std::unique_ptr<Communicator> open_communicator(Launch const& launch);

/// The MPI that several ranks would use, "Open MPI v4.1.4", or "no MPI: " and why it cannot be loaded.
[[nodiscard]] std::string mpi_description();

/// The machine of this process.
[[nodiscard]] std::string host_name();

/// The number of this rank among those of its host, from 0: the devices of a host go to its ranks in turns. Collective.
[[nodiscard]] int rank_on_host(Communicator& ranks);

}  // namespace poisson::app
