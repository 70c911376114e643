#include "gpu/kernels/csr.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

constexpr int threads = 256;

/// `team` neighbouring threads share a row. The sum ends up in the first thread of the team.
template <int team>
__device__ double row_product(CsrView const& a, double const* __restrict__ x, std::int64_t row, int lane) {
  double sum = 0;
  if (row < a.n_rows) {
    std::int64_t const end = __ldg(a.row_ptr + row + 1);
#pragma unroll 4
    for (std::int64_t e = __ldg(a.row_ptr + row) + lane; e < end; e += team)
      sum = fma(__ldg(a.values + e), __ldg(x + __ldg(a.columns + e)), sum);
  }
#pragma unroll
  for (int distance = team / 2; distance > 0; distance /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, distance, team);
  return sum;
}

template <int team>
__global__ void __launch_bounds__(threads)
    product_kernel(CsrView a, double alpha, double const* __restrict__ x, double beta, double* __restrict__ y) {
  std::int64_t const row = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / team;
  double const sum = row_product<team>(a, x, row, threadIdx.x % team);
  if (row < a.n_rows && threadIdx.x % team == 0)
    y[row] = beta == 0 ? alpha * sum : fma(beta, y[row], alpha * sum);
}

/// Rows of one block of product_dot_kernel: enough that the blocks' partial sums are few.
constexpr int rows_per_block = 512;

template <int team>
__global__ void __launch_bounds__(threads)
    product_dot_kernel(CsrView a, double const* __restrict__ x, double* __restrict__ y, double* dot, std::int32_t const* stop,
                       double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  std::int64_t const first = std::int64_t{blockIdx.x} * rows_per_block + threadIdx.x / team;
  for (int r = 0; r < rows_per_block; r += threads / team) {
    std::int64_t const row = first + r;
    double const value = row_product<team>(a, x, row, threadIdx.x % team);
    if (row < a.n_rows && threadIdx.x % team == 0) {
      y[row] = value;
      sum[0] = fma(__ldg(x + row), value, sum[0]);
    }
  }
  if (cuda::grid_sum<threads, 16>(sum, partial, counter))
    *dot = sum[0];
}

__global__ void diagonal_kernel(CsrView a, double* d) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= a.n_rows)
    return;
  std::int64_t first = a.row_ptr[row];
  std::int64_t const end = a.row_ptr[row + 1];
  for (std::int64_t last = end; first < last;) {
    std::int64_t const middle = first + (last - first) / 2;
    if (a.columns[middle] < row)
      first = middle + 1;
    else
      last = middle;
  }
  d[row] = first < end && a.columns[first] == row ? a.values[first] : 0;
}

/// Calls launch with an integral constant, the threads that share a row.
template <class Launch>
void with_team(CsrView const& a, Launch const& launch) {
  switch (a.threads_per_row) {
  case 1:
    return launch(std::integral_constant<int, 1>{});
  case 2:
    return launch(std::integral_constant<int, 2>{});
  case 4:
    return launch(std::integral_constant<int, 4>{});
  case 8:
    return launch(std::integral_constant<int, 8>{});
  case 16:
    return launch(std::integral_constant<int, 16>{});
  default:
    return launch(std::integral_constant<int, 32>{});
  }
}

class CudaCsr final : public CsrKernels {
public:
  void product(Context& context, CsrView const& a, double alpha, double const* x, double beta, double* y) const override {
    if (a.n_rows == 0)
      return;
    with_team(a, [&](auto team) {
      product_kernel<team()>
          <<<cuda::n_blocks(a.n_rows, threads / team()), threads, 0, cuda::of(context).stream()>>>(a, alpha, x, beta, y);
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void product_dot(Context& context, CsrView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (a.n_rows == 0)
      return;
    auto& device = cuda::of(context);
    with_team(a, [&](auto team) {
      unsigned const blocks = cuda::n_blocks(a.n_rows, rows_per_block);
      product_dot_kernel<team()>
          <<<blocks, threads, 0, device.stream()>>>(a, x, y, dot, stop, device.partial_sums(blocks), device.block_counter());
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void diagonal(Context& context, CsrView const& a, double* d) const override {
    if (a.n_rows == 0)
      return;
    diagonal_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

CsrKernels const& CsrKernels::cuda() {
  static CudaCsr const kernels;
  return kernels;
}

}  // namespace poisson
