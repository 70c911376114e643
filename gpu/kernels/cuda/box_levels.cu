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
__device__ bool own_node(BoxLevel const& level, Node& node) {
  node.at = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (node.at >= level.n())
    return false;
  auto const at = static_cast<std::uint32_t>(node.at), line = at / static_cast<std::uint32_t>(level.nodes[0]);
  node.i = static_cast<std::int32_t>(at - line * static_cast<std::uint32_t>(level.nodes[0]));
  node.j = static_cast<std::int32_t>(line % static_cast<std::uint32_t>(level.nodes[1]));
  node.k = static_cast<std::int32_t>(line / static_cast<std::uint32_t>(level.nodes[1]));
  return true;
}

__global__ void round_kernel(std::int64_t n, double const* __restrict__ values, float* __restrict__ rounded) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n)
    rounded[i] = static_cast<float>(values[i]);
}

/// largest[0] and [1] hold the bits of non-negative floats, which compare as integers do.
__global__ void __launch_bounds__(threads) analyse_kernel(BoxLevel const level, std::uint8_t* free, double* couplings,
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

__global__ void free_kernel(BoxLevel const fine, BoxCoarsening const coarsening, BoxLevel const coarse, float* weights,
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
__global__ void __launch_bounds__(threads)
    weights_kernel(BoxLevel const fine, BoxCoarsening const coarsening, BoxLevel const coarse, int between, float* weights) {
  int const place = static_cast<int>(blockIdx.y), distance[3] = {place % 3 - 1, place / 3 % 3 - 1, place / 9 - 1};
  if ((distance[0] != 0) + (distance[1] != 0) + (distance[2] != 0) != between)
    return;
  Node node;
  if (!own_node(coarse, node))
    return;
  std::int32_t const c[3] = {node.i, node.j, node.k};
  weights[place * coarse.n() + node.at] = interpolation_weight(fine, coarsening, coarse, c, distance);
}

__global__ void __launch_bounds__(threads)
    coarsen_kernel(BoxLevel const fine, BoxCoarsening const coarsening, BoxLevel const coarse, float* __restrict__ values) {
  Node node;
  if (!own_node(coarse, node))
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
    values[s * coarse.n() + node.at] = static_cast<float>(row[s]);
}

template <class T>
__global__ void begin_kernel(std::int64_t n, float const* __restrict__ diagonal, T const* __restrict__ r, float factor,
                             float* __restrict__ b, float* __restrict__ d, float* __restrict__ x, std::int32_t const* stop) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= n || *stop != 0)
    return;
  auto const own = static_cast<float>(r[i]);
  float const direction = factor * own / diagonal[i];
  b[i] = own;
  d[i] = direction;
  x[i] = direction;
}

__global__ void step_kernel(std::int64_t n, float const* __restrict__ diagonal, float const* __restrict__ b,
                            float const* __restrict__ y, float keep, float factor, float* __restrict__ d, float* __restrict__ x,
                            std::int32_t const* stop) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= n || *stop != 0)
    return;
  float direction = factor * (b[i] - y[i]) / diagonal[i];
  if (keep != 0)
    direction += keep * d[i];
  d[i] = direction;
  x[i] += direction;
}

__global__ void restrict_kernel(BoxLevel const fine, BoxCoarsening const coarsening, BoxLevel const coarse,
                                float const* __restrict__ b, float const* __restrict__ y, float* __restrict__ r,
                                std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(coarse, node))
    return;
  std::int32_t const c[3] = {node.i, node.j, node.k};
  r[node.at] = restricted(fine, coarsening, coarse, b, y, c);
}

__global__ void prolong_kernel(BoxLevel const fine, BoxCoarsening const coarsening, BoxLevel const coarse,
                               float const* __restrict__ e, float* __restrict__ x, std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(fine, node) || fine.free[node.at] == 0)
    return;
  x[node.at] += prolonged(fine, coarsening, coarse, e, node.i, node.j, node.k);
}

/// A warp a row.
__global__ void dense_kernel(std::int64_t n, float const* __restrict__ m, float const* __restrict__ b, float* __restrict__ x,
                             std::int32_t const* stop) {
  std::int64_t const row = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
  if (row >= n || *stop != 0)
    return;
  float sum = 0;
  for (std::int64_t j = threadIdx.x % 32; j < n; j += 32)
    sum += m[row * n + j] * b[j];
  for (int lane = 16; lane > 0; lane /= 2)
    sum += __shfl_down_sync(0xffffffffU, sum, static_cast<unsigned>(lane));
  if (threadIdx.x % 32 == 0)
    x[row] = sum;
}

