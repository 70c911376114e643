#include "gpu/kernels/half_cds.hpp"

#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/half_cds_march.cuh"
#include "gpu/kernels/cuda/offsets.cuh"

#include <algorithm>

namespace poisson {

namespace {

// Large boxes are marched through (half_cds_march.cuh). Everything else takes one thread a row here.

/// Of a block; DoubleDouble wants more registers.
template <class T>
inline constexpr int threads_for = std::is_same_v<T, DoubleDouble> ? 512 : 1024;

/// Which rows a block takes: `threads` neighbouring rows of a plane, and the same rows of the next planes, up to `chunk` of them,
/// so that values that row i takes from the plane above are found in L1 by the block's next rows. Any plane gives the same result.
struct Tiling {
  std::int64_t n, plane;
  int chunk;
  unsigned tiles, chunks;
  [[nodiscard]] dim3 grid() const { return {tiles, chunks}; }
};

Tiling tiling_of(HalfCdsView const& a, int multiprocessors, int threads) {
  // The offset of a plane is in the middle of a 27-point stencil's last nine. Smaller planes than a few blocks are not worth it.
  std::int64_t const plane = a.offsets.size() == 14 && a.offsets[9] >= 4 * threads ? a.offsets[9] : a.n;
  std::int64_t const tiles = (plane + threads - 1) / threads, planes = (a.n + plane - 1) / plane;
  // Long enough that the first plane, which finds nothing in L1, is a small part; short enough that all processors have several.
  std::int64_t const chunk = std::clamp<std::int64_t>(tiles * planes / (4 * multiprocessors), 1, 16);
  return {a.n, plane, static_cast<int>(chunk), static_cast<unsigned>(tiles), static_cast<unsigned>((planes + chunk - 1) / chunk)};
}

/// With `inside`, every term of the row is known to exist: no branch keeps the loads from being issued together.
template <class T, bool inside, class Accumulator = DotSum<T>, class Values, class Offsets>
__device__ __forceinline__ T row_product(std::int64_t n, Values values, Offsets const& offsets, ConstPointer<T> x, std::int64_t i) {
  Accumulator sum{};
  sum.add(cuda::load_constant(values, i), cuda::load_constant(x, i));
#pragma unroll
  for (int k = 1; k < offsets.size(); ++k) {
    std::int64_t const o = offsets[k];
    if (inside || i >= o)
      sum.add(cuda::load_constant(values, k * n + i), cuda::load_constant(x, i - o));
  }
#pragma unroll
  for (int k = 1; k < offsets.size(); ++k) {
    std::int64_t const o = offsets[k];
    if (inside || i + o < n)
      sum.add(cuda::load_constant(values, k * n + i + o), cuda::load_constant(x, i + o));
  }
  return sum.value();
}

/// Calls row(i, (A x)_i, x_i) for every row of this thread.
template <class T, class Accumulator = DotSum<T>, class Values, class Offsets, class Row>
__device__ __forceinline__ void for_rows(Tiling const& tiling, Values values, Offsets const& offsets, ConstPointer<T> x,
                                         Row const& row) {
  constexpr int threads = threads_for<T>;
  std::int64_t const n = tiling.n, reach = offsets[offsets.size() - 1];
  std::int64_t const in_plane = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (in_plane >= tiling.plane)
    return;
  std::int64_t i = std::int64_t{blockIdx.y} * tiling.chunk * tiling.plane + in_plane;
  for (int z = 0; z < tiling.chunk && i < n; ++z, i += tiling.plane) {
    std::int64_t const first = i - threadIdx.x;
    bool const inside = first >= reach && first + threads + reach <= n;
    row(i,
        inside ? row_product<T, true, Accumulator>(n, values, offsets, x, i)
               : row_product<T, false, Accumulator>(n, values, offsets, x, i),
        cuda::load_constant(x, i));
  }
}

template <class T, class Values, class Offsets>
__global__ void __launch_bounds__(threads_for<T>, 1)
    product_kernel(Tiling const tiling, Values values, Offsets const offsets, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
  for_rows<T>(tiling, values, offsets, x,
              [&](std::int64_t i, T value, T) { cuda::store_streaming(y, i, cuda::combine(alpha, value, beta, y, i)); });
}

template <class T, class Values, class Offsets>
__global__ void __launch_bounds__(threads_for<T>, 1)
    product_dot_kernel(Tiling const tiling, Values values, Offsets const offsets, ConstPointer<T> x, Pointer<T> y, T* dot,
                       std::int32_t const* stop, T* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  DotSum<T> sum{};
  for_rows<T>(tiling, values, offsets, x, [&](std::int64_t i, T value, T x_i) {
    cuda::store_streaming(y, i, value);
    sum.add(x_i, value);
  });
  T sums[1] = {sum.value()};
  if (cuda::grid_sum<threads_for<T>>(sums, partial, counter))
    *dot = sums[0];
}

template <class Tile, class T, class Stored>
__global__ void __launch_bounds__(Tile::threads, march::Layout<Stored, T, Tile>::blocks_at_once)
    march_product_kernel(march::Box const box, Stored const* __restrict__ values, T alpha, ConstPointer<T> x, T beta,
                         Pointer<T> y) {
  march::for_rows<Tile, T>(
      box, values, x, [&](std::int64_t i, T value, T) { cuda::store_streaming(y, i, cuda::combine(alpha, value, beta, y, i)); });
}

template <class Tile, class T, class Stored>
__global__ void __launch_bounds__(Tile::threads, march::Layout<Stored, T, Tile>::blocks_at_once)
    march_product_dot_kernel(march::Box const box, Stored const* __restrict__ values, ConstPointer<T> x, Pointer<T> y, T* dot,
                             std::int32_t const* stop, T* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  DotSum<T> sum{};
  march::for_rows<Tile, T>(box, values, x, [&](std::int64_t i, T value, T x_i) {
    cuda::store_streaming(y, i, value);
    sum.add(x_i, value);
  });
  T sums[1] = {sum.value()};
  if (cuda::grid_sum<Tile::threads>(sums, partial, counter))
    *dot = sums[0];
}

template <class V, class Values, class Offsets, class Row>
__global__ void __launch_bounds__(threads_for<V>, 1) rows_kernel(Tiling const tiling, Values values, Offsets const offsets,
                                                                 ConstPointer<V> x, Row const row, std::int32_t const* stop) {
  if (*stop == 0)
    for_rows<V, PlainSum<V>>(tiling, values, offsets, x, row);
}
template <class Tile, class V, class Stored, class Row>
__global__ void __launch_bounds__(Tile::threads, march::Layout<Stored, V, Tile>::blocks_at_once)
    march_rows_kernel(march::Box const box, Stored const* __restrict__ values, V const* x, Row const row,
                      std::int32_t const* stop) {
  if (*stop == 0)
    march::for_rows<Tile, V>(box, values, x, row);  // with sums in float: 775 us in place of 662 at 256^3
}

/// Small matrices are in the caches, and bound by waiting: a thread a row, spread over all processors, whose loads do not wait for
/// each other, nor for *stop.
constexpr int few_threads = 128, few_rows = 1 << 18;

template <class V, class Values, class Offsets, class Row>
__global__ void __launch_bounds__(few_threads) few_rows_kernel(std::int64_t n, Values values, Offsets const offsets,
                                                               ConstPointer<V> x, Row const row, std::int32_t const* stop) {
  std::int64_t const i = std::int64_t{blockIdx.x} * few_threads + threadIdx.x;
  if (i >= n)
    return;
  std::int32_t const stopped = *stop;
  auto const terms = row.load(i);
  V const own = x[i];
  PlainSum<V> sum{};
  sum.add(static_cast<V>(values[i]), own);
#pragma unroll
  for (int k = 1; k < offsets.size(); ++k) {
    std::int64_t const before = i - offsets[k], after = i + offsets[k];
    V const lower = static_cast<V>(values[k * n + i]), of_lower = x[before >= 0 ? before : 0];
    V const upper = static_cast<V>(values[k * n + (after < n ? after : n - 1)]), of_upper = x[after < n ? after : n - 1];
    sum.add(before >= 0 ? lower : V(0), of_lower);
    sum.add(after < n ? upper : V(0), of_upper);
  }
  if (stopped == 0)
    row(i, sum.value(), own, terms);
}

class CudaHalfCds final : public ProductsByTemplates<HalfCdsKernels, CudaHalfCds> {
public:
  void smooth(Context& context, HalfCdsView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    for_products(context, a, x, SmoothingRow<float>{step}, stop);
  }
  void smooth(Context& context, HalfCdsView const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const override {
    for_products(context, a, x, SmoothingRow<double>{step}, stop);
  }
  void subtract_product(Context& context, HalfCdsView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    for_products(context, a, x, ResidualRow<float>{b, r}, stop);
  }
  void subtract_product(Context& context, HalfCdsView const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const override {
    for_products(context, a, x, ResidualRow<double>{b, r}, stop);
  }

  template <class T, class Values>
  static void multiply(Context& context, HalfCdsView const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    if (a.n == 0)
      return;
    auto& device = cuda::of(context);
    if constexpr (march::marches<Values>) {
      using Stored = march::StoredIn<Values>;
      if (auto const box = march::box_of<Stored, T>(a, device)) {
        march::with_tile<T>(*box, [&]<class Tile>(Tile) {
          constexpr int shared_bytes = march::Layout<Stored, T, Tile>::shared_bytes;
          march::allow_shared_memory(march_product_kernel<Tile, T, Stored>, shared_bytes);
          march_product_kernel<Tile, T, Stored>
              <<<box->grid(), Tile::threads, shared_bytes, device.stream()>>>(*box, values, alpha, x, beta, y);
        });
        POISSON_CUDA_CHECK(cudaGetLastError());
        return;
      }
    }
    Tiling const tiling = tiling_of(a, device.multiprocessors(), threads_for<T>);
    cuda::with_offsets<14>(a.offsets, a.backend_offsets, [&](auto const& offsets) {
      product_kernel<T><<<tiling.grid(), threads_for<T>, 0, device.stream()>>>(tiling, values, offsets, alpha, x, beta, y);
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, HalfCdsView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    if (a.n == 0)
      return;
    auto& device = cuda::of(context);
    if constexpr (march::marches<Values>) {
      using Stored = march::StoredIn<Values>;
      if (auto const box = march::box_of<Stored, T>(a, device)) {
        dim3 const grid = box->grid();
        T* const partial = device.partial_sums<T>(std::int64_t{grid.x} * grid.y);
        march::with_tile<T>(*box, [&]<class Tile>(Tile) {
          constexpr int shared_bytes = march::Layout<Stored, T, Tile>::shared_bytes;
          march::allow_shared_memory(march_product_dot_kernel<Tile, T, Stored>, shared_bytes);
          march_product_dot_kernel<Tile, T, Stored><<<grid, Tile::threads, shared_bytes, device.stream()>>>(
              *box, values, x, y, dot, stop, partial, device.block_counter());
        });
        POISSON_CUDA_CHECK(cudaGetLastError());
        return;
      }
    }
    Tiling const tiling = tiling_of(a, device.multiprocessors(), threads_for<T>);
    T* const partial = device.partial_sums<T>(std::int64_t{tiling.tiles} * tiling.chunks);
    cuda::with_offsets<14>(a.offsets, a.backend_offsets, [&](auto const& offsets) {
      product_dot_kernel<T><<<tiling.grid(), threads_for<T>, 0, device.stream()>>>(tiling, values, offsets, x, y, dot, stop,
                                                                                   partial, device.block_counter());
    });
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  /// row(i, (A x)_i, x_i) for all rows.
  template <class V, class Row>
  static void for_products(Context& context, HalfCdsView const& a, V const* x, Row const& row, std::int32_t const* stop) {
    if (a.n > 0)
      with_stored_values<V>(
          a, [&](auto values) { launch<V>(context, a, values, x, row, stop); }, ValuePairs());
  }
  template <class V, class Values, class Row>
  static void launch(Context& context, HalfCdsView const& a, Values values, V const* x, Row const& row, std::int32_t const* stop) {
    auto& device = cuda::of(context);
    if constexpr (march::marches<Values>) {
      using Stored = march::StoredIn<Values>;
      if (auto const box = march::box_of<Stored, V>(a, device)) {
        march::with_tile<V>(*box, [&]<class Tile>(Tile) {
          constexpr int shared_bytes = march::Layout<Stored, V, Tile>::shared_bytes;
          march::allow_shared_memory(march_rows_kernel<Tile, V, Stored, Row>, shared_bytes);
          march_rows_kernel<Tile, V, Stored, Row>
              <<<box->grid(), Tile::threads, shared_bytes, device.stream()>>>(*box, values, x, row, stop);
        });
        POISSON_CUDA_CHECK(cudaGetLastError());
        return;
      }
    }
    cuda::with_offsets<14>(a.offsets, a.backend_offsets, [&](auto const& offsets) {
      if (a.n <= few_rows) {
        few_rows_kernel<V>
            <<<cuda::n_blocks(a.n, few_threads), few_threads, 0, device.stream()>>>(a.n, values, offsets, x, row, stop);
      } else {
        Tiling const tiling = tiling_of(a, device.multiprocessors(), threads_for<V>);
        rows_kernel<V><<<tiling.grid(), threads_for<V>, 0, device.stream()>>>(tiling, values, offsets, x, row, stop);
      }
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
