#include "app/launch/processors.hpp"

#include "gpu/core/threads.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sched.h>
#include <string>
#include <tuple>
#include <unistd.h>

namespace poisson::app {

namespace {

struct Place {
  std::array<char, HOST_NAME_MAX + 1> host{};
  cpu_set_t processors{};
};

Place own_place() {
  Place place;
  gethostname(place.host.data(), place.host.size() - 1);
  sched_getaffinity(0, sizeof place.processors, &place.processors);
  return place;
}

std::string text_of(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The processors that mpirun may use, if it has bound this rank without being asked to.
std::optional<cpu_set_t> processors_of_mpirun() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr)
    return std::nullopt;
  for (char const* const name :
       {"OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_rmaps_base_mapping_policy", "OMPI_MCA_hwloc_base_cpu_set",
        "PRTE_MCA_hwloc_default_binding_policy", "PRTE_MCA_rmaps_default_mapping_policy", "PRTE_MCA_hwloc_default_cpu_list"})
    if (std::getenv(name) != nullptr)
      return std::nullopt;
  std::string const parent = "/proc/" + std::to_string(getppid());
  std::string name = text_of(parent + "/comm");
  name = name.substr(0, name.find('\n'));
  std::array const launchers{"mpirun", "mpiexec", "orterun", "prterun", "prun", "orted", "prted"};  // also by mpirun.openmpi
  bool const is_launcher =
      std::any_of(launchers.begin(), launchers.end(), [&](char const* launcher) { return name.starts_with(launcher); });
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (!is_launcher || places_ranks(text_of(parent + "/cmdline")) ||
      sched_getaffinity(getppid(), sizeof processors, &processors) != 0)
    return std::nullopt;
  return processors;
}

std::vector<Processor> list_of(cpu_set_t const& processors) {
  std::vector<Processor> list;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &processors))
      continue;
    std::string const topology = "/sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology/";
    Processor& processor = list.emplace_back(Processor{number, 0, number});
    std::ifstream(topology + "physical_package_id") >> processor.package;
    std::ifstream(topology + "core_id") >> processor.core;
  }
  return list;
}

}  // namespace

std::vector<Processor> share_of_processors(std::vector<Processor> processors, int i, int n) {
  std::sort(processors.begin(), processors.end(), [](Processor const& a, Processor const& b) {
    return std::tie(a.package, a.core, a.number) < std::tie(b.package, b.core, b.number);
  });
  std::int64_t const count = std::ssize(processors);
  if (count < n)
    return processors;
  return {processors.begin() + count * i / n, processors.begin() + count * (i + 1) / n};
}

bool places_ranks(std::string_view command_line) {
  // Options of mpirun may have one hyphen or two. The program's own words are among these, too: it then stays where it is.
  std::array const words{"bind", "taskset",   "numactl", "-map-by",   "-cpu-set",       "-cpu-list",      "-rankfile",
                         "-rf",  "-cpus-per", "-bycore", "-bysocket", "binding_policy", "mapping_policy", "cpu_set"};
  return std::any_of(words.begin(), words.end(),
                     [&](char const* word) { return command_line.find(word) != std::string_view::npos; });
}

int threads_of_rank(Communicator& ranks) {
  std::optional<cpu_set_t> const unbound = processors_of_mpirun();
  Place mine = own_place();
  if (unbound)
    mine.processors = *unbound;
  int sharing = 0, before = 0;  // ranks with the same processors
  std::vector<Place> const places = gather(ranks, mine);
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (Place const& other = places[static_cast<std::size_t>(rank)];
        other.host == mine.host && CPU_EQUAL(&other.processors, &mine.processors)) {
      ++sharing;
      before += rank < ranks.rank() ? 1 : 0;
    }
  if (unbound)
    sched_setaffinity(0, sizeof mine.processors, &mine.processors);
  int const threads = std::max(1, usable_threads() / sharing);
  if (unbound && CPU_COUNT(&*unbound) >= sharing) {
    // To packages, whose memory is near; within them threads may move, since cores have other work, too.
    std::vector<Processor> const all = list_of(*unbound), share = share_of_processors(all, before, sharing);
    cpu_set_t near;
    CPU_ZERO(&near);
    for (Processor const& processor : all)
      if (std::any_of(share.begin(), share.end(), [&](Processor const& own) { return own.package == processor.package; }))
        CPU_SET(processor.number, &near);
    sched_setaffinity(0, sizeof near, &near);
  }
  return threads;
}

}  // namespace poisson::app
