#pragma once

#include "gpu/core/context.hpp"

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace poisson {

// What a backend provides besides its kernels: kernels/cpu, and kernels/cuda or, when CUDA is not built, kernels/stub.

/// Whether this program was built with CUDA.
[[nodiscard]] bool cuda_built();
/// Number of CUDA devices that this process sees; 0 without CUDA. It starts none of them.
[[nodiscard]] int cuda_device_count();
/// Empty when the CUDA device with this number can be used, which then is the current one of this thread (-1: the current one, the
/// first unless another was chosen); otherwise why not, in one sentence for the user.
[[nodiscard]] std::string why_no_cuda(int device = -1);
/// Empty without CUDA or a usable device.
[[nodiscard]] std::vector<DeviceDescription> cuda_devices();
/// The number of devices, without taking any of their memory; usable or not.
[[nodiscard]] int cuda_device_count();
[[nodiscard]] DeviceDescription cpu_description();
/// The processor that the kernels of the cpu backend were compiled for, as -march calls it: where there are kernels for several of
/// them, those that the system's loader has taken.
[[nodiscard]] std::string cpu_kernels();

/// `device`: which one of cuda_devices(), as for why_no_cuda; the cpu backend has no numbers. Throws EnvironmentError with
/// why_no_cuda() when `backend` is cuda and there is none.
[[nodiscard]] std::unique_ptr<Context> make_context(Backend backend, int device = -1);

/// Copy bandwidth in bytes per second, read plus written, of a large array in the backend's memory, best of a few; takes about a
/// second on a slow machine, and no more than `seconds` (but for the copy that is running then). 0 when not one copy was complete.
[[nodiscard]] double measure_copy_bandwidth(Context& context, double seconds = std::numeric_limits<double>::infinity());

[[nodiscard]] std::unique_ptr<Context> make_cpu_context();
[[nodiscard]] std::unique_ptr<Context> make_cuda_context(int device);
[[nodiscard]] double measure_cpu_copy_bandwidth(double seconds);
[[nodiscard]] double measure_cuda_copy_bandwidth(Context& context, double seconds);

/// PeerBandwidth says how fast one device writes to another.
struct PeerBandwidth {
  double bytes_per_second = 0;
  bool direct = false;  ///< without a detour through the host's memory
};
/// Measures the bandwidth with a large array, as the best of a few times. `from` and `to` are different numbers of cuda_devices().
/// Throws EnvironmentError.
[[nodiscard]] PeerBandwidth measure_cuda_peer_bandwidth(int from, int to);

/// The set of kernels of type `Kernels` for the context's backend. Every set is an interface declared once in this folder;
/// `Kernels::cpu()` is defined in kernels/cpu, `Kernels::cuda()` in kernels/cuda or, throwing, in kernels/stub.
template <class Kernels>
[[nodiscard]] Kernels const& kernels_for(Context const& context) {
  return context.backend() == Backend::cuda ? Kernels::cuda() : Kernels::cpu();
}

}  // namespace poisson
