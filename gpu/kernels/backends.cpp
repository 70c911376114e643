#include "gpu/kernels/backends.hpp"

#include "gpu/core/error.hpp"

namespace poisson {

std::unique_ptr<Context> make_context(Backend backend) {
  if (backend == Backend::cpu)
    return make_cpu_context();
  if (std::string const reason = why_no_cuda(); !reason.empty())
    throw EnvironmentError(reason);
  return make_cuda_context();
}

double measure_copy_bandwidth(Context& context, double seconds) {
  return context.backend() == Backend::cpu ? measure_cpu_copy_bandwidth(seconds) : measure_cuda_copy_bandwidth(context, seconds);
}

}  // namespace poisson
