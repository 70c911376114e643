#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/device_ranks.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace poisson::cuda {

/// What ranks must know of each other to choose how their devices exchange.
struct RankPlace {
  std::array<char, 256> host{};
  std::int64_t process = 0;
  std::int32_t index = 0;             // of the device, in the process
  std::array<char, 16> device{};      // its uuid, which no other has anywhere
  std::array<std::int32_t, 3> bus{};  // instances of one device (MIG) share it
  [[nodiscard]] bool same_device(RankPlace const& other) const {
    return device == other.device || (host == other.host && bus == other.bus);
  }
  [[nodiscard]] bool same_process(RankPlace const& other) const { return host == other.host && process == other.process; }
};
[[nodiscard]] RankPlace place_of(CudaContext const& device);

/// The sum of number_of(rank) over the ranks, as Communicator::Order::of_ranks says.
template <class T, class NumberOf>
__device__ T sum_of_ranks(int ranks, NumberOf const& number_of) {
  T sum = 0;
  for (int first = 0; first < ranks; first += Communicator::ranks_of_block) {
    T of_block = number_of(first);
    for (int r = first + 1; r < min(first + Communicator::ranks_of_block, ranks); ++r)
      of_block = of_block + number_of(r);
    sum = first == 0 ? of_block : sum + of_block;
  }
  return sum;
}

/// Devices of one host that write into each other's memory, over NVLink or the bus. `places`: of all ranks, no two on the same
/// device. Null where not all can, and `why_not` says why; all ranks get the same. `ranks` outlives the result. Collective. Throws
/// what the communicator throws.
[[nodiscard]] std::unique_ptr<DeviceRanks> make_direct_ranks(CudaContext& device, Communicator& ranks,
                                                             std::vector<RankPlace> const& places, std::string& why_not);

}  // namespace poisson::cuda
