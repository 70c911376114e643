#include "gpu/kernels/vectors.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

constexpr int threads = 256;

__global__ void invert_kernel(std::int64_t n, double* x) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    x[i] = 1 / x[i];
}

/// x . y, or |x - y|^2; the grid has a fixed size for the device.
template <bool distance>
__global__ void __launch_bounds__(threads) sum_kernel(std::int64_t n, double const* __restrict__ x, double const* __restrict__ y,
                                                      double* result, double* partial, unsigned* counter) {
  double sum[1] = {0};
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    double const a = x[i], b = y[i];
    sum[0] = distance ? fma(a - b, a - b, sum[0]) : fma(a, b, sum[0]);
  }
  if (cuda::grid_sum<threads>(sum, partial, counter))
    *result = sum[0];
}

__global__ void __launch_bounds__(threads) sum_partials_kernel(std::int64_t n, double const* __restrict__ partial, double* result,
                                                               std::int32_t const* stop, double* of_blocks, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride)
    sum[0] += __ldcg(partial + i);
  if (cuda::grid_sum<threads>(sum, of_blocks, counter))
    *result = sum[0];
}

/// Few enough that their own sums are added at once, and enough to read a million partial sums in microseconds.
unsigned blocks_for_partials(std::int64_t n) {
  return std::min(cuda::n_blocks(n, 8 * threads), 128U);
}

class CudaVectors final : public VectorKernels<double> {
public:
  void copy(Context& context, std::int64_t n, double const* x, double* y) const override {
    if (n > 0)
      POISSON_CUDA_CHECK(cudaMemcpyAsync(y, x, static_cast<std::size_t>(n) * sizeof(double), cudaMemcpyDeviceToDevice,
                                         cuda::of(context).stream()));
  }

  void invert(Context& context, std::int64_t n, double* x) const override {
    if (n == 0)
      return;
    invert_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(n, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void dot(Context& context, std::int64_t n, double const* x, double const* y, double* result) const override {
    sum<false>(context, n, x, y, result);
  }
  void distance_squared(Context& context, std::int64_t n, double const* x, double const* y, double* result) const override {
    sum<true>(context, n, x, y, result);
  }

private:
  template <bool distance>
  static void sum(Context& context, std::int64_t n, double const* x, double const* y, double* result) {
    auto& device = cuda::of(context);
    unsigned const blocks =
        std::min(std::max(1U, cuda::n_blocks(n, 4 * threads)), 8U * static_cast<unsigned>(device.multiprocessors()));
    sum_kernel<distance>
        <<<blocks, threads, 0, device.stream()>>>(n, x, y, result, device.partial_sums(blocks), device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

namespace cuda {

std::int64_t partials_of_warps(std::int64_t blocks, int threads_of_block) {
  std::int64_t const n = blocks * (threads_of_block / 32);
  return n + blocks_for_partials(n);
}

void sum_partials(CudaContext& device, double* partial, std::int64_t blocks, int threads_of_block, double* result,
                  std::int32_t const* stop) {
  std::int64_t const n = blocks * (threads_of_block / 32);
  sum_partials_kernel<<<blocks_for_partials(n), threads, 0, device.stream()>>>(n, partial, result, stop, partial + n,
                                                                               device.block_counter());
  POISSON_CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda

template <>
VectorKernels<double> const& VectorKernels<double>::cuda() {
  static CudaVectors const kernels;
  return kernels;
}

}  // namespace poisson
