#pragma once

#include "gpu/core/communicator.hpp"

namespace poisson::app {

/// What the library of MPI exports, under the name poisson_open_communicator: the ranks of MPI_COMM_WORLD. MPI is initialised by
/// the call, and finalised when the result is destroyed. Call it once, from the main thread. Null, with the reason in `error`,
/// where MPI does not start.
using OpenCommunicator = Communicator* (*)(std::string& error);

/// The library of MPI also exports this function, under the name poisson_mpi_version. It returns in `version` what MPI says of its
/// version. MPI need not be initialised.
using MpiVersion = void (*)(std::string& version);

}  // namespace poisson::app
