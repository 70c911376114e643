#include "gpu/kernels/half_cds.hpp"

#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/half_cds_march.cuh"
#include "gpu/kernels/cuda/offsets.cuh"

#include <algorithm>

namespace poisson {

namespace {

// Large boxes are marched through (half_cds_march.cuh). Everything else takes one thread a row here.

constexpr int threads = 1024;

/// Which rows a block takes: `threads` neighbouring rows of a plane, and the same rows of the next planes, up to `chunk` of them,
/// so that values that row i takes from the plane above are found in L1 by the block's next rows. Any plane gives the same result.
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

/// Calls row(i, (A x)_i, x_i) for every row of this thread.
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
    row(i, inside ? row_product<true>(n, values, offsets, x, i) : row_product<false>(n, values, offsets, x, i), __ldg(x + i));
  }
}

template <class Offsets>
__global__ void __launch_bounds__(threads, 1)
    product_kernel(Tiling const tiling, double const* __restrict__ values, Offsets const offsets, double alpha,
                   double const* __restrict__ x, double beta, double* __restrict__ y) {
  for_rows(tiling, values, offsets, x, [&](std::int64_t i, double value, double) {
    __stcs(y + i, beta == 0 ? alpha * value : fma(beta, y[i], alpha * value));
  });
}

template <class Offsets>
__global__ void __launch_bounds__(threads, 1)
    product_dot_kernel(Tiling const tiling, double const* __restrict__ values, Offsets const offsets, double const* __restrict__ x,
                       double* __restrict__ y, double* dot, std::int32_t const* stop, double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  for_rows(tiling, values, offsets, x, [&](std::int64_t i, double value, double x_i) {
    __stcs(y + i, value);
    sum[0] = fma(x_i, value, sum[0]);
  });
  if (cuda::grid_sum<threads>(sum, partial, counter))
    *dot = sum[0];
}

__global__ void __launch_bounds__(march::threads, 1)
    march_product_kernel(march::Box const box, double const* __restrict__ values, double alpha, double const* __restrict__ x,
                         double beta, double* __restrict__ y) {
  march::for_rows(box, values, x, [&](std::int64_t i, double value, double) {
    __stcs(y + i, beta == 0 ? alpha * value : fma(beta, y[i], alpha * value));
  });
}

__global__ void __launch_bounds__(march::threads, 1)
    march_product_dot_kernel(march::Box const box, double const* __restrict__ values, double const* __restrict__ x,
                             double* __restrict__ y, double* dot, std::int32_t const* stop, double* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  double sum[1] = {0};
  march::for_rows(box, values, x, [&](std::int64_t i, double value, double x_i) {
    __stcs(y + i, value);
    sum[0] = fma(x_i, value, sum[0]);
  });
  if (cuda::grid_sum<march::threads>(sum, partial, counter))
    *dot = sum[0];
}

class CudaHalfCds final : public HalfCdsKernels {
public:
  void product(Context& context, HalfCdsView const& a, double alpha, double const* x, double beta, double* y) const override {
    if (a.n == 0)
      return;
    auto& device = cuda::of(context);
    if (auto const box = march::box_of(a, device)) {
      march::allow_shared_memory(march_product_kernel);
      march_product_kernel<<<box->grid(), march::threads, march::shared_bytes, device.stream()>>>(*box, a.values, alpha, x, beta,
                                                                                                  y);
    } else {
      Tiling const tiling = tiling_of(a, device.multiprocessors());
      cuda::with_offsets<14>(a.offsets, a.backend_offsets, [&](auto const& offsets) {
        product_kernel<<<tiling.grid(), threads, 0, device.stream()>>>(tiling, a.values, offsets, alpha, x, beta, y);
      });
    }
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void product_dot(Context& context, HalfCdsView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (a.n == 0)
      return;
    auto& device = cuda::of(context);
    if (auto const box = march::box_of(a, device)) {
      march::allow_shared_memory(march_product_dot_kernel);
      dim3 const grid = box->grid();
      march_product_dot_kernel<<<grid, march::threads, march::shared_bytes, device.stream()>>>(
          *box, a.values, x, y, dot, stop, device.partial_sums(std::int64_t{grid.x} * grid.y), device.block_counter());
    } else {
      Tiling const tiling = tiling_of(a, device.multiprocessors());
      double* const partial = device.partial_sums(std::int64_t{tiling.tiles} * tiling.chunks);
      cuda::with_offsets<14>(a.offsets, a.backend_offsets, [&](auto const& offsets) {
        product_dot_kernel<<<tiling.grid(), threads, 0, device.stream()>>>(tiling, a.values, offsets, x, y, dot, stop, partial,
                                                                           device.block_counter());
      });
    }
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

HalfCdsKernels const& HalfCdsKernels::cuda() {
  static CudaHalfCds const kernels;
  return kernels;
}

}  // namespace poisson
