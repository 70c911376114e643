#include "gpu/kernels/vectors.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>

namespace poisson {

namespace {

constexpr int threads = 256;

template <class T>
__global__ void invert_kernel(std::int64_t n, Pointer<T> x) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    store(x, i, static_cast<T>(1.0 / load(x, i)));
}

template <class T>
__global__ void scale_kernel(std::int64_t n, double const* d, ConstPointer<T> x, Pointer<T> y, std::int32_t const* stop) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (*stop == 0 && i < n)
    store(y, i, d[i] * load(x, i));
}

/// x . y, or |x - y|^2; the grid has a fixed size for the device.
template <class T, bool distance>
__global__ void __launch_bounds__(threads)
    sum_kernel(std::int64_t n, ConstPointer<T> x, ConstPointer<T> y, T* result, T* partial, unsigned* counter) {
  DotSum<T> sum{};
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    T const a = load(x, i), b = load(y, i);
    if constexpr (distance)
      sum.add(a - b, a - b);
    else
      sum.add(a, b);
  }
  T sums[1] = {sum.value()};
  if (cuda::grid_sum<threads>(sums, partial, counter))
    *result = sums[0];
}

template <class T>
__global__ void __launch_bounds__(threads) sum_partials_kernel(std::int64_t n, T const* __restrict__ partial, T* result,
                                                               std::int32_t const* stop, T* of_blocks, unsigned* counter) {
  if (*stop != 0)
    return;
  T sum[1] = {0};
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride)
    sum[0] += cuda::load_from_l2(partial + i);
  if (cuda::grid_sum<threads>(sum, of_blocks, counter))
    *result = sum[0];
}

/// Few enough that their own sums are added at once, and enough to read a million partial sums in microseconds.
unsigned blocks_for_partials(std::int64_t n) {
  return std::min(cuda::n_blocks(n, 8 * threads), 128U);
}

template <class T>
void enqueue_copy(Context& context, std::int64_t n, T const* x, T* y) {
  if (n > 0)
    POISSON_CUDA_CHECK(
        cudaMemcpyAsync(y, x, static_cast<std::size_t>(n) * sizeof(T), cudaMemcpyDeviceToDevice, cuda::of(context).stream()));
}
void enqueue_copy(Context& context, std::int64_t n, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y) {
  enqueue_copy(context, n, x.hi, y.hi);
  enqueue_copy(context, n, x.lo, y.lo);
}

template <class T>
class CudaVectors final : public VectorKernels<T> {
public:
  void copy(Context& context, std::int64_t n, ConstPointer<T> x, Pointer<T> y) const override { enqueue_copy(context, n, x, y); }

  void invert(Context& context, std::int64_t n, Pointer<T> x) const override {
    if (n == 0)
      return;
    invert_kernel<T><<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(n, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void scale(Context& context, std::int64_t n, double const* d, ConstPointer<T> x, Pointer<T> y,
             std::int32_t const* stop) const override {
    if (n == 0)
      return;
    scale_kernel<T><<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(n, d, x, y, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void dot(Context& context, std::int64_t n, ConstPointer<T> x, ConstPointer<T> y, T* result) const override {
    sum<false>(context, n, x, y, result);
  }
  void distance_squared(Context& context, std::int64_t n, ConstPointer<T> x, ConstPointer<T> y, T* result) const override {
    sum<true>(context, n, x, y, result);
  }

private:
  template <bool distance>
  static void sum(Context& context, std::int64_t n, ConstPointer<T> x, ConstPointer<T> y, T* result) {
    auto& device = cuda::of(context);
    unsigned const blocks =
        std::min(std::max(1U, cuda::n_blocks(n, 4 * threads)), 8U * static_cast<unsigned>(device.multiprocessors()));
    sum_kernel<T, distance>
        <<<blocks, threads, 0, device.stream()>>>(n, x, y, result, device.partial_sums<T>(blocks), device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

namespace cuda {

std::int64_t partials_of_warps(std::int64_t blocks, int threads_of_block) {
  std::int64_t const n = blocks * (threads_of_block / 32);
  return n + blocks_for_partials(n);
}

template <class T>
void sum_partials(CudaContext& device, T* partial, std::int64_t blocks, int threads_of_block, T* result, std::int32_t const* stop) {
  std::int64_t const n = blocks * (threads_of_block / 32);
  sum_partials_kernel<<<blocks_for_partials(n), threads, 0, device.stream()>>>(n, partial, result, stop, partial + n,
                                                                               device.block_counter());
  POISSON_CUDA_CHECK(cudaGetLastError());
}
template void sum_partials(CudaContext&, float*, std::int64_t, int, float*, std::int32_t const*);
template void sum_partials(CudaContext&, double*, std::int64_t, int, double*, std::int32_t const*);
template void sum_partials(CudaContext&, DoubleDouble*, std::int64_t, int, DoubleDouble*, std::int32_t const*);

}  // namespace cuda

template <>
VectorKernels<float> const& VectorKernels<float>::cuda() {
  static CudaVectors<float> const kernels;
  return kernels;
}
template <>
VectorKernels<double> const& VectorKernels<double>::cuda() {
  static CudaVectors<double> const kernels;
  return kernels;
}
template <>
VectorKernels<DoubleDouble> const& VectorKernels<DoubleDouble>::cuda() {
  static CudaVectors<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
