#include "gpu/kernels/qr.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>

namespace poisson {

namespace {

constexpr int threads = 256, warps = threads / 32, most_columns = 64;
constexpr std::int64_t chunk_bytes = 96 << 10;  // two blocks share a multiprocessor

__device__ double warp_sum(double v) {
  for (int distance = 16; distance > 0; distance /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, distance);
  return v;
}

/// A block holds a chunk in shared memory, a warp every 8th column: with one barrier a column, the owner of the next column makes
/// its reflector first, then updates what else it owns.
__global__ void __launch_bounds__(threads) factor_kernel(RowChunks chunks, int n, double* __restrict__ a, double* __restrict__ r) {
  extern __shared__ double tile[];  // columns of a, below the diagonal their reflectors
  __shared__ double tau[most_columns], diagonal[most_columns];
  std::int64_t const chunk = blockIdx.x, first = chunks.begin(chunk);
  int const rows = static_cast<int>(chunks.end(chunk) - first), lane = static_cast<int>(threadIdx.x) % 32,
            warp = static_cast<int>(threadIdx.x) / 32;
  for (int k = warp; k < n; k += warps)
    for (int i = lane; i < rows; i += 32)
      tile[i + k * rows] = a[first + i + k * chunks.m];

  auto const make_reflector = [&](int j) {  // by the owner of column j
    double* const x = tile + j * rows;
    double rest = 0;
    for (int i = j + 1 + lane; i < rows; i += 32)
      rest = fma(x[i], x[i], rest);
    rest = warp_sum(rest);
    __syncwarp();
    double const alpha = x[j], squared = fma(alpha, alpha, rest);
    bool const none = rest == 0 || squared < 1e-280;  // the sum may have lost digits to underflow
    double const beta = none ? alpha : (alpha > 0 ? -sqrt(squared) : sqrt(squared));
    double const scale = none ? 0 : 1 / (alpha - beta);
    for (int i = j + 1 + lane; i < rows; i += 32)
      x[i] *= scale;
    if (lane == 0) {
      tau[j] = none ? 0 : (beta - alpha) / beta;
      diagonal[j] = beta;
    }
    __syncwarp();
  };
  /// Column k, which the warp owns, by the reflector of column j < k.
  auto const reflect = [&](int j, int k) {
    double const* const v = tile + j * rows;
    double* const x = tile + k * rows;
    double sum = 0;
    for (int i = j + 1 + lane; i < rows; i += 32)
      sum = fma(v[i], x[i], sum);
    sum = tau[j] * (warp_sum(sum) + x[j]);
    __syncwarp();
    for (int i = j + 1 + lane; i < rows; i += 32)
      x[i] = fma(-sum, v[i], x[i]);
    if (lane == 0)
      x[j] -= sum;
    __syncwarp();
  };

  __syncthreads();
  if (warp == 0)
    make_reflector(0);
  for (int j = 0; j + 1 < n; ++j) {
    __syncthreads();
    int const next = j + 1;
    if (next % warps == warp) {
      reflect(j, next);
      make_reflector(next);
    }
    for (int k = (j + 2) / warps * warps + warp; k < n; k += warps)
      if (k > next)
        reflect(j, k);
  }
  __syncthreads();
  for (int k = warp; k < n; k += warps)
    for (int i = lane; i < n; i += 32)
      r[chunk * n + i + k * chunks.count * n] = i < k ? tile[i + k * rows] : (i == k ? diagonal[k] : 0);
  __syncthreads();

  // Q = H_0 H_1 ... times the first columns of the identity, from the last reflector on. A column's reflector becomes its column of
  // Q one barrier after all others have used it.
  auto const start_column = [&](int j) {
    double* const x = tile + j * rows;
    for (int i = lane; i < rows; i += 32)
      x[i] = i < j ? 0 : (i == j ? 1 - tau[j] : -tau[j] * x[i]);
    __syncwarp();
  };
  for (int j = n - 2; j >= 0; --j) {
    if ((j + 1) % warps == warp)
      start_column(j + 1);
    for (int k = (j + 1) / warps * warps + warp; k < n; k += warps)
      if (k > j)
        reflect(j, k);
    __syncthreads();
  }
  if (warp == 0)
    start_column(0);
  __syncthreads();
  for (int k = warp; k < n; k += warps)
    for (int i = lane; i < rows; i += 32)
      a[first + i + k * chunks.m] = tile[i + k * rows];
}

__global__ void add_to_diagonal_kernel(std::int64_t n, double value, double* a, std::int64_t lda) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    a[i + i * lda] += value;
}

class CudaQr final : public QrKernels {
public:
  std::int64_t rows_of_chunk(std::int64_t n) const override {
    return n > most_columns ? 0 : std::min<std::int64_t>(1024, chunk_bytes / (std::int64_t{sizeof(double)} * n) / 32 * 32);
  }

  void factor_chunks(Context& context, RowChunks const& chunks, std::int64_t n, double* a, double* r) const override {
    auto& device = cuda::of(context);
    // The last two chunks may be longer than half, never longer than whole ones.
    auto const bytes = static_cast<std::size_t>(std::min(chunks.rows, chunks.m) * n) * sizeof(double);
    POISSON_CUDA_CHECK(cudaFuncSetAttribute(factor_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    factor_kernel<<<static_cast<unsigned>(chunks.count), threads, bytes, device.stream()>>>(chunks, static_cast<int>(n), a, r);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void add_to_diagonal(Context& context, std::int64_t n, double value, double* a, std::int64_t lda) const override {
    add_to_diagonal_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(n, value, a, lda);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

QrKernels const& QrKernels::cuda() {
  static CudaQr const kernels;
  return kernels;
}

}  // namespace poisson
