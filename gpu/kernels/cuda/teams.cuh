#pragma once

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_scan.cuh>

namespace poisson::cuda::teams {

// Kernels whose rows are shared by teams of neighbouring threads.

inline constexpr int threads = 256;  ///< of a block
inline constexpr int team = 8;       ///< threads that share a row
inline constexpr unsigned whole_warp = 0xffffffffU;

/// The row of this thread's team, below n_rows, and whether the team has one; others go along, for the shuffles.
struct TeamRow {
  std::int64_t row;
  bool live;
  int lane;
  std::int64_t begin, end;

  __device__ __forceinline__ TeamRow(std::int64_t n_rows, std::int64_t const* row_ptr) {
    row = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / team;
    live = row < n_rows;
    row = live ? row : n_rows - 1;
    lane = static_cast<int>(threadIdx.x % team);
    begin = row_ptr[row];
    end = row_ptr[row + 1];
  }
  [[nodiscard]] __device__ bool writes() const { return live && lane == 0; }
};

template <int size = team, class T>
[[nodiscard]] __device__ __forceinline__ T team_sum(T v) {
#pragma unroll
  for (int distance = size / 2; distance > 0; distance /= 2)
    v += __shfl_xor_sync(whole_warp, v, distance);
  return v;
}
template <class T>
[[nodiscard]] __device__ __forceinline__ T team_max(T v) {
#pragma unroll
  for (int distance = team / 2; distance > 0; distance /= 2)
    v = max(v, __shfl_xor_sync(whole_warp, v, distance));
  return v;
}

/// Of this thread's team, among those of a warp: bits of ballots.
template <int size = team>
[[nodiscard]] __device__ __forceinline__ unsigned team_bits() {
  return (whole_warp >> (32 - size)) << (threadIdx.x % 32 / size * size);
}
/// Of the threads before this one in its team.
template <int size = team>
[[nodiscard]] __device__ __forceinline__ unsigned bits_before() {
  return team_bits<size>() & ((1U << threadIdx.x % 32) - 1);
}

/// Runs a kernel with as many threads, in blocks of `threads`.
template <class... Parameters, class... Arguments>
void launch(Context& context, void (*kernel)(Parameters...), std::int64_t n_threads, Arguments const&... arguments) {
  if (n_threads == 0)
    return;
  kernel<<<cuda::n_blocks(n_threads, threads), threads, 0, cuda::of(context).stream()>>>(arguments...);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

/// Calls algorithm(scratch, bytes) of CUB twice: for the bytes, then with scratch memory.
template <class Algorithm>
void with_scratch(Context& context, Algorithm const& algorithm) {
  std::size_t bytes = 0;
  POISSON_CUDA_CHECK(algorithm(nullptr, bytes));
  // A null pointer would only ask for the bytes again.
  Array<char> scratch(context, std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes)));
  POISSON_CUDA_CHECK(algorithm(static_cast<void*>(scratch.data()), bytes));
}

template <class T>
void running_sums(Context& context, T* data, std::int64_t n) {
  with_scratch(context, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, data, data, n, cuda::of(context).stream());
  });
}

template <class T>
T fetch(Context& context, T const* device) {
  T value{};
  context.download(&value, device, sizeof value);
  return value;
}

}  // namespace poisson::cuda::teams
