#include "gpu/kernels/lattice_levels.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <utility>

namespace poisson {

namespace {

using namespace lattice_levels;

constexpr int threads = 256;

__device__ std::int64_t own_number() {
  return std::int64_t{blockIdx.x} * threads + threadIdx.x;
}

/// LatticeView::inner_node for order 1 by 32-bit divisions, which are faster.
struct InnerNode {
  std::int32_t lattice, i, j, k;
  __device__ InnerNode(std::uint32_t unknown, std::int32_t m) {
    auto const line = static_cast<std::uint32_t>(m - 2);
    std::uint32_t const lines = unknown / line, planes = lines / line;
    lattice = static_cast<std::int32_t>(planes / line);
    i = static_cast<std::int32_t>(1 + unknown % line);
    j = static_cast<std::int32_t>(1 + lines % line);
    k = static_cast<std::int32_t>(1 + planes % line);
  }
};

template <class V>
__global__ void __launch_bounds__(threads)
    free_kernel(LatticeView const lattices, V const* __restrict__ values, std::uint8_t* free) {
  if (std::int64_t const unknown = own_number(); unknown < lattices.n_unknowns)
    free[unknown] = is_free(lattices, values, unknown) ? 1 : 0;
}

__global__ void __launch_bounds__(threads) copy_free_kernel(LatticeView const fine, LatticeView const coarse,
                                                            std::uint8_t const* free_of_fine, std::uint8_t* free_of_coarse) {
  if (std::int64_t const unknown = own_number(); unknown < coarse.n_unknowns)
    free_of_coarse[unknown] = free_of_fine[fine_unknown(fine, coarse, unknown)];
}

/// galerkin_value of diagonal D, where both nodes are inner ones: so are all fine nodes around them, which are free.
template <int D, class V>
__global__ void __launch_bounds__(threads)
    coarsen_inner_kernel(LatticeLevels const levels, V const* __restrict__ values, V* coarse_values) {
  constexpr int x = -half_stencil::dx(D), y = -half_stencil::dy(D), z = -half_stencil::dz(D);
  LatticeView const &fine = levels.fine, &coarse = levels.coarse;
  std::int64_t const inner = coarse.m - 2, node = own_number();
  if (node >= coarse.n_lattices * inner * inner * inner)
    return;
  std::int64_t const lattice = node / (inner * inner * inner);
  auto const i = static_cast<std::int32_t>(1 + node % inner), j = static_cast<std::int32_t>(1 + node / inner % inner),
             k = static_cast<std::int32_t>(1 + node / (inner * inner) % inner);
  if (i + x < 1 || i + x >= coarse.m - 1 || j + y < 1 || j + y >= coarse.m - 1 || k + z < 1)
    return;
  std::int64_t const n = fine.n_lattices * fine.nodes_of_lattice(), line = fine.m, plane = line * line;
  V const* const own = values + node_number(fine, lattice, 2 * i, 2 * j, 2 * k);
  double sum = 0;
#pragma unroll
  for (int dz = -1; dz <= 1; ++dz)
#pragma unroll
    for (int ez = -1; ez <= 1; ++ez)
#pragma unroll
      for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
        for (int ey = -1; ey <= 1; ++ey)
#pragma unroll
          for (int dx = -1; dx <= 1; ++dx)
#pragma unroll
            for (int ex = -1; ex <= 1; ++ex) {
              int const sx = 2 * x + ex - dx, sy = 2 * y + ey - dy, sz = 2 * z + ez - dz;
              if (sx < -1 || sx > 1 || sy < -1 || sy > 1 || sz < -1 || sz > 1)
                continue;
              int const s = 9 * sz + 3 * sy + sx;  // -13 .. 13
              V const v = s <= 0 ? own[-s * n + dz * plane + dy * line + dx]
                                 : own[s * n + (2 * z + ez) * plane + (2 * y + ey) * line + 2 * x + ex];
              sum += weight_at(dx) * weight_at(dy) * weight_at(dz) * weight_at(ex) * weight_at(ey) * weight_at(ez) *
                     static_cast<double>(v);
            }
  std::int64_t const n_coarse = coarse.n_lattices * coarse.nodes_of_lattice();
  coarse_values[D * n_coarse + node_number(coarse, lattice, i, j, k)] = static_cast<V>(sum);
}

/// The other nodes: those of rims, and those inside that a rim's node is coupled to. A row of blocks for each diagonal.
template <class V>
__global__ void __launch_bounds__(threads)
    coarsen_rim_kernel(LatticeLevels const levels, V const* __restrict__ values, V* coarse_values) {
  LatticeView const& coarse = levels.coarse;
  LatticeRim const rim = coarse.rim();
  std::int64_t const n_places = coarse.n_lattices * rim.size(), number = own_number(), place = number % n_places;
  if (number >= 2 * n_places)
    return;
  auto const d = static_cast<int>(blockIdx.y);
  LatticeRim::Node const node = rim.node(place % rim.size());
  std::int32_t c[3] = {node.i, node.j, node.k};
  if (number >= n_places) {
    c[0] += half_stencil::dx(d), c[1] += half_stencil::dy(d), c[2] += half_stencil::dz(d);
    for (std::int32_t const index : c)
      if (index < 1 || index >= coarse.m - 1)
        return;
  }
  std::int64_t const lattice = place / rim.size(), n = coarse.n_lattices * coarse.nodes_of_lattice();
  coarse_values[d * n + node_number(coarse, lattice, c[0], c[1], c[2])] =
      static_cast<V>(galerkin_value(levels, values, lattice, c, d));
}

template <class V>
__global__ void __launch_bounds__(threads) merge_kernel(LatticeMerge const merge, V const* __restrict__ of_pieces, V* values) {
  std::int64_t const m = merge.nodes(), n = merge.n_lattices * m * m * m, node = own_number();
  if (node >= n)
    return;
  auto const d = static_cast<int>(blockIdx.y);
  values[d * n + node] = merged_value(merge, of_pieces, node / (m * m * m), static_cast<std::int32_t>(node % m),
                                      static_cast<std::int32_t>(node / m % m), static_cast<std::int32_t>(node / (m * m) % m), d);
}

/// Unknowns inside take a thread each, in the first blocks; those on rims a warp, a lane for each fine node around.
template <class V>
__global__ void __launch_bounds__(threads)
    restrict_kernel(LatticeLevels const levels, unsigned blocks_inside, V const* __restrict__ r, V const* __restrict__ diagonal,
                    V factor, V* b, V* x, std::int32_t const* stop) {
  LatticeView const &fine = levels.fine, &coarse = levels.coarse;
  if (*stop != 0)
    return;
  if (blockIdx.x < blocks_inside) {  // all fine nodes around it are inner ones
    std::uint32_t const unknown = blockIdx.x * threads + threadIdx.x;
    if (unknown >= coarse.n_inner())
      return;
    InnerNode const node(unknown, coarse.m);
    std::int64_t const line = fine.m - 2, plane = line * line;
    V const* const center = r + fine.inner_unknown(node.lattice, 2 * node.i, 2 * node.j, 2 * node.k);
    V sum = 0;
#pragma unroll
    for (int dz = -1; dz <= 1; ++dz)
#pragma unroll
      for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
        for (int dx = -1; dx <= 1; ++dx)
          sum += static_cast<V>(weight_at(dx) * weight_at(dy) * weight_at(dz)) * center[dz * plane + dy * line + dx];
    b[unknown] = sum;
    x[unknown] = factor * sum / diagonal[unknown];
    return;
  }
  std::int64_t const number = std::int64_t{blockIdx.x - blocks_inside} * (threads / 32) + threadIdx.x / 32;
  if (number >= coarse.n_rim())
    return;
  std::int64_t const unknown = coarse.n_inner() + number;
  V sum = 0;
  if (levels.free_of_coarse[unknown] != 0) {
    auto const lane = static_cast<int>(threadIdx.x % 32);
    int const dx = lane % 3 - 1, dy = lane / 3 % 3 - 1, dz = lane / 9 - 1;
    auto const weight = static_cast<V>(weight_at(dx) * weight_at(dy) * weight_at(dz));
    LatticeRim const rim = coarse.rim();
    auto const rim_size = static_cast<std::uint32_t>(rim.size());
    for (std::int64_t c = coarse.copy_offsets[number]; c < coarse.copy_offsets[number + 1]; ++c) {
      auto const copy = static_cast<std::uint32_t>(coarse.copies[c]);
      LatticeRim::Node const node = rim.node(copy % rim_size);
      std::int32_t const i = 2 * node.i + dx, j = 2 * node.j + dy, k = 2 * node.k + dz;
      if (lane >= 27 || i < 0 || j < 0 || k < 0 || i >= fine.m || j >= fine.m || k >= fine.m)
        continue;
      LatticePlace const place(LatticePlane(fine.m, static_cast<std::int32_t>(copy / rim_size), k), LatticePlaneNode(fine.m, i, j));
      if (place.on_rim && levels.owned[place.at] == 0)  // counts in another lattice
        continue;
      std::int32_t const at = place.on_rim ? fine.rim_unknowns[place.at] : place.at;
      sum += levels.free_of_fine[at] != 0 ? weight * r[at] : V(0);
    }
    for (int distance = 16; distance > 0; distance /= 2)
      sum += __shfl_down_sync(0xffffffffU, sum, static_cast<unsigned>(distance));
  }
  if (threadIdx.x % 32 == 0) {
    b[unknown] = sum;
    x[unknown] = factor * sum / diagonal[unknown];
  }
}

/// A thread takes the fine nodes inside that lie in a coarse cell, or on its first faces; in the last blocks, an unknown on rims.
template <class V>
__global__ void __launch_bounds__(threads) prolong_kernel(LatticeLevels const levels, unsigned blocks_of_cells,
                                                          V const* __restrict__ e, V* __restrict__ x, std::int32_t const* stop) {
  LatticeView const &fine = levels.fine, &coarse = levels.coarse;
  if (*stop != 0)
    return;
  if (blockIdx.x >= blocks_of_cells) {
    std::int64_t const unknown = fine.n_inner() + std::int64_t{blockIdx.x - blocks_of_cells} * threads + threadIdx.x;
    if (unknown < fine.n_unknowns)
      x[unknown] += prolonged(levels, e, unknown);
    return;
  }
  auto const cells = static_cast<std::uint32_t>(coarse.cells);
  std::uint32_t const cell = blockIdx.x * threads + threadIdx.x;
  if (cell >= coarse.n_lattices * cells * cells * cells)
    return;
  std::uint32_t const lines = cell / cells, planes = lines / cells;
  auto const lattice = static_cast<std::int32_t>(planes / cells), i = static_cast<std::int32_t>(cell % cells),
             j = static_cast<std::int32_t>(lines % cells), k = static_cast<std::int32_t>(planes % cells);
  V corner[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    LatticePlace const place(LatticePlane(coarse.m, lattice, k + c / 4), LatticePlaneNode(coarse.m, i + c % 2, j + c / 2 % 2));
    corner[c] = e[place.on_rim ? coarse.rim_unknowns[place.at] : place.at];
  }
  std::int32_t const line = fine.m - 2;
  V* const first = x + fine.inner_unknown(lattice, 2 * i, 2 * j, 2 * k);  // where it is inside
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    int const dx = c % 2, dy = c / 2 % 2, dz = c / 4;
    if ((dx == 0 && i == 0) || (dy == 0 && j == 0) || (dz == 0 && k == 0))
      continue;
    V sum = 0;
#pragma unroll
    for (int other = 0; other < 8; ++other)
      if ((other & ~c) == 0)  // the corners around it
        sum += corner[other];
    first[(dz * line + dy) * line + dx] += static_cast<V>(weight_at(dx) * weight_at(dy) * weight_at(dz)) * sum;
  }
}

/// Launches kernel(arguments) with a thread for each of n, in `rows` rows of blocks.
template <class... Parameters, class... Arguments>
void launch(Context& context, std::int64_t n, unsigned rows, void (*kernel)(Parameters...), Arguments... arguments) {
  if (n == 0)
    return;
  kernel<<<dim3(cuda::n_blocks(n, threads), rows), threads, 0, cuda::of(context).stream()>>>(arguments...);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

template <class V>
class CudaLatticeLevels final : public LatticeLevelKernels<V> {
public:
  void find_free(Context& context, LatticeView const& lattices, V const* values, std::uint8_t* free) const override {
    launch(context, lattices.n_unknowns, 1, free_kernel<V>, lattices, values, free);
  }
  void copy_free(Context& context, LatticeView const& fine, LatticeView const& coarse, std::uint8_t const* free_of_fine,
                 std::uint8_t* free_of_coarse) const override {
    launch(context, coarse.n_unknowns, 1, copy_free_kernel, fine, coarse, free_of_fine, free_of_coarse);
  }
  void coarsen(Context& context, LatticeLevels const& levels, V const* values, V* coarse_values) const override {
    std::int64_t const inner = levels.coarse.n_inner();
    [&]<int... D>(std::integer_sequence<int, D...>) {
      (launch(context, inner, 1, coarsen_inner_kernel<D, V>, levels, values, coarse_values), ...);
    }
    (std::make_integer_sequence<int, half_stencil::diagonals>());
    launch(context, 2 * levels.coarse.n_lattices * levels.coarse.rim().size(), half_stencil::diagonals, coarsen_rim_kernel<V>,
           levels, values, coarse_values);
  }
  void merge(Context& context, LatticeMerge const& merge, V const* of_pieces, V* values) const override {
    std::int64_t const m = merge.nodes();
    launch(context, merge.n_lattices * m * m * m, half_stencil::diagonals, merge_kernel<V>, merge, of_pieces, values);
  }
  void restrict_residual(Context& context, LatticeLevels const& levels, V const* r, V const* diagonal, V factor, V* b, V* x,
                         std::int32_t const* stop) const override {
    unsigned const inside = cuda::n_blocks(levels.coarse.n_inner(), threads);
    launch(context, threads * (inside + std::int64_t{cuda::n_blocks(levels.coarse.n_rim(), threads / 32)}), 1, restrict_kernel<V>,
           levels, inside, r, diagonal, factor, b, x, stop);
  }
  void prolong(Context& context, LatticeLevels const& levels, V const* e, V* x, std::int32_t const* stop) const override {
    std::int64_t const cells = levels.coarse.cells;
    unsigned const of_cells = cuda::n_blocks(levels.coarse.n_lattices * cells * cells * cells, threads);
    launch(context, threads * (of_cells + std::int64_t{cuda::n_blocks(levels.fine.n_rim(), threads)}), 1, prolong_kernel<V>, levels,
           of_cells, e, x, stop);
  }
};

}  // namespace

template <>
LatticeLevelKernels<float> const& LatticeLevelKernels<float>::cuda() {
  static CudaLatticeLevels<float> const kernels;
  return kernels;
}
template <>
LatticeLevelKernels<double> const& LatticeLevelKernels<double>::cuda() {
  static CudaLatticeLevels<double> const kernels;
  return kernels;
}

}  // namespace poisson
