#include "gpu/kernels/box_levels.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <bit>

namespace poisson {

namespace {

using namespace box_levels;

constexpr int threads = 256;

struct Node {
  std::int64_t at;
  std::int32_t i, j, k;
};
template <class V>
__device__ bool own_node(BoxLevel<V> const& level, Node& node, unsigned block) {
  node.at = std::int64_t{block} * threads + threadIdx.x;
  if (node.at >= level.n())
    return false;
  auto const at = static_cast<std::uint32_t>(node.at), line = at / static_cast<std::uint32_t>(level.nodes[0]);
  node.i = static_cast<std::int32_t>(at - line * static_cast<std::uint32_t>(level.nodes[0]));
  node.j = static_cast<std::int32_t>(line % static_cast<std::uint32_t>(level.nodes[1]));
  node.k = static_cast<std::int32_t>(line / static_cast<std::uint32_t>(level.nodes[1]));
  return true;
}

template <class V>
__device__ bool own_node(BoxLevel<V> const& level, Node& node) {
  return own_node(level, node, blockIdx.x);
}

/// largest[0] and [1] hold the bits of non-negative floats, which compare as integers do.
template <class V>
__global__ void __launch_bounds__(threads) analyse_kernel(BoxLevel<V> const level, std::uint8_t* free, double* couplings,
                                                          std::int32_t* largest, double* partial, unsigned* counter) {
  Node node;
  RowAnalysis row;
  if (own_node(level, node)) {
    row = analyse_row(level, node.i, node.j, node.k);
    free[node.at] = row.free ? 1 : 0;
  }
  float of_warp[2] = {row.largest, row.bound};
  for (int lane = 16; lane > 0; lane /= 2)
    for (float& value : of_warp)
      value = fmaxf(value, __shfl_down_sync(0xffffffffU, value, static_cast<unsigned>(lane)));
  if (threadIdx.x % 32 == 0)
    for (int v = 0; v < 2; ++v)
      atomicMax(largest + v, __float_as_int(of_warp[v]));
  double sums[3] = {row.coupling[0], row.coupling[1], row.coupling[2]};
  if (cuda::grid_sum<threads>(sums, partial, counter))
    for (int d = 0; d < 3; ++d)
      couplings[d] = sums[d];
}

template <class V>
__global__ void free_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse, V* weights,
                            std::uint8_t* free) {
  Node node;
  if (!own_node(coarse, node))
    return;
  free[node.at] = fine.free[fine.number(fine_node(coarsening.halved[0], fine.nodes[0], node.i),
                                        fine_node(coarsening.halved[1], fine.nodes[1], node.j),
                                        fine_node(coarsening.halved[2], fine.nodes[2], node.k))];
  weights[13 * coarse.n() + node.at] = free[node.at];
}

// Blocks that work on the same nodes follow each other, so that what they share is found in L2.

/// Weights of the fine nodes that lie between coarse ones in as many directions; 27 blocks in a row have one place each.
template <class V>
__global__ void __launch_bounds__(threads)
    weights_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse, int between, V* weights) {
  int const place = static_cast<int>(blockIdx.x % 27), distance[3] = {place % 3 - 1, place / 3 % 3 - 1, place / 9 - 1};
  if ((distance[0] != 0) + (distance[1] != 0) + (distance[2] != 0) != between)
    return;
  Node node;
  if (!own_node(coarse, node, blockIdx.x / 27))
    return;
  std::int32_t const c[3] = {node.i, node.j, node.k};
  weights[place * coarse.n() + node.at] = interpolation_weight(fine, coarsening, coarse, c, distance);
}

template <class V>
__global__ void __launch_bounds__(threads)
    coarsen_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse, V* __restrict__ values) {
  Node node;
  if (!own_node(coarse, node) || is_regular(fine, coarsening, node.i, node.j, node.k))
    return;
  double row[14];
  row[0] = 1;
  for (int s = 1; s < 14; ++s)
    row[s] = -0.0;
  if (coarse.free[node.at] != 0) {
    std::int32_t const c[3] = {node.i, node.j, node.k};
    galerkin_row(fine, coarsening, coarse, c, row);
  }
  for (int s = 0; s < 14; ++s)
    values[s * coarse.n() + node.at] = static_cast<V>(row[s]);
}

/// Those of regular nodes; 14 blocks in a row have one diagonal each.
template <class V>
__global__ void __launch_bounds__(threads) regular_coarsen_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening,
                                                                  BoxLevel<V> const coarse, V* __restrict__ values) {
  Node node;
  if (!own_node(coarse, node, blockIdx.x / half_stencil::diagonals) || !is_regular(fine, coarsening, node.i, node.j, node.k))
    return;
  auto const s = static_cast<int>(blockIdx.x % half_stencil::diagonals);
  std::int32_t const c[3] = {node.i, node.j, node.k};
  values[s * coarse.n() + node.at] = static_cast<V>(galerkin_entry(fine, coarsening, coarse, c, s));
}

template <class V>
__global__ void restrict_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse,
                                V const* __restrict__ b, V const* __restrict__ y, V* __restrict__ r, std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(coarse, node))
    return;
  std::int32_t const c[3] = {node.i, node.j, node.k};
  r[node.at] = restricted(fine, coarsening, coarse, b, y, c);
}

