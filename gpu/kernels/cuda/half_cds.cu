#include "gpu/kernels/half_cds.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>

namespace poisson {

namespace {

constexpr int threads = 1024;

/// Which rows a block takes: `threads` neighbouring rows of a plane, and the same rows of the next planes, up to `chunk` of them.
/// On a box the plane is one of nodes, and the values that row i takes from the plane above, a(i + o, i), are those that the
/// block's next rows hold as their own: they are then still in the L1 cache, and each value crosses from L2 once instead of
/// twice. (Without this L2, not DRAM, bounds the product: 216 bytes a row cross from it and 112 from DRAM.) It also bounds the
/// distance of that reuse when planes are so large that L2 forgets them. Any plane gives the same result.
struct Tiling {
  std::int64_t n, plane;
  int chunk;
  unsigned tiles, chunks;
  [[nodiscard]] dim3 grid() const { return {tiles, chunks}; }
};

Tiling tiling_of(HalfCdsView const& a, int multiprocessors) {
  // The offset of a plane is in the middle of a 27-point stencil's last nine. Smaller planes than a few blocks are not worth it.
  std::int64_t const plane = a.offsets.size() == 14 && a.offsets[9] >= 4 * threads ? a.offsets[9] : a.n;
  std::int64_t const tiles = (plane + threads - 1) / threads, planes = (a.n + plane - 1) / plane;
  // Long enough that the first plane, which finds nothing in L1, is a small part; short enough that all processors have several.
  std::int64_t const chunk = std::clamp<std::int64_t>(tiles * planes / (4 * multiprocessors), 1, 16);
  return {a.n, plane, static_cast<int>(chunk), static_cast<unsigned>(tiles), static_cast<unsigned>((planes + chunk - 1) / chunk)};
}

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

/// Calls row(i, (A x)_i) for every row of this thread.
template <class Offsets, class Row>
__device__ __forceinline__ void for_rows(Tiling const& tiling, double const* __restrict__ values, Offsets const& offsets,
                                         double const* __restrict__ x, Row const& row) {
  std::int64_t const n = tiling.n, reach = offsets[offsets.size() - 1];
  std::int64_t const in_plane = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (in_plane >= tiling.plane)
    return;
  std::int64_t i = std::int64_t{blockIdx.y} * tiling.chunk * tiling.plane + in_plane;
  for (int z = 0; z < tiling.chunk && i < n; ++z, i += tiling.plane) {
    std::int64_t const first = i - threadIdx.x;
    bool const inside = first >= reach && first + threads + reach <= n;
    row(i, inside ? row_product<true>(n, values, offsets, x, i) : row_product<false>(n, values, offsets, x, i));
  }
}

template <class Offsets>
__global__ void __launch_bounds__(threads, 1)
    product_kernel(Tiling const tiling, double const* __restrict__ values, Offsets const offsets, double alpha,
                   double const* __restrict__ x, double beta, double* __restrict__ y) {
  for_rows(tiling, values, offsets, x,
           [&](std::int64_t i, double value) { __stcs(y + i, beta == 0 ? alpha * value : fma(beta, y[i], alpha * value)); });
}

template <class Offsets>
__global__ void __launch_bounds__(threads, 1)
    product_dot_kernel(Tiling const tiling, double const* __restrict__ values, Offsets const offsets, double const* __restrict__ x,
                       double* __restrict__ y, double* dot, std::int32_t const* stop, double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  for_rows(tiling, values, offsets, x, [&](std::int64_t i, double value) {
    __stcs(y + i, value);
    sum[0] = fma(__ldg(x + i), value, sum[0]);
  });
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
    auto& device = cuda::of(context);
    Tiling const tiling = tiling_of(a, device.multiprocessors());
    with_offsets(a, [&](auto const& offsets) {
      product_kernel<<<tiling.grid(), threads, 0, device.stream()>>>(tiling, a.values, offsets, alpha, x, beta, y);
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void product_dot(Context& context, HalfCdsView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (a.n == 0)
      return;
    auto& device = cuda::of(context);
    Tiling const tiling = tiling_of(a, device.multiprocessors());
    double* const partial = device.partial_sums(std::int64_t{tiling.tiles} * tiling.chunks);
    with_offsets(a, [&](auto const& offsets) {
      product_dot_kernel<<<tiling.grid(), threads, 0, device.stream()>>>(tiling, a.values, offsets, x, y, dot, stop, partial,
                                                                         device.block_counter());
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
