#include "gpu/kernels/cds.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>

namespace poisson {

namespace {

constexpr int threads = 256;
/// Rows of one block: enough that the blocks' partial sums are few, and that x is found in L1.
constexpr int rows_per_block = 512;

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

struct Shape {
  std::int64_t n_rows, n_columns;
};

/// One thread a row. A whole warp whose terms all exist takes the loop without branches, in which loads are issued together.
template <class Offsets>
__device__ __forceinline__ double row_product(Shape const& shape, double const* __restrict__ values, Offsets const& offsets,
                                              double const* __restrict__ x, std::int64_t i) {
  double sum = 0;
  int const count = offsets.size();
  std::int64_t const first = i - threadIdx.x % 32;
  if (count > 0 && first + offsets[0] >= 0 && first + 31 + offsets[count - 1] < shape.n_columns) {
#pragma unroll 9
    for (int k = 0; k < count; ++k)
      sum = fma(__ldg(values + k * shape.n_rows + i), __ldg(x + i + offsets[k]), sum);
  } else
    for (int k = 0; k < count; ++k) {
      std::int64_t const column = i + offsets[k];
      if (column >= 0 && column < shape.n_columns)
        sum = fma(__ldg(values + k * shape.n_rows + i), __ldg(x + column), sum);
    }
  return sum;
}

template <class Offsets>
__global__ void __launch_bounds__(threads)
    product_kernel(Shape const shape, double const* __restrict__ values, Offsets const offsets, double alpha,
                   double const* __restrict__ x, double beta, double* __restrict__ y) {
  for (int r = 0; r < rows_per_block; r += threads) {
    std::int64_t const i = std::int64_t{blockIdx.x} * rows_per_block + r + threadIdx.x;
    if (i >= shape.n_rows)
      return;
    double const sum = row_product(shape, values, offsets, x, i);
    y[i] = beta == 0 ? alpha * sum : fma(beta, y[i], alpha * sum);
  }
}

template <class Offsets>
__global__ void __launch_bounds__(threads)
    product_dot_kernel(Shape const shape, double const* __restrict__ values, Offsets const offsets, double const* __restrict__ x,
                       double* __restrict__ y, double* dot, std::int32_t const* stop, double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  for (int r = 0; r < rows_per_block; r += threads) {
    std::int64_t const i = std::int64_t{blockIdx.x} * rows_per_block + r + threadIdx.x;
    if (i < shape.n_rows) {
      double const value = row_product(shape, values, offsets, x, i);
      y[i] = value;
      sum[0] = fma(__ldg(x + i), value, sum[0]);
    }
  }
  if (cuda::grid_sum<threads, 16>(sum, partial, counter))
    *dot = sum[0];
}

/// Calls launch with the offsets in the form that suits their number; 27 is a box's stencil.
template <class Launch>
void with_offsets(CdsView const& a, Launch const& launch) {
  if (a.offsets.size() == 27) {
    FixedOffsets<27> offsets;
    std::copy(a.offsets.begin(), a.offsets.end(), offsets.value);
    launch(offsets);
  } else
    launch(AnyOffsets{a.backend_offsets, static_cast<int>(a.offsets.size())});
}

class CudaCds final : public CdsKernels {
public:
  void product(Context& context, CdsView const& a, double alpha, double const* x, double beta, double* y) const override {
    if (a.n_rows == 0)
      return;
    with_offsets(a, [&](auto const& offsets) {
      product_kernel<<<cuda::n_blocks(a.n_rows, rows_per_block), threads, 0, cuda::of(context).stream()>>>(
          Shape{a.n_rows, a.n_columns}, a.values, offsets, alpha, x, beta, y);
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void product_dot(Context& context, CdsView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (a.n_rows == 0)
      return;
    auto& device = cuda::of(context);
    unsigned const blocks = cuda::n_blocks(a.n_rows, rows_per_block);
    double* const partial = device.partial_sums(blocks);
    with_offsets(a, [&](auto const& offsets) {
      product_dot_kernel<<<blocks, threads, 0, device.stream()>>>(Shape{a.n_rows, a.n_columns}, a.values, offsets, x, y, dot, stop,
                                                                  partial, device.block_counter());
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

CdsKernels const& CdsKernels::cuda() {
  static CudaCds const kernels;
  return kernels;
}

}  // namespace poisson
