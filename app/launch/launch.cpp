#include "app/launch/launch.hpp"

#include "app/mpi/communicator.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <unistd.h>

namespace poisson::app {

namespace {

constexpr char const* mpi_file_name = "libpoisson_mpi.so";

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

/// A function of the library of MPI; null, with the reason, where it cannot be loaded.
void* mpi_function(char const* name, std::string& missing) {
  std::error_code ignored;
  auto const beside = std::filesystem::read_symlink("/proc/self/exe", ignored).replace_filename(mpi_file_name);
  // MPI loads components of its own, which look for its symbols: they must be visible.
  void* const library = dlopen(exists(beside, ignored) ? beside.c_str() : mpi_file_name, RTLD_NOW | RTLD_GLOBAL);
  void* const symbol = library == nullptr ? nullptr : dlsym(library, name);
  if (symbol == nullptr)
    missing = dlerror();
  return symbol;
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
  std::string missing;
  void* const symbol = mpi_function("poisson_open_communicator", missing);
  if (symbol == nullptr)
    throw EnvironmentError(
        "started as one of " + std::to_string(launch.size) +
        " ranks, but the library for that cannot be loaded; it belongs beside the program, and is built where MPI "
        "is (POISSON_MPI): " +
        missing);
  std::string error;
  std::unique_ptr<Communicator> ranks(reinterpret_cast<OpenCommunicator>(symbol)(error));
  if (ranks == nullptr)
    throw EnvironmentError(error);
  if (ranks->size() != launch.size)
    throw EnvironmentError(
        "started as one of " + std::to_string(launch.size) + " ranks, but MPI knows of " + std::to_string(ranks->size()) +
        (launch.seen ? ": the program was built with another MPI than this launcher's"
                     : ": there is no launcher, or it belongs to another MPI than the program was built with; variables "
                       "such as PMI_SIZE and OMPI_COMM_WORLD_SIZE may be left over from one"));
  return ranks;
}

std::string mpi_description() {
  std::string text;
  if (void* const symbol = mpi_function("poisson_mpi_version", text)) {
    reinterpret_cast<MpiVersion>(symbol)(text);
    std::replace(text.begin(), text.end(), '\t', ' ');
    return text.substr(0, text.find_first_of(",\n"));  // Open MPI and MPICH go on with where it was built
  }
  return "no MPI: " + text;
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
