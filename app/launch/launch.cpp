#include "app/launch/launch.hpp"

#include "app/mpi/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/module.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <system_error>
#include <unistd.h>

extern "C" __attribute__((weak)) poisson::app::MpiFunctions const* poisson_mpi();

namespace poisson::app {

namespace {

/// The first of these variables that is a number; `otherwise` without one.
int number_of_environment(std::initializer_list<char const*> names, int otherwise) {
  for (char const* const name : names)
    if (char const* const text = std::getenv(name)) {
      int value = 0;
      char const* const end = text + std::strlen(text);
      if (auto const [stop, error] = std::from_chars(text, end, value); error == std::errc() && stop == end && value >= 0)
        return value;
    }
  return otherwise;
}

Module<MpiFunctions> const& mpi() {
  // MPI loads components of its own, which look for its symbols: they must be visible.
  static Module<MpiFunctions> const module("poisson_mpi", poisson_mpi, "several ranks", true);
  return module;
}

}  // namespace

Launch launch_of_environment() {
  // Open MPI; MPICH and Intel MPI; Slurm with PMI or PMIx, whose SLURM_NTASKS alone says nothing: a batch script has it, too.
  Launch launch;
  launch.size = number_of_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1);
  launch.rank = number_of_environment({"OMPI_COMM_WORLD_RANK", "PMI_RANK"}, 0);
  if (launch.size <= 1 && (std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_FD") != nullptr)) {
    launch.size = number_of_environment({"SLURM_STEP_NUM_TASKS"}, 1);
    launch.rank = number_of_environment({"PMIX_RANK", "SLURM_PROCID"}, 0);
  }
  for (char const* const contact : {"PMIX_NAMESPACE", "PMI_FD", "PMI_PORT"})
    launch.seen = launch.seen || std::getenv(contact) != nullptr;
  return launch;
}

std::unique_ptr<Communicator> open_communicator(Launch const& launch) {
  if (!mpi().missing().empty())
    throw EnvironmentError(
        "started as one of " + std::to_string(launch.size) +
        " ranks, but the library for that cannot be loaded; it belongs beside the program, and is built where MPI "
        "is (POISSON_MPI): " +
        mpi().missing());
  std::unique_ptr<Communicator> ranks = mpi().functions().open();
  if (ranks->size() != launch.size)
    throw EnvironmentError(
        "started as one of " + std::to_string(launch.size) + " ranks, but MPI knows of " + std::to_string(ranks->size()) +
        (launch.seen ? ": the program was built with another MPI than this launcher's"
                     : ": there is no launcher, or it belongs to another MPI than the program was built with; variables "
                       "such as PMI_SIZE and OMPI_COMM_WORLD_SIZE may be left over from one"));
  return ranks;
}

std::string mpi_description() {
  if (!mpi().missing().empty())
    return "no MPI: " + mpi().missing();
  std::string text = mpi().functions().version();
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text.substr(0, text.find_first_of(",\n"));  // Open MPI and MPICH go on with where it was built
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

int rank_on_host(Communicator& ranks) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  auto const hosts = gather(ranks, host);
  return static_cast<int>(std::count(hosts.begin(), hosts.begin() + ranks.rank(), host));
}

}  // namespace poisson::app
