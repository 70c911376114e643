#pragma once

#include "gpu/kernels/cuda/cuda.cuh"

#include <bit>
#include <cstdint>

namespace poisson::cuda {

using Bits = unsigned long long;

/// A number that is in the same order as the doubles, NaN left aside, so that integer atomics find the least and the largest.
__device__ inline Bits ordered(double v) {
  auto const bits = static_cast<Bits>(__double_as_longlong(v));
  return (bits >> 63) != 0 ? ~bits : bits | (Bits{1} << 63);
}
[[nodiscard]] inline double from_ordered(Bits ordered) {
  Bits const bits = (ordered >> 63) != 0 ? ordered & ~(Bits{1} << 63) : ~ordered;
  return std::bit_cast<double>(bits);
}

/// Takes the least and the largest number of each warp, all of whose threads call it, to found[0] and found[1], in the order of
/// `ordered`.
__device__ inline void keep_range_of_warp(Bits* found, double low, double high) {
  for (int distance = 16; distance > 0; distance /= 2) {
    low = fmin(low, shuffle_down(low, distance));
    high = fmax(high, shuffle_down(high, distance));
  }
  if (threadIdx.x % 32 == 0) {
    atomicMin(found, ordered(low));
    atomicMax(found + 1, ordered(high));
  }
}

__device__ inline void keep_lowest(std::int64_t* lowest, std::int64_t i) {
  atomicMin(reinterpret_cast<Bits*>(lowest), static_cast<Bits>(i));
}
/// Precondition: neither is negative.
__device__ inline void keep_largest(double* largest, double v) {
  atomicMax(reinterpret_cast<Bits*>(largest), static_cast<Bits>(__double_as_longlong(v)));
}
/// The same for the largest v of each warp, all of whose threads call it.
__device__ inline void keep_largest_of_warp(double* largest, double v) {
  for (int distance = 16; distance > 0; distance /= 2)
    v = fmax(v, shuffle_down(v, distance));
  if (threadIdx.x % 32 == 0 && v > 0)
    keep_largest(largest, v);
}

}  // namespace poisson::cuda