/// x += P e at the fine node at the place of a coarse one and at those between that and the next ones. Weights of nodes that are
/// not free are 0.
template <class V>
__global__ void __launch_bounds__(threads)
    prolong_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse, V const* __restrict__ e,
                   V* __restrict__ x, std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(coarse, node))
    return;
  std::int32_t const c[3] = {node.i, node.j, node.k};
  std::int32_t f[3];
  bool between[3], next[3];  // whether there is a node between, and whether another coarse one beyond it
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    f[d] = fine_node(coarsening.halved[d], fine.nodes[d], c[d]);
    between[d] = depends(coarsening.halved[d], fine.nodes[d], f[d], 1);
    next[d] = between[d] && fine.nodes[d] != 2;
  }
  std::int64_t const n = coarse.n(), stride[3] = {1, coarse.nodes[0], std::int64_t{coarse.nodes[0]} * coarse.nodes[1]};
#pragma unroll
  for (int o = 0; o < 8; ++o) {  // bit d: between in direction d
    bool exists = true;
#pragma unroll
    for (int d = 0; d < 3; ++d)
      exists = exists && ((o >> d & 1) == 0 || between[d]);
    if (!exists)
      continue;
    V sum = 0;
#pragma unroll
    for (int b = 0; b < 8; ++b) {  // bit d: the next coarse node in direction d
      if ((b & ~o) != 0)
        continue;
      bool there = true;
      int place = 13;
      std::int64_t at = node.at;
      constexpr int of_place[3] = {1, 3, 9};
#pragma unroll
      for (int d = 0; d < 3; ++d) {
        there = there && ((b >> d & 1) == 0 || next[d]);
        place += of_place[d] * ((o >> d & 1) - 2 * (b >> d & 1));
        at += (b >> d & 1) * stride[d];
      }
      if (there)
        sum += coarsening.weights[place * n + at] * e[at];
    }
    x[fine.number(f[0] + (o & 1), f[1] + (o >> 1 & 1), f[2] + (o >> 2))] += sum;
  }
}

/// Launches kernel(arguments) with a thread for each of n.
template <class... Parameters, class... Arguments>
void launch(Context& context, std::int64_t n, void (*kernel)(Parameters...), Arguments... arguments) {
  if (n == 0)
    return;
  kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(arguments...);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

template <class V>
class CudaBoxLevels final : public BoxLevelKernels<V> {
public:
  BoxLevelAnalysis analyse(Context& context, BoxLevel<V> const& level, std::uint8_t* free) const override {
    auto& device = cuda::of(context);
    Array<double> couplings(context, 3);
    Array<std::int32_t> largest(context, 2);
    couplings.set_zero();
    largest.set_zero();
    launch(context, level.n(), analyse_kernel<V>, level, free, couplings.data(), largest.data(),
           device.partial_sums<double>(3 * std::int64_t{cuda::n_blocks(level.n(), threads)}), device.block_counter());
    BoxLevelAnalysis result;
    std::array<std::int32_t, 2> bits{};
    couplings.download(result.coupling);
    largest.download(bits);
    result.largest = static_cast<double>(std::bit_cast<float>(bits[0]));
    result.bound = static_cast<double>(std::bit_cast<float>(bits[1]));
    return result;
  }

  void coarsen(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, V* weights,
               std::uint8_t* free, V* values) const override {
    launch(context, coarse.n(), free_kernel<V>, fine, coarsening, coarse, weights, free);
    for (int between = 1; between <= 3; ++between) {
      unsigned const grid = 27 * static_cast<unsigned>(cuda::n_blocks(coarse.n(), threads));
      weights_kernel<<<grid, threads, 0, cuda::of(context).stream()>>>(fine, coarsening, coarse, between, weights);
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    unsigned const blocks = half_stencil::diagonals * static_cast<unsigned>(cuda::n_blocks(coarse.n(), threads));
    regular_coarsen_kernel<<<blocks, threads, 0, cuda::of(context).stream()>>>(fine, coarsening, coarse, values);
    POISSON_CUDA_CHECK(cudaGetLastError());
    launch(context, coarse.n(), coarsen_kernel<V>, fine, coarsening, coarse, values);
  }

  void restrict_residual(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                         V const* b, V const* y, V* r, std::int32_t const* stop) const override {
    launch(context, coarse.n(), restrict_kernel<V>, fine, coarsening, coarse, b, y, r, stop);
  }
  void prolong(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, V const* e,
               V* x, std::int32_t const* stop) const override {
    launch(context, coarse.n(), prolong_kernel<V>, fine, coarsening, coarse, e, x, stop);
  }
};

template <class V>
BoxLevelKernels<V> const& kernels() {
  static CudaBoxLevels<V> const instance;
  return instance;
}

}  // namespace

template <>
BoxLevelKernels<float> const& BoxLevelKernels<float>::cuda() {
  return kernels<float>();
}
template <>
BoxLevelKernels<double> const& BoxLevelKernels<double>::cuda() {
  return kernels<double>();
}

}  // namespace poisson
