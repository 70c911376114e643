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
__device__ bool own_node(BoxLevel<V> const& level, Node& node) {
  node.at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (node.at >= level.n())
    return false;
  auto const at = static_cast<std::uint32_t>(node.at), line = at / static_cast<std::uint32_t>(level.nodes[0]);
  node.i = static_cast<std::int32_t>(at - line * static_cast<std::uint32_t>(level.nodes[0]));
  node.j = static_cast<std::int32_t>(line % static_cast<std::uint32_t>(level.nodes[1]));
  node.k = static_cast<std::int32_t>(line / static_cast<std::uint32_t>(level.nodes[1]));
  return true;
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

/// Weights of the fine nodes that lie between coarse ones in as many directions; blockIdx.y is their place.
template <class V>
__global__ void __launch_bounds__(threads)
    weights_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse, int between, V* weights) {
  int const place = static_cast<int>(blockIdx.y), distance[3] = {place % 3 - 1, place / 3 % 3 - 1, place / 9 - 1};
  if ((distance[0] != 0) + (distance[1] != 0) + (distance[2] != 0) != between)
    return;
  Node node;
  if (!own_node(coarse, node))
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

/// Those of regular nodes; blockIdx.y is the diagonal.
template <class V>
__global__ void __launch_bounds__(threads) regular_coarsen_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening,
                                                                  BoxLevel<V> const coarse, V* __restrict__ values) {
  Node node;
  if (!own_node(coarse, node) || !is_regular(fine, coarsening, node.i, node.j, node.k))
    return;
  auto const s = static_cast<int>(blockIdx.y);
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

template <class V>
__global__ void prolong_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse,
                               V const* __restrict__ e, V* __restrict__ x, std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(fine, node) || fine.free[node.at] == 0)
    return;
  x[node.at] += prolonged(fine, coarsening, coarse, e, node.i, node.j, node.k);
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
      dim3 const grid(cuda::n_blocks(coarse.n(), threads), 27);
      weights_kernel<<<grid, threads, 0, cuda::of(context).stream()>>>(fine, coarsening, coarse, between, weights);
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    dim3 const diagonals(cuda::n_blocks(coarse.n(), threads), half_stencil::diagonals);
    regular_coarsen_kernel<<<diagonals, threads, 0, cuda::of(context).stream()>>>(fine, coarsening, coarse, values);
    POISSON_CUDA_CHECK(cudaGetLastError());
    launch(context, coarse.n(), coarsen_kernel<V>, fine, coarsening, coarse, values);
  }

  void restrict_residual(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                         V const* b, V const* y, V* r, std::int32_t const* stop) const override {
    launch(context, coarse.n(), restrict_kernel<V>, fine, coarsening, coarse, b, y, r, stop);
  }
  void prolong(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, V const* e,
               V* x, std::int32_t const* stop) const override {
    launch(context, fine.n(), prolong_kernel<V>, fine, coarsening, coarse, e, x, stop);
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
