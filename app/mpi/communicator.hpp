#pragma once

#include "gpu/core/communicator.hpp"

#include <memory>
#include <string>

namespace poisson::app {

/// What the library of MPI, poisson_mpi, has.
struct MpiFunctions {
  /// The ranks of MPI_COMM_WORLD. MPI is initialised by the call, and finalised when the result is destroyed. Call it once, from
  /// the main thread. Throws EnvironmentError where MPI does not start.
  std::unique_ptr<Communicator> (*open)();
  /// What MPI says of its version. MPI need not be initialised.
  std::string (*version)();
};

}  // namespace poisson::app

extern "C" poisson::app::MpiFunctions const* poisson_mpi();
