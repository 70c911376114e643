#include "gpu/kernels/sell_c_sigma.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <bit>

namespace poisson {

namespace {

constexpr int threads = 256;
/// Rows of one block of product_dot_kernel: enough that the blocks' partial sums are few.
constexpr int rows_per_block = 512;

/// One thread a row. With C < 32 the lanes of a warp walk several slices at once, which lie one behind the other in memory: every
/// sector that is loaded is used whole, at once or, as the columns of C = 4, by the next step of the loop from L1.
__device__ __forceinline__ double row_product(SellView const& a, int log2_c, double const* __restrict__ x, std::int64_t place) {
  std::int64_t const slice = place >> log2_c;
  std::int64_t const end = __ldg(a.slice_ptr + slice + 1), step = std::int64_t{1} << log2_c;
  double sum = 0;
#pragma unroll 4
  for (std::int64_t e = __ldg(a.slice_ptr + slice) + (place & (step - 1)); e < end; e += step) {
    std::int32_t const column = __ldg(a.columns + e);
    double const value = __ldg(a.values + e);
    // Where the row has ended nothing is read from x, and 0 * 0 added.
    sum = fma(value, column >= 0 ? __ldg(x + column) : 0.0, sum);
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

__global__ void __launch_bounds__(threads)
    product_dot_kernel(SellView a, int log2_c, double const* __restrict__ x, double* __restrict__ y, double* dot,
                       std::int32_t const* stop, double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  for (int r = 0; r < rows_per_block; r += threads) {
    std::int64_t const place = std::int64_t{blockIdx.x} * rows_per_block + r + threadIdx.x;
    if (place < a.n_rows) {
      double const value = row_product(a, log2_c, x, place);
      std::int64_t const row = row_at(a, place);
      y[row] = value;
      sum[0] = fma(__ldg(x + row), value, sum[0]);
    }
  }
  if (cuda::grid_sum<threads, 16>(sum, partial, counter))
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
    unsigned const blocks = cuda::n_blocks(a.n_rows, rows_per_block);
    product_dot_kernel<<<blocks, threads, 0, device.stream()>>>(a, log2_of(a.slice_size), x, y, dot, stop,
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
