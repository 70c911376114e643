#include "gpu/kernels/order_levels.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

using order_levels::Kind;

constexpr int threads = 256;

/// Inner unknowns take a thread each, in the first blocks; those on rims a warp.
template <class V>
__global__ void __launch_bounds__(threads)
    restrict_kernel(OrderLevels const levels, unsigned blocks_inside, V const* __restrict__ r, V const* __restrict__ diagonal,
                    V factor, V* b, V* x, std::int32_t const* stop) {
  LatticeView const &fine = levels.fine, &coarse = levels.coarse;
  if (*stop != 0)
    return;
  if (blockIdx.x < blocks_inside) {  // all fine nodes around it are inner ones
    std::uint32_t const unknown = blockIdx.x * threads + threadIdx.x;
    if (unknown >= coarse.n_inner())
      return;
    auto const line = static_cast<std::uint32_t>(coarse.m - 2);
    std::uint32_t const lines = unknown / line, planes = lines / line;
    std::int64_t const lattice = planes / line;
    auto const i = static_cast<std::int32_t>(1 + unknown % line), j = static_cast<std::int32_t>(1 + lines % line),
               k = static_cast<std::int32_t>(1 + planes % line);
    std::int32_t const p = fine.order;
    V sum = 0;
    for (std::int32_t dz = 1 - p; dz < p; ++dz)
      for (std::int32_t dy = 1 - p; dy < p; ++dy)
        for (std::int32_t dx = 1 - p; dx < p; ++dx) {
          Kind const kind(fine, lattice, dx < 0 ? p + dx : dx, dy < 0 ? p + dy : dy, dz < 0 ? p + dz : dz);
          V const weight = static_cast<V>(levels.weight[abs(dx)] * levels.weight[abs(dy)] * levels.weight[abs(dz)]);
          sum += weight * r[kind.unknown(i - (dx < 0 ? 1 : 0), j - (dy < 0 ? 1 : 0), k - (dz < 0 ? 1 : 0))];
        }
    b[unknown] = sum;
    x[unknown] = factor * sum / diagonal[unknown];
    return;
  }
  std::int64_t const on_rim = std::int64_t{blockIdx.x - blocks_inside} * (threads / 32) + threadIdx.x / 32;
  if (on_rim >= coarse.n_rim())
    return;
  V sum = 0;
  if (levels.fixed_of_coarse[on_rim] == 0) {
    sum = order_levels::restricted(levels, r, on_rim, static_cast<int>(threadIdx.x % 32), 32);
    for (int distance = 16; distance > 0; distance /= 2)
      sum += __shfl_down_sync(0xffffffffU, sum, static_cast<unsigned>(distance));
  }
  if (threadIdx.x % 32 == 0) {
    std::int64_t const unknown = coarse.n_inner() + on_rim;
    b[unknown] = sum;
    x[unknown] = factor * sum / diagonal[unknown];
  }
}

/// A thread takes the fine nodes inside that lie in a cell, or on its first faces; in the last blocks, an unknown on rims.
template <class V>
__global__ void __launch_bounds__(threads) prolong_kernel(OrderLevels const levels, unsigned blocks_of_cells,
                                                          V const* __restrict__ e, V* __restrict__ x, std::int32_t const* stop) {
  LatticeView const &fine = levels.fine, &coarse = levels.coarse;
  if (*stop != 0)
    return;
  if (blockIdx.x >= blocks_of_cells) {
    std::int64_t const on_rim = std::int64_t{blockIdx.x - blocks_of_cells} * threads + threadIdx.x;
    if (on_rim < fine.n_rim())
      x[fine.n_inner() + on_rim] += order_levels::prolonged(levels, e, on_rim);
    return;
  }
  auto const cells = static_cast<std::uint32_t>(fine.cells);
  std::uint32_t const cell = blockIdx.x * threads + threadIdx.x;
  if (cell >= fine.n_lattices * cells * cells * cells)
    return;
  std::uint32_t const lines = cell / cells, planes = lines / cells;
  std::int64_t const lattice = planes / cells;
  auto const i = static_cast<std::int32_t>(cell % cells), j = static_cast<std::int32_t>(lines % cells),
             k = static_cast<std::int32_t>(planes % cells);
  V corner[8];
#pragma unroll
  for (int c = 0; c < 8; ++c)
    corner[c] = e[coarse.unknown(lattice, i + c % 2, j + c / 2 % 2, k + c / 4)];
  std::int32_t const p = fine.order;
  auto const between = [&](std::int32_t d, V first, V last) {
    return d == 0 ? first : static_cast<V>(levels.weight[d]) * first + static_cast<V>(levels.weight[p - d]) * last;
  };
  for (std::int32_t dz = k == 0 ? 1 : 0; dz < p; ++dz) {
    V const face[4] = {between(dz, corner[0], corner[4]), between(dz, corner[1], corner[5]), between(dz, corner[2], corner[6]),
                       between(dz, corner[3], corner[7])};
    for (std::int32_t dy = j == 0 ? 1 : 0; dy < p; ++dy) {
      V const edge[2] = {between(dy, face[0], face[2]), between(dy, face[1], face[3])};
      for (std::int32_t dx = i == 0 ? 1 : 0; dx < p; ++dx)
        x[Kind(fine, lattice, dx, dy, dz).unknown(i, j, k)] += between(dx, edge[0], edge[1]);
    }
  }
}

template <class V>
class CudaOrderLevels final : public OrderLevelKernels<V> {
public:
  void restrict_residual(Context& context, OrderLevels const& levels, V const* r, V const* diagonal, V factor, V* b, V* x,
                         std::int32_t const* stop) const override {
    unsigned const inside = cuda::n_blocks(levels.coarse.n_inner(), threads);
    launch(context, inside, cuda::n_blocks(levels.coarse.n_rim(), threads / 32), restrict_kernel<V>, levels, inside, r, diagonal,
           factor, b, x, stop);
  }
  void prolong(Context& context, OrderLevels const& levels, V const* e, V* x, std::int32_t const* stop) const override {
    std::int64_t const cells = levels.fine.all_on_rim ? 0 : levels.fine.cells;
    unsigned const of_cells = cuda::n_blocks(levels.fine.n_lattices * cells * cells * cells, threads);
    launch(context, of_cells, cuda::n_blocks(levels.fine.n_rim(), threads), prolong_kernel<V>, levels, of_cells, e, x, stop);
  }

private:
  template <class... Parameters, class... Arguments>
  static void launch(Context& context, unsigned inside, unsigned on_rims, void (*kernel)(Parameters...), Arguments... arguments) {
    if (inside + on_rims == 0)
      return;
    kernel<<<inside + on_rims, threads, 0, cuda::of(context).stream()>>>(arguments...);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

template <>
OrderLevelKernels<float> const& OrderLevelKernels<float>::cuda() {
  static CudaOrderLevels<float> const kernels;
  return kernels;
}
template <>
OrderLevelKernels<double> const& OrderLevelKernels<double>::cuda() {
  static CudaOrderLevels<double> const kernels;
  return kernels;
}

}  // namespace poisson
