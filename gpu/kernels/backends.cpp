#include "gpu/kernels/backends.hpp"

#include "gpu/core/error.hpp"
#include "gpu/kernels/device_ranks.hpp"

namespace poisson {

std::unique_ptr<Context> make_context(Backend backend, int device) {
  if (backend == Backend::cpu)
    return make_cpu_context();
  if (std::string const reason = why_no_cuda(device); !reason.empty())
    throw EnvironmentError(reason);
  return make_cuda_context(device);
}

double measure_copy_bandwidth(Context& context, double seconds) {
  return context.backend() == Backend::cpu ? measure_cpu_copy_bandwidth(seconds) : measure_cuda_copy_bandwidth(context, seconds);
}

RankTransport& rank_transport(Context& context, Communicator& ranks) {
  static RankTransport by_host;
  return context.backend() == Backend::cpu || ranks.is_alone() ? by_host : cuda_rank_transport(context, ranks);
}

void connect_beside(Context& context, Communicator& ranks, Connect when) {
  if (context.backend() == Backend::cuda)
    connect_cuda_beside(context, ranks, when);
}

}  // namespace poisson
