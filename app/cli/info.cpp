#include "app/cli/info.hpp"

#include "app/io/console.hpp"
#include "app/launch/launch.hpp"
#include "app/results/versions.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "gpu/solvers/solver.hpp"
#include "output/picture/picture.hpp"

#include <map>

namespace poisson::app {

namespace {

template <class E>
std::string names() {
  std::string text;
  for (auto const& entry : Names<E>::values)
    text += (text.empty() ? "" : ", ") + std::string(entry.name);
  return text;
}

std::string bandwidth(Backend backend) {
  return number_text(measure_copy_bandwidth(*make_context(backend)) / 1e9) + " GB/s, read and written";
}

/// "4: 2 on node1, 2 on node2", and the MPI.
std::string ranks_text(std::vector<std::string> const& hosts) {
  std::map<std::string, int> count;
  for (std::string const& host : hosts)
    ++count[host];
  std::string text;
  for (auto const& [host, n] : count)
    text += (text.empty() ? ": " : ", ") + std::to_string(n) + " on " + host;
  return hosts.empty() ? "1; " + mpi_description() : std::to_string(hosts.size()) + text + "; " + mpi_description();
}

/// Rows about every device, and what is between them.
void add_devices(std::vector<std::pair<std::string, std::string>>& rows) {
  if (std::string const no_cuda = why_no_cuda(); !no_cuda.empty()) {
    rows.emplace_back("cuda", "none: " + no_cuda);
    return;
  }
  auto const devices = cuda_devices();
  for (std::size_t i = 0; i < devices.size(); ++i)
    rows.emplace_back(i == 0 ? "cuda" : "", std::to_string(i) + ": " + devices[i].name + ", compute capability " +
                                                devices[i].compute_capability + ", " + std::to_string(devices[i].multiprocessors) +
                                                " multiprocessors, " + bytes_text(static_cast<double>(devices[i].memory_total)) +
                                                " memory, " + bytes_text(static_cast<double>(devices[i].memory_free)) + " free");
  rows.emplace_back("", "copy bandwidth of 0 " + bandwidth(Backend::cuda));
  auto const n = static_cast<int>(devices.size());
  for (int from = 0; from < n && n > 1; ++from) {
    std::string text;
    for (int to = 0; to < n; ++to)
      if (to != from) {
        PeerBandwidth const peer = measure_cuda_peer_bandwidth(from, to);
        text += (text.empty() ? "from " + std::to_string(from) : ",") + " to " + std::to_string(to) + " " +
                number_text(peer.bytes_per_second / 1e9) + (peer.direct ? "" : " (through the host)");
      }
    rows.emplace_back("", text + " GB/s");
  }
}

}  // namespace

void print_info(std::vector<std::string> const& hosts) {
  Console console(false);
  set_thread_count(0);
  DeviceDescription const host = cpu_description();
  std::vector<std::pair<std::string, std::string>> rows{
      {"poisson", std::string(POISSON_VERSION) + ", " + POISSON_BUILD_TYPE + ", compiler " + __VERSION__},
      {"libraries", library_versions()},
      {"pictures", output::pictures_built() ? "built" : "not built (configured without Cairo)"},
      {"formats", names<Format>()},
      {"solvers", names<Method>() + "; preconditioners " + names<PreconditionerKind>() + "; precision " + names<Precision>()},
      {"ranks", ranks_text(hosts)},
      {"host", host.name + ", kernels for " + cpu_kernels() + ", " + std::to_string(thread_count()) + " threads, " +
                   bytes_text(static_cast<double>(host.memory_total)) + " memory, " +
                   bytes_text(static_cast<double>(host.memory_free)) + " free"},
      {"", "copy bandwidth " + bandwidth(Backend::cpu)}};
  add_devices(rows);
  std::string const no_nccl = why_no_nccl();
  rows.emplace_back("nccl", no_nccl.empty() ? nccl_version() : "none: " + no_nccl);
  console.table(rows);
}

ExitCode print_info_on_ranks(Launch const& launch) {
  std::vector<std::string> hosts;
  {
    auto const ranks = open_communicator(launch);
    hosts = gather_texts(*ranks, host_name());
  }  // ranks that wait for others keep a processor busy, which would spoil the measurements
  if (launch.rank == 0)
    print_info(hosts);
  return exit_done;
}

}  // namespace poisson::app
