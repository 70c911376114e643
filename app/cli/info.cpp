#include "app/cli/info.hpp"

#include "app/io/console.hpp"
#include "app/run/versions.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"
#include "output/picture/picture.hpp"

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

}  // namespace

void print_info() {
  Console console(false);
  set_thread_count(0);
  DeviceDescription const host = cpu_description();
  std::vector<std::pair<std::string, std::string>> rows{
      {"poisson", std::string(POISSON_VERSION) + ", " + POISSON_BUILD_TYPE + ", compiler " + __VERSION__},
      {"libraries", library_versions()},
      {"pictures", output::pictures_built() ? "built" : "not built (configured without Cairo)"},
      {"formats", names<Format>()},
      {"solvers", names<Method>() + "; preconditioners " + names<PreconditionerKind>() + "; precision " + names<Precision>()},
      {"host", host.name + ", " + std::to_string(thread_count()) + " threads, " +
                   bytes_text(static_cast<double>(host.memory_total)) + " memory, " +
                   bytes_text(static_cast<double>(host.memory_free)) + " free"},
      {"", "copy bandwidth " + bandwidth(Backend::cpu)}};
  std::string const no_cuda = why_no_cuda();
  if (!no_cuda.empty())
    rows.emplace_back("cuda", "none: " + no_cuda);
  else {
    for (auto const& device : cuda_devices())
      rows.emplace_back("cuda", device.name + ", compute capability " + device.compute_capability + ", " +
                                    std::to_string(device.multiprocessors) + " multiprocessors, " +
                                    bytes_text(static_cast<double>(device.memory_total)) + " memory, " +
                                    bytes_text(static_cast<double>(device.memory_free)) + " free");
    rows.emplace_back("", "copy bandwidth " + bandwidth(Backend::cuda));
  }
  console.table(rows);
}

}  // namespace poisson::app
