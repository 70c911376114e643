#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace poisson::cuda {

/// Offsets of diagonals as a kernel argument: constant memory, and compile-time loop bounds.
template <int count>
struct FixedOffsets {
  std::int32_t value[count];
  [[nodiscard]] __device__ constexpr int size() const { return count; }
  [[nodiscard]] __device__ std::int64_t operator[](int k) const { return value[k]; }
};

/// Any number of offsets, read through the cache.
struct AnyOffsets {
  std::int32_t const* value;
  int count;
  [[nodiscard]] __device__ int size() const { return count; }
  [[nodiscard]] __device__ std::int64_t operator[](int k) const { return __ldg(value + k); }
};

/// Calls launch with the offsets in the form that suits their number: `count` is that of a 27-point stencil.
template <int count, class Launch>
void with_offsets(std::span<std::int32_t const> offsets, std::int32_t const* backend_offsets, Launch const& launch) {
  if (offsets.size() == count) {
    FixedOffsets<count> fixed;
    std::copy(offsets.begin(), offsets.end(), fixed.value);
    launch(fixed);
  } else
    launch(AnyOffsets{backend_offsets, static_cast<int>(offsets.size())});
}

}  // namespace poisson::cuda
