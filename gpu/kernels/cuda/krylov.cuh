#pragma once

#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/krylov.hpp"

#include <algorithm>

// What the passes of the solvers share, in the arithmetic T.

namespace poisson::cuda {

inline constexpr int pass_threads = 256;

/// As many blocks as the device holds at once: the partition of sums depends on the device and n only.
[[nodiscard]] inline unsigned reduction_blocks(CudaContext const& device, std::int64_t n) {
  return std::min(std::max(1U, n_blocks(n, 2 * pass_threads)), 8U * static_cast<unsigned>(device.multiprocessors()));
}

/// Where grid_sum works.
template <class T>
struct Reduction {
  T* partial;
  unsigned* counter;
};
template <class T>
[[nodiscard]] Reduction<T> reduction(CudaContext& device, unsigned blocks, int sums) {
  return {device.partial_sums<T>(std::int64_t{sums} * blocks), device.block_counter()};
}

#ifdef __CUDACC__

/// Where sums stay when other ranks have more rows: see kernels/cg.hpp.
template <class T, int count>
__device__ void store_sums(T const (&sums)[count], T* local) {
#pragma unroll
  for (int k = 0; k < count; ++k)
    local[k] = sums[k];
}

/// The end of a pass: adds up `total` over the grid; then one thread calls step(), the scalar step, or leaves the totals in
/// `local`.
template <class T, int count, class Step>
__device__ void finish_pass(T (&total)[count], Reduction<T> const& reduction, T* local, Step const& step) {
  if (grid_sum<pass_threads>(total, reduction.partial, reduction.counter)) {
    if (local != nullptr)
      store_sums(total, local);
    else
      step();
  }
}

/// Two neighbours in a vector, moved together.
template <class T>
struct Pair {
  T first, second;
};

/// Through the read-only cache: nothing writes them while the kernel runs. Precondition: i is even.
__device__ inline Pair<double> load_pair_once(double const* p, std::int64_t i) {
  double2 const v = __ldg(reinterpret_cast<double2 const*>(p + i));
  return {v.x, v.y};
}
__device__ inline Pair<DoubleDouble> load_pair_once(ConstPointer<DoubleDouble> p, std::int64_t i) {
  Pair<double> const hi = load_pair_once(p.hi, i), lo = load_pair_once(p.lo, i);
  return {{hi.first, lo.first}, {hi.second, lo.second}};
}
__device__ inline Pair<double> load_pair(double const* p, std::int64_t i) {
  double2 const v = *reinterpret_cast<double2 const*>(p + i);
  return {v.x, v.y};
}
__device__ inline Pair<DoubleDouble> load_pair(ConstPointer<DoubleDouble> p, std::int64_t i) {
  Pair<double> const hi = load_pair(p.hi, i), lo = load_pair(p.lo, i);
  return {{hi.first, lo.first}, {hi.second, lo.second}};
}
__device__ inline void store_pair(double* p, std::int64_t i, Pair<double> v) {
  *reinterpret_cast<double2*>(p + i) = double2{v.first, v.second};
}
__device__ inline void store_pair(Pointer<DoubleDouble> p, std::int64_t i, Pair<DoubleDouble> v) {
  store_pair(p.hi, i, Pair<double>{v.first.hi, v.second.hi});
  store_pair(p.lo, i, Pair<double>{v.first.lo, v.second.lo});
}

__device__ inline void add_number(DotSum<double>& sum, double v) {
  sum.sum += v;
}
__device__ inline void add_number(DotSum<DoubleDouble>& sum, DoubleDouble v) {
  sum.add(DotSum<DoubleDouble>{v.hi, v.lo});
}

/// The sums of CgSums (kernels/cg.hpp); jacobi: those with the diagonal as well.
template <class T>
struct ResidualSums {
  DotSum<T> r{}, rr{}, dr{}, drr{};

  template <bool jacobi>
  __device__ void add(T value, double const* __restrict__ inverse_diagonal, std::int64_t i) {
    add_number(r, value);
    rr.add(value, value);
    if constexpr (jacobi) {
      T const scaled = __ldg(inverse_diagonal + i) * value;
      add_number(dr, scaled);
      drr.add(scaled, value);
    }
  }
};

/// First of the items that a thread takes in turns, and how far it is to the next, with `items` neighbours at once.
[[nodiscard]] __device__ inline std::int64_t first_item(int items) {
  return items * (std::int64_t{blockIdx.x} * pass_threads + threadIdx.x);
}
[[nodiscard]] __device__ inline std::int64_t item_stride(int items) {
  return items * std::int64_t{gridDim.x} * pass_threads;
}

/// Launches a pass with `sums` sums of T over n rows: kernel(arguments..., reduction).
template <class T, class... Parameters, class... Arguments>
void launch_pass(void (*kernel)(Parameters...), Context& context, std::int64_t n, int sums, Arguments... arguments) {
  auto& device = of(context);
  unsigned const blocks = reduction_blocks(device, n);
  kernel<<<blocks, pass_threads, 0, device.stream()>>>(arguments..., reduction<T>(device, blocks, sums));
  POISSON_CUDA_CHECK(cudaGetLastError());
}

/// Sums of z and of r z, then their scalar step.
template <class T, class Scalars, class Pass>
__global__ void __launch_bounds__(pass_threads)
    reduce_z_kernel(Pass pass, Scalars* s, std::int64_t n, ConstPointer<T> r, ConstPointer<T> z, T* local, Reduction<T> reduction) {
  if (s->control.stop != 0)
    return;
  DotSum<T> sum_z{}, rz{};
  for (std::int64_t i = first_item(1); i < n; i += item_stride(1)) {
    T const zi = load(z, i);
    add_number(sum_z, zi);
    rz.add(load(r, i), zi);
  }
  T total[2] = {sum_z.value(), rz.value()};
  finish_pass(total, reduction, local, [&] { scalar_step_of(pass, *s, static_cast<T const*>(total), nullptr); });
}

template <class T, class Scalars, class Pass>
__global__ void scalar_step_kernel(Pass pass, Scalars* s, T const* sums, double* history) {
  scalar_step_of(pass, *s, sums, history);
}
/// Enqueues the scalar step of a pass, from its sums over all rows.
template <class T, class Scalars, class Pass>
void launch_scalar_step(Context& context, Pass pass, Scalars* scalars, T const* sums, double* history) {
  scalar_step_kernel<T, Scalars, Pass><<<1, 1, 0, of(context).stream()>>>(pass, scalars, sums, history);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

#endif

}  // namespace poisson::cuda
