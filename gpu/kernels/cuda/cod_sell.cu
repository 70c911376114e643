#include "gpu/kernels/cod_sell.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <bit>

namespace poisson {

namespace {

constexpr int threads = 256;
/// Threads and rows of a block of product_dot_kernel: enough that the blocks' partial sums are few.
constexpr int dot_threads = 512;

/// One thread a row (Algorithm 3).
__device__ __forceinline__ double row_product(CodSellView const& a, int log2_c, double const* __restrict__ x, std::int64_t place) {
  std::int64_t const slice = place >> log2_c, step = std::int64_t{1} << log2_c, lane = place & (step - 1);
  std::int64_t const first = __ldg(a.value_ptr + slice), end = __ldg(a.value_ptr + slice + 1);
  if (first == end)
    return 0;
  std::int64_t const first_shared = __ldg(a.dictionary_ptr + slice), end_shared = __ldg(a.dictionary_ptr + slice + 1);
  std::int64_t at = first + lane, column_at = at - (first_shared << log2_c);
  std::int32_t const base = __ldcs(a.columns + column_at);
  double const loaded = __ldg(x + max(base, 0));
  double sum = __ldcs(a.values + at) * (base >= 0 ? loaded : 0.0);
  at += step;
  column_at += step;
  double const* const from_base = x + base;  // rows without a base have no dictionary
#pragma unroll 4
  for (std::int64_t k = first_shared; k < end_shared; ++k, at += step)
    sum = fma(__ldcs(a.values + at), __ldg(from_base + __ldg(a.dictionary + k)), sum);
#pragma unroll 4
  for (; at < end; at += step, column_at += step) {
    std::int32_t const column = __ldcs(a.columns + column_at);
    double const entry = __ldg(x + max(column, 0));  // where the row has ended x_0 is loaded and dropped
    sum = fma(__ldcs(a.values + at), column >= 0 ? entry : 0.0, sum);
  }
  return sum;
}

__global__ void __launch_bounds__(threads)
    product_kernel(CodSellView a, int log2_c, double alpha, double const* __restrict__ x, double beta, double* __restrict__ y) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= a.n_rows)
    return;
  double const sum = row_product(a, log2_c, x, place);
  std::int64_t const row = __ldg(a.rows + place);
  y[row] = beta == 0 ? alpha * sum : fma(beta, y[row], alpha * sum);
}

__global__ void __launch_bounds__(dot_threads)
    product_dot_kernel(CodSellView a, int log2_c, double const* __restrict__ x, double* __restrict__ y, double* dot,
                       std::int32_t const* stop, double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  std::int64_t const place = std::int64_t{blockIdx.x} * dot_threads + threadIdx.x;
  if (place < a.n_rows) {
    double const value = row_product(a, log2_c, x, place);
    std::int64_t const row = __ldg(a.rows + place);
    y[row] = value;
    sum[0] = __ldg(x + row) * value;
  }
  if (cuda::grid_sum<dot_threads>(sum, partial, counter))
    *dot = sum[0];
}

__global__ void diagonal_kernel(CodSellView a, double* d) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= a.n_rows)
    return;
  std::int64_t const c = a.slice_size, slice = place / c, lane = place % c, row = a.rows[place];
  std::int64_t const first = a.value_ptr[slice], width = (a.value_ptr[slice + 1] - first) / c;
  std::int64_t const first_shared = a.dictionary_ptr[slice], n_shared = a.dictionary_ptr[slice + 1] - first_shared;
  std::int32_t const* const columns = a.columns + (first - c * first_shared) + lane;
  double const* const values = a.values + first + lane;
  double value = 0;
  if (width > 0 && columns[0] == row)
    value = values[0];
  for (std::int64_t k = 0; k < n_shared; ++k)
    if (std::int64_t{columns[0]} + a.dictionary[first_shared + k] == row)
      value = values[(k + 1) * c];
  for (std::int64_t k = 1; k < width - n_shared; ++k)
    if (columns[k * c] == row)
      value = values[(n_shared + k) * c];
  d[row] = value;
}

int log2_of(std::int32_t c) {
  return std::countr_zero(static_cast<std::uint32_t>(c));
}

class CudaCodSell final : public CodSellKernels {
public:
  void product(Context& context, CodSellView const& a, double alpha, double const* x, double beta, double* y) const override {
    if (a.n_rows == 0)
      return;
    product_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, log2_of(a.slice_size), alpha,
                                                                                                  x, beta, y);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void product_dot(Context& context, CodSellView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (a.n_rows == 0)
      return;
    auto& device = cuda::of(context);
    unsigned const blocks = cuda::n_blocks(a.n_rows, dot_threads);
    product_dot_kernel<<<blocks, dot_threads, 0, device.stream()>>>(a, log2_of(a.slice_size), x, y, dot, stop,
                                                                    device.partial_sums(blocks), device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void diagonal(Context& context, CodSellView const& a, double* d) const override {
    if (a.n_rows == 0)
      return;
    diagonal_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

CodSellKernels const& CodSellKernels::cuda() {
  static CudaCodSell const kernels;
  return kernels;
}

}  // namespace poisson