__global__ void widen_kernel(std::int64_t n, float const* __restrict__ x, double* __restrict__ z, std::int32_t const* stop) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n && *stop == 0)
    z[i] = static_cast<double>(x[i]);
}

/// Launches kernel(arguments) with a thread for each of n.
template <class... Parameters, class... Arguments>
void launch(Context& context, std::int64_t n, void (*kernel)(Parameters...), Arguments... arguments) {
  if (n == 0)
    return;
  kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(arguments...);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

class CudaBoxLevels final : public BoxLevelKernels {
public:
  void round(Context& context, BoxLevel const& level, double const* values, float* rounded) const override {
    launch(context, 14 * level.n(), round_kernel, 14 * level.n(), values, rounded);
  }

  BoxLevelAnalysis analyse(Context& context, BoxLevel const& level, std::uint8_t* free) const override {
    auto& device = cuda::of(context);
    Array<double> couplings(context, 3);
    Array<std::int32_t> largest(context, 2);
    couplings.set_zero();
    largest.set_zero();
    launch(context, level.n(), analyse_kernel, level, free, couplings.data(), largest.data(),
           device.partial_sums<double>(3 * std::int64_t{cuda::n_blocks(level.n(), threads)}), device.block_counter());
    BoxLevelAnalysis result;
    std::array<std::int32_t, 2> bits{};
    couplings.download(result.coupling);
    largest.download(bits);
    result.largest = static_cast<double>(std::bit_cast<float>(bits[0]));
    result.bound = static_cast<double>(std::bit_cast<float>(bits[1]));
    return result;
  }

  void coarsen(Context& context, BoxLevel const& fine, BoxCoarsening const& coarsening, BoxLevel const& coarse, float* weights,
               std::uint8_t* free, float* values) const override {
    launch(context, coarse.n(), free_kernel, fine, coarsening, coarse, weights, free);
    for (int between = 1; between <= 3; ++between) {
      dim3 const grid(cuda::n_blocks(coarse.n(), threads), 27);
      weights_kernel<<<grid, threads, 0, cuda::of(context).stream()>>>(fine, coarsening, coarse, between, weights);
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    launch(context, coarse.n(), coarsen_kernel, fine, coarsening, coarse, values);
  }

  void begin(Context& context, BoxLevel const& level, float const* r, float factor, float* b, float* d, float* x,
             std::int32_t const* stop) const override {
    launch(context, level.n(), begin_kernel<float>, level.n(), level.values, r, factor, b, d, x, stop);
  }
  void begin(Context& context, BoxLevel const& level, double const* r, float factor, float* b, float* d, float* x,
             std::int32_t const* stop) const override {
    launch(context, level.n(), begin_kernel<double>, level.n(), level.values, r, factor, b, d, x, stop);
  }
  void step(Context& context, BoxLevel const& level, float const* b, float const* y, float keep, float factor, float* d, float* x,
            std::int32_t const* stop) const override {
    launch(context, level.n(), step_kernel, level.n(), level.values, b, y, keep, factor, d, x, stop);
  }
  void restrict_to(Context& context, BoxLevel const& fine, BoxCoarsening const& coarsening, BoxLevel const& coarse, float const* b,
                   float const* y, float* r, std::int32_t const* stop) const override {
    launch(context, coarse.n(), restrict_kernel, fine, coarsening, coarse, b, y, r, stop);
  }
  void prolong(Context& context, BoxLevel const& fine, BoxCoarsening const& coarsening, BoxLevel const& coarse, float const* e,
               float* x, std::int32_t const* stop) const override {
    launch(context, fine.n(), prolong_kernel, fine, coarsening, coarse, e, x, stop);
  }
  void solve_dense(Context& context, std::int64_t n, float const* m, float const* b, float* x,
                   std::int32_t const* stop) const override {
    launch(context, 32 * n, dense_kernel, n, m, b, x, stop);
  }
  void widen(Context& context, std::int64_t n, float const* x, double* z, std::int32_t const* stop) const override {
    launch(context, n, widen_kernel, n, x, z, stop);
  }
};

}  // namespace

BoxLevelKernels const& BoxLevelKernels::cuda() {
  static CudaBoxLevels const kernels;
  return kernels;
}

}  // namespace poisson
