#include "gpu/kernels/half_cds.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>

namespace poisson {

namespace {

constexpr int threads = 512;

/// Offsets as a kernel argument: constant memory, and compile-time loop bounds.
template <int count>
struct FixedOffsets {
  std::int32_t value[count];
  [[nodiscard]] __device__ constexpr int size() const { return count; }
  [[nodiscard]] __device__ std::int64_t operator[](int k) const { return value[k]; }
};

/// Any number of offsets, read through the cache.
struct AnyOffsets {
  std::int32_t const* value;
  int count;
  [[nodiscard]] __device__ int size() const { return count; }
  [[nodiscard]] __device__ std::int64_t operator[](int k) const { return __ldg(value + k); }
};

/// With `inside`, every term of the row is known to exist: no branch keeps the loads from being issued together.
template <bool inside, class Offsets>
__device__ __forceinline__ double row_product(std::int64_t n, double const* __restrict__ values, Offsets const& offsets,
                                              double const* __restrict__ x, std::int64_t i) {
  double sum = __ldg(values + i) * __ldg(x + i);
#pragma unroll
  for (int k = 1; k < offsets.size(); ++k) {
    std::int64_t const o = offsets[k];
    if (inside || i >= o)
      sum = fma(__ldg(values + k * n + i), __ldg(x + i - o), sum);
  }
#pragma unroll
  for (int k = 1; k < offsets.size(); ++k) {
    std::int64_t const o = offsets[k];
    if (inside || i + o < n)
      sum = fma(__ldg(values + k * n + i + o), __ldg(x + i + o), sum);
  }
  return sum;
}

/// Rows of a thread in product_kernel, `threads` apart.
constexpr int rows_per_thread = 2;

template <class Offsets>
__global__ void __launch_bounds__(threads)
    product_kernel(std::int64_t n, double const* __restrict__ values, Offsets const offsets, double alpha,
                   double const* __restrict__ x, double beta, double* __restrict__ y) {
  constexpr int rows = threads * rows_per_thread;
  std::int64_t const first = std::int64_t{blockIdx.x} * rows, reach = offsets[offsets.size() - 1];
  bool const inside = first >= reach && first + rows + reach <= n;
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    std::int64_t const i = first + r * threads + threadIdx.x;
    if (i >= n)
      return;
    double const sum = inside ? row_product<true>(n, values, offsets, x, i) : row_product<false>(n, values, offsets, x, i);
    y[i] = beta == 0 ? alpha * sum : fma(beta, y[i], alpha * sum);
  }
}

/// One row a thread and tested terms: with the sum over the grid there are too few registers for more, which was measured slower.
template <class Offsets>
__global__ void __launch_bounds__(threads)
    product_dot_kernel(std::int64_t n, double const* __restrict__ values, Offsets const offsets, double const* __restrict__ x,
                       double* __restrict__ y, double* dot, std::int32_t const* stop, double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  double sum[1] = {0};
  if (i < n) {
    double const value = row_product<false>(n, values, offsets, x, i);
    y[i] = value;
    sum[0] = __ldg(x + i) * value;
  }
  if (cuda::grid_sum<threads>(sum, partial, counter))
    *dot = sum[0];
}

/// Calls launch with the offsets in the form that suits their number; 14 is a 27-point stencil.
template <class Launch>
void with_offsets(HalfCdsView const& a, Launch const& launch) {
  if (a.offsets.size() == 14) {
    FixedOffsets<14> offsets;
    std::copy(a.offsets.begin(), a.offsets.end(), offsets.value);
    launch(offsets);
  } else
    launch(AnyOffsets{a.backend_offsets, static_cast<int>(a.offsets.size())});
}

class CudaHalfCds final : public HalfCdsKernels {
public:
  void product(Context& context, HalfCdsView const& a, double alpha, double const* x, double beta, double* y) const override {
    if (a.n == 0)
      return;
    with_offsets(a, [&](auto const& offsets) {
      product_kernel<<<cuda::n_blocks(a.n, threads * rows_per_thread), threads, 0, cuda::of(context).stream()>>>(
          a.n, a.values, offsets, alpha, x, beta, y);
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void product_dot(Context& context, HalfCdsView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (a.n == 0)
      return;
    auto& device = cuda::of(context);
    unsigned const blocks = cuda::n_blocks(a.n, threads);
    with_offsets(a, [&](auto const& offsets) {
      product_dot_kernel<<<blocks, threads, 0, device.stream()>>>(a.n, a.values, offsets, x, y, dot, stop,
                                                                  device.partial_sums(blocks), device.block_counter());
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

HalfCdsKernels const& HalfCdsKernels::cuda() {
  static CudaHalfCds const kernels;
  return kernels;
}

}  // namespace poisson
