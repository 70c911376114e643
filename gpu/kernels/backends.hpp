#pragma once

#include "gpu/core/context.hpp"

#include <memory>

namespace poisson {

// What a backend provides besides its kernels: kernels/host, and kernels/cuda or, when CUDA is not built, kernels/stub. The public
// cuda_built(), why_no_cuda() and cuda_devices() of core/context.hpp live there too.

[[nodiscard]] std::unique_ptr<Context> make_host_context();
[[nodiscard]] std::unique_ptr<Context> make_cuda_context();
[[nodiscard]] double measure_host_copy_bandwidth();
[[nodiscard]] double measure_cuda_copy_bandwidth(Context& context);

/// The set of kernels of type `Kernels` for the context's backend. Every set is an interface declared once in this folder;
/// `Kernels::host()` is defined in kernels/host, `Kernels::cuda()` in kernels/cuda or, throwing, in kernels/stub.
template <class Kernels>
[[nodiscard]] Kernels const& kernels_for(Context const& context) {
  return context.backend() == Backend::cuda ? Kernels::cuda() : Kernels::host();
}

}  // namespace poisson
