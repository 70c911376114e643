#include "gpu/kernels/sell_c_sigma.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <bit>

namespace poisson {

namespace {

constexpr int threads = 256;
/// Threads and rows of a block of product_dot_kernel: enough that the blocks' partial sums are few.
constexpr int dot_threads = 512;

/// One thread a row. With C < 32 the lanes of a warp walk several slices at once, and short slices cost bandwidth: a box of 192^3
/// nodes takes 1.83, 0.94, 0.78, 0.68, 0.67 ms on an H200 with C = 4, 8, 16, 32, 256.
__device__ __forceinline__ double row_product(SellView const& a, int log2_c, double const* __restrict__ x, std::int64_t place) {
  std::int64_t const slice = place >> log2_c;
  std::int64_t const end = __ldg(a.slice_ptr + slice + 1), step = std::int64_t{1} << log2_c;
  double sum = 0;
#pragma unroll 4
  for (std::int64_t e = __ldg(a.slice_ptr + slice) + (place & (step - 1)); e < end; e += step) {
    std::int32_t const column = __ldcs(a.columns + e);  // matrix entries are used once: x keeps L1
    double const value = __ldcs(a.values + e);
    // Where the row has ended x_0 is loaded and dropped: a branch would keep the loads from being issued together.
    double const loaded = __ldg(x + max(column, 0));
    sum = fma(value, column >= 0 ? loaded : 0.0, sum);
  }
  return sum;
}

__device__ __forceinline__ std::int64_t row_at(SellView const& a, std::int64_t place) {
  return a.rows == nullptr ? place : __ldg(a.rows + place);
}

__global__ void __launch_bounds__(threads)
    product_kernel(SellView a, int log2_c, double alpha, double const* __restrict__ x, double beta, double* __restrict__ y) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= a.n_rows)
    return;
  double const sum = row_product(a, log2_c, x, place);
  std::int64_t const row = row_at(a, place);
  y[row] = beta == 0 ? alpha * sum : fma(beta, y[row], alpha * sum);
}

__global__ void __launch_bounds__(dot_threads)
    product_dot_kernel(SellView a, int log2_c, double const* __restrict__ x, double* __restrict__ y, double* dot,
                       std::int32_t const* stop, double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  std::int64_t const place = std::int64_t{blockIdx.x} * dot_threads + threadIdx.x;
  if (place < a.n_rows) {
    double const value = row_product(a, log2_c, x, place);
    std::int64_t const row = row_at(a, place);
    y[row] = value;
    sum[0] = __ldg(x + row) * value;
  }
  if (cuda::grid_sum<dot_threads>(sum, partial, counter))
    *dot = sum[0];
}

__global__ void diagonal_kernel(SellView a, double* d) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= a.n_rows)
    return;
  std::int64_t const slice = place / a.slice_size, row = row_at(a, place), end = a.slice_ptr[slice + 1];
  double value = 0;
  for (std::int64_t e = a.slice_ptr[slice] + place % a.slice_size; e < end; e += a.slice_size)
    if (a.columns[e] == row)
      value = a.values[e];
  d[row] = value;
}

int log2_of(std::int32_t c) {
  return std::countr_zero(static_cast<std::uint32_t>(c));
}

class CudaSell final : public SellKernels {
public:
  void product(Context& context, SellView const& a, double alpha, double const* x, double beta, double* y) const override {
    if (a.n_rows == 0)
      return;
    product_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, log2_of(a.slice_size), alpha,
                                                                                                  x, beta, y);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void product_dot(Context& context, SellView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (a.n_rows == 0)
      return;
    auto& device = cuda::of(context);
    unsigned const blocks = cuda::n_blocks(a.n_rows, dot_threads);
    product_dot_kernel<<<blocks, dot_threads, 0, device.stream()>>>(a, log2_of(a.slice_size), x, y, dot, stop,
                                                                    device.partial_sums(blocks), device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void diagonal(Context& context, SellView const& a, double* d) const override {
    if (a.n_rows == 0)
      return;
    diagonal_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

SellKernels const& SellKernels::cuda() {
  static CudaSell const kernels;
  return kernels;
}

}  // namespace poisson
