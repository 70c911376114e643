#include "gpu/kernels/box_levels.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>
#include <bit>
#include <span>

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
    bool const inner = node.i > 0 && node.j > 0 && node.k > 0 && node.i + 1 < level.nodes[0] && node.j + 1 < level.nodes[1] &&
                       node.k + 1 < level.nodes[2];
    row = inner ? analyse_row<V>([&](int dx, int dy, int dz) { return entries_towards(level, dx, dy, dz)[node.at]; })
                : analyse_row(level, node.i, node.j, node.k);
    free[node.at] = row.free ? 1 : 0;
  }
  __shared__ std::int32_t of_block[2];
  if (threadIdx.x < 2)
    of_block[threadIdx.x] = 0;
  __syncthreads();
  float of_warp[2] = {row.largest, row.bound};
  for (int lane = 16; lane > 0; lane /= 2)
    for (float& value : of_warp)
      value = fmaxf(value, __shfl_down_sync(0xffffffffU, value, static_cast<unsigned>(lane)));
  if (threadIdx.x % 32 == 0)
    for (int v = 0; v < 2; ++v)
      atomicMax(of_block + v, __float_as_int(of_warp[v]));
  __syncthreads();
  if (threadIdx.x < 2)
    atomicMax(largest + threadIdx.x, of_block[threadIdx.x]);
  double sums[3] = {row.coupling[0], row.coupling[1], row.coupling[2]};
  if (cuda::grid_sum<threads>(sums, partial, counter))
    for (int d = 0; d < 3; ++d)
      couplings[d] = sums[d];
}

template <class V>
__global__ void __launch_bounds__(threads) inverse_roots_kernel(std::int64_t n, V const* __restrict__ diagonal, V* __restrict__ z) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    z[i] = V(1) / sqrt(diagonal[i]);
}

/// *largest holds the bits of a float that is not negative.
template <class V>
__global__ void __launch_bounds__(threads)
    bound_kernel(BoxLevel<V> const level, V const* __restrict__ z, V* __restrict__ y, std::int32_t* largest) {
  Node node;
  float ratio = 0;
  if (own_node(level, node)) {
    bool const inner = node.i > 0 && node.j > 0 && node.k > 0 && node.i + 1 < level.nodes[0] && node.j + 1 < level.nodes[1] &&
                       node.k + 1 < level.nodes[2];
    V own = 0;
    if (inner) {
      std::int64_t const line = level.nodes[0], plane = line * level.nodes[1];
#pragma unroll
      for (int dz = -1; dz <= 1; ++dz)
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
          for (int dx = -1; dx <= 1; ++dx)
            own += abs(entries_towards(level, dx, dy, dz)[node.at]) * z[node.at + dz * plane + dy * line + dx];
      own /= level.values[node.at];
    } else
      own = absolute_row(level, node.i, node.j, node.k, z);
    y[node.at] = own;
    ratio = static_cast<float>(own / z[node.at]);
  }
  for (int lane = 16; lane > 0; lane /= 2)
    ratio = fmaxf(ratio, __shfl_down_sync(0xffffffffU, ratio, static_cast<unsigned>(lane)));
  if (threadIdx.x % 32 == 0)
    atomicMax(largest, __float_as_int(ratio));
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

/// interpolation_weight for a regular coarse node, with every distance known when it is compiled.
template <int place, class V>
__device__ V regular_weight(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                            Node const& node) {
  constexpr int x = place % 3 - 1, y = place / 3 % 3 - 1, z = place / 9 - 1, between = (x != 0) + (y != 0) + (z != 0);
  if ((x != 0 && !coarsening.halved[0]) || (y != 0 && !coarsening.halved[1]) || (z != 0 && !coarsening.halved[2]))
    return 0;
  std::int64_t const at =
      fine.number((coarsening.halved[0] ? 2 * node.i : node.i) + x, (coarsening.halved[1] ? 2 * node.j : node.j) + y,
                  (coarsening.halved[2] ? 2 * node.k : node.k) + z);
  bool const free = fine.free[at] != 0 && coarse.free[node.at] != 0;
  V center = 0, sum = 0;
#pragma unroll
  for (int dz = -1; dz <= 1; ++dz)
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
      for (int dx = -1; dx <= 1; ++dx) {
        bool const here = (x == 0 || dx == 0) && (y == 0 || dy == 0) && (z == 0 || dz == 0);
        bool const towards = (x == 0 || dx == 0 || dx == -x) && (y == 0 || dy == 0 || dy == -y) && (z == 0 || dz == 0 || dz == -z);
        if (!towards)
          continue;
        V const v = entries_towards(fine, dx, dy, dz)[at];
        int const left = 13 + (dx == 0 ? x : 0) + 3 * (dy == 0 ? y : 0) + 9 * (dz == 0 ? z : 0);
        if (here)
          center += v;
        else
          sum += left == 13 ? v : v * coarsening.weights[left * coarse.n() + node.at];
      }
  return free ? admissible_weight(-sum, center, between) : V(0);
}
template <int first, class V>
__device__ V weight_at(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, Node const& node,
                       int place) {
  if constexpr (first + 1 < 27)
    if (place != first)
      return weight_at<first + 1>(fine, coarsening, coarse, node, place);
  return regular_weight<first>(fine, coarsening, coarse, node);
}

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
  weights[place * coarse.n() + node.at] = is_regular(fine, coarsening, node.i, node.j, node.k)
                                              ? weight_at<0>(fine, coarsening, coarse, node, place)
                                              : interpolation_weight(fine, coarsening, coarse, c, distance);
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

/// galerkin_entry where all directions are halved, with every distance known when it is compiled: no index is computed twice.
template <int s, class V>
__device__ double galerkin_entry_unrolled(BoxLevel<V> const& fine, V const* __restrict__ weights, BoxLevel<V> const& coarse,
                                          Node const& node) {
  constexpr int tx = -half_stencil::dx(s), ty = -half_stencil::dy(s), tz = -half_stencil::dz(s);
  std::int64_t const n = coarse.n(), n_fine = fine.n(), line = fine.nodes[0], plane = line * fine.nodes[1];
  std::int64_t const to = node.at + tx + (std::int64_t{tz} * coarse.nodes[1] + ty) * coarse.nodes[0];
  if (coarse.free[node.at] == 0 || coarse.free[to] == 0)
    return s == 0 ? 1 : -0.0;
  V const* const values = fine.values + fine.number(2 * node.i, 2 * node.j, 2 * node.k);
  V const *const own = weights + node.at, *const other = weights + to;
  double sum = 0;
#pragma unroll
  for (int dz = -1; dz <= 1; ++dz)
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
      for (int dx = -1; dx <= 1; ++dx) {
        V of_node = 0;  // few terms; in double their conversion would take as long as all else
#pragma unroll
        for (int ez = -1; ez <= 1; ++ez)
#pragma unroll
          for (int ey = -1; ey <= 1; ++ey)
#pragma unroll
            for (int ex = -1; ex <= 1; ++ex) {
              int const az = dz + ez - 2 * tz, ay = dy + ey - 2 * ty, ax = dx + ex - 2 * tx;
              if (az < -1 || az > 1 || ay < -1 || ay > 1 || ax < -1 || ax > 1)
                continue;
              int const step = 9 * ez + 3 * ey + ex, last_x = dx + (step > 0 ? ex : 0), last_y = dy + (step > 0 ? ey : 0),
                        last_z = dz + (step > 0 ? ez : 0);
              V const v = values[(step > 0 ? step : -step) * n_fine + last_z * plane + last_y * line + last_x];
              of_node += v * other[(13 + 9 * az + 3 * ay + ax) * n];
            }
        sum += static_cast<double>(own[(13 + 9 * dz + 3 * dy + dx) * n]) * static_cast<double>(of_node);
      }
  return sum;
}
template <int s, class V>
__device__ double unrolled_entry(BoxLevel<V> const& fine, V const* weights, BoxLevel<V> const& coarse, Node const& node,
                                 int diagonal) {
  if constexpr (s + 1 < half_stencil::diagonals)
    if (diagonal != s)
      return unrolled_entry<s + 1>(fine, weights, coarse, node, diagonal);
  return galerkin_entry_unrolled<s>(fine, weights, coarse, node);
}

/// Those of regular nodes; 14 blocks in a row have one diagonal each.
template <class V>
__global__ void __launch_bounds__(threads, 2) regular_coarsen_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening,
                                                                     BoxLevel<V> const coarse, V* __restrict__ values) {
  Node node;
  if (!own_node(coarse, node, blockIdx.x / half_stencil::diagonals) || !is_regular(fine, coarsening, node.i, node.j, node.k))
    return;
  auto const s = static_cast<int>(blockIdx.x % half_stencil::diagonals);
  std::int32_t const c[3] = {node.i, node.j, node.k};
  bool const all_halved = coarsening.halved[0] && coarsening.halved[1] && coarsening.halved[2];
  values[s * coarse.n() + node.at] = static_cast<V>(all_halved ? unrolled_entry<0>(fine, coarsening.weights, coarse, node, s)
                                                               : galerkin_entry(fine, coarsening, coarse, c, s));
}

template <class V>
__global__ void restrict_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse,
                                V const* __restrict__ r, V const* __restrict__ diagonal, V factor, V* __restrict__ b,
                                V* __restrict__ x, std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(coarse, node))
    return;
  std::int32_t const c[3] = {node.i, node.j, node.k};
  V const own = restricted(fine, coarsening, coarse, r, c);
  b[node.at] = own;
  x[node.at] = factor * own / diagonal[node.at];
}

/// Columns as an argument of a kernel.
template <class Column>
struct ColumnList {
  Column of[most_columns];
  int count;

  explicit ColumnList(std::span<Column const> columns) : of{}, count(static_cast<int>(columns.size())) {
    std::copy(columns.begin(), columns.end(), of);
  }
};

/// The weights of a node are read from memory for the first column, and found in L1 by the others.
template <class V>
__global__ void restrict_columns_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse,
                                        V const* __restrict__ diagonal, V factor, ColumnList<RestrictedColumn<V>> const columns) {
  Node node;
  if (!own_node(coarse, node))
    return;
  std::int32_t const c[3] = {node.i, node.j, node.k};
  for (int j = 0; j < columns.count; ++j) {
    RestrictedColumn<V> const column = columns.of[j];
    if (*column.stop != 0)
      continue;
    V const own = restricted(fine, coarsening, coarse, column.r, c);
    column.b[node.at] = own;
    column.x[node.at] = factor * own / diagonal[node.at];
  }
}

/// x += P e at the fine node at the place of a coarse one and at those between that and the next ones. Weights of nodes that are
/// not free are 0.
template <class V>
class Prolongation {
public:
  __device__ __forceinline__ Prolongation(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                                          Node const& node) {
    std::int32_t const c[3] = {node.i, node.j, node.k};
    std::int32_t f[3];
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      f[d] = fine_node(coarsening.halved[d], fine.nodes[d], c[d]);
      between_[d] = depends(coarsening.halved[d], fine.nodes[d], f[d], 1);
      next_[d] = between_[d] && fine.nodes[d] != 2;
    }
    coarse_ = {node.at, coarse.nodes[0], std::int64_t{coarse.nodes[0]} * coarse.nodes[1]};
    fine_ = {fine.number(f[0], f[1], f[2]), fine.nodes[0], std::int64_t{fine.nodes[0]} * fine.nodes[1]};
    weights_ = coarsening.weights;
    n_ = coarse.n();
  }

  // A fine node o: bit d says that it is between coarse ones in direction d. A coarse node b: bit d says that it is the next one
  // there. Fine nodes depend on coarse ones with none but their bits.

  [[nodiscard]] __device__ __forceinline__ bool has(int o, int b) const {
    return (b & ~o) == 0 && has(between_, o) && has(next_, b);
  }
  [[nodiscard]] __device__ __forceinline__ V weight(int o, int b) const {
    int const place = 13 + (o & 1) - 2 * (b & 1) + 3 * ((o >> 1 & 1) - 2 * (b >> 1 & 1)) + 9 * ((o >> 2) - 2 * (b >> 2));
    return weights_[place * n_ + at(coarse_, b)];
  }
  /// weight_of(o, b) is that weight, for instance from registers.
  template <class WeightOf>
  __device__ __forceinline__ void add(V const* __restrict__ e, V* __restrict__ x, WeightOf const& weight_of) const {
    V corners[8];
#pragma unroll
    for (int b = 0; b < 8; ++b)
      corners[b] = has(next_, b) ? e[at(coarse_, b)] : V(0);
#pragma unroll
    for (int o = 0; o < 8; ++o)
      if (has(between_, o)) {
        V sum = 0;
#pragma unroll
        for (int b = 0; b < 8; ++b)
          if (has(o, b))
            sum += weight_of(o, b) * corners[b];
        x[at(fine_, o)] += sum;
      }
  }

private:
  struct Places {
    std::int64_t first, line, plane;
  };
  /// The node at one step in every direction d whose bit is set.
  [[nodiscard]] static __device__ __forceinline__ std::int64_t at(Places const& places, int bits) {
    return places.first + (bits & 1) + (bits >> 1 & 1) * places.line + (bits >> 2) * places.plane;
  }
  [[nodiscard]] static __device__ __forceinline__ bool has(bool const (&directions)[3], int bits) {
    return ((bits & 1) == 0 || directions[0]) && ((bits >> 1 & 1) == 0 || directions[1]) && ((bits >> 2) == 0 || directions[2]);
  }

  bool between_[3], next_[3];  // whether there is a node between, and whether another coarse one beyond it
  Places coarse_, fine_;
  V const* __restrict__ weights_;
  std::int64_t n_;
};
template <class V>
__global__ void __launch_bounds__(threads)
    prolong_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse, V const* __restrict__ e,
                   V* __restrict__ x, std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(coarse, node))
    return;
  Prolongation<V> const prolongation(fine, coarsening, coarse, node);
  prolongation.add(e, x, [&](int o, int b) { return prolongation.weight(o, b); });
}
/// The weights of a node are read once for all columns.
template <class V>
__global__ void __launch_bounds__(threads)
    prolong_columns_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse,
                           ColumnList<ProlongedColumn<V>> const columns) {
  Node node;
  if (!own_node(coarse, node))
    return;
  Prolongation<V> const prolongation(fine, coarsening, coarse, node);
  V weights[8][8];
#pragma unroll
  for (int o = 0; o < 8; ++o)
#pragma unroll
    for (int b = 0; b < 8; ++b)
      if (prolongation.has(o, b))
        weights[o][b] = prolongation.weight(o, b);
  for (int j = 0; j < columns.count; ++j)
    if (ProlongedColumn<V> const column = columns.of[j]; *column.stop == 0)
      prolongation.add(column.e, column.x, [&](int o, int b) { return weights[o][b]; });
}

template <class V>
__global__ void __launch_bounds__(threads)
    restrict_linearly_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse,
                             V const* __restrict__ r, V const* __restrict__ diagonal, V factor, V* __restrict__ b,
                             V* __restrict__ x, std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(coarse, node))
    return;
  V const own = restricted_linearly(fine, coarsening, coarse, r, node.i, node.j, node.k);
  b[node.at] = own;
  x[node.at] = factor * own / diagonal[node.at];
}

/// The same places as in prolong_kernel.
template <class V>
__global__ void __launch_bounds__(threads)
    prolong_linearly_kernel(BoxLevel<V> const fine, BoxCoarsening<V> const coarsening, BoxLevel<V> const coarse,
                            V const* __restrict__ e, V* __restrict__ x, std::int32_t const* stop) {
  Node node;
  if (*stop != 0 || !own_node(coarse, node))
    return;
  bool const in_x = coarsening.halved[0] && node.i + 1 < coarse.nodes[0],
             in_y = coarsening.halved[1] && node.j + 1 < coarse.nodes[1],
             in_z = coarsening.halved[2] && node.k + 1 < coarse.nodes[2];
  std::int64_t const line = fine.nodes[0], plane = line * fine.nodes[1];
  std::int64_t const to_y = in_y ? coarse.nodes[0] : 0, to_z = in_z ? std::int64_t{coarse.nodes[0]} * coarse.nodes[1] : 0;
  V corner[2][2][2];
#pragma unroll
  for (int z = 0; z < 2; ++z)
#pragma unroll
    for (int y = 0; y < 2; ++y)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        corner[z][y][i] = e[node.at + z * to_z + y * to_y + (in_x ? i : 0)];
  V* const out = x + fine.number(coarsening.halved[0] ? 2 * node.i : node.i, coarsening.halved[1] ? 2 * node.j : node.j,
                                 coarsening.halved[2] ? 2 * node.k : node.k);
  constexpr V half = 0.5;
#pragma unroll
  for (int z = 0; z < 2; ++z)
#pragma unroll
    for (int y = 0; y < 2; ++y) {
      if ((z == 1 && !in_z) || (y == 1 && !in_y))
        continue;
      V ends[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        V const lower = y == 0 ? corner[0][0][i] : half * (corner[0][0][i] + corner[0][1][i]);
        V const upper = y == 0 ? corner[1][0][i] : half * (corner[1][0][i] + corner[1][1][i]);
        ends[i] = z == 0 ? lower : half * (lower + upper);
      }
      V* const here = out + z * plane + y * line;
      here[0] += ends[0];
      if (in_x)
        here[1] += half * (ends[0] + ends[1]);
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

  void inverse_roots(Context& context, std::int64_t n, V const* diagonal, V* z) const override {
    launch(context, n, inverse_roots_kernel<V>, n, diagonal, z);
  }

  double bound(Context& context, BoxLevel<V> const& level, V const* z, V* y) const override {
    Array<std::int32_t> largest(context, 1);
    largest.set_zero();
    launch(context, level.n(), bound_kernel<V>, level, z, y, largest.data());
    std::array<std::int32_t, 1> bits{};
    largest.download(bits);
    return static_cast<double>(std::bit_cast<float>(bits[0]));
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
                         V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    launch(context, coarse.n(), coarsening.weights == nullptr ? restrict_linearly_kernel<V> : restrict_kernel<V>, fine, coarsening,
           coarse, r, diagonal, factor, b, x, stop);
  }
  void prolong(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, V const* e,
               V* x, std::int32_t const* stop) const override {
    launch(context, coarse.n(), coarsening.weights == nullptr ? prolong_linearly_kernel<V> : prolong_kernel<V>, fine, coarsening,
           coarse, e, x, stop);
  }
  void restrict_residuals(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                          V const* diagonal, V factor, std::span<RestrictedColumn<V> const> columns) const override {
    if (coarsening.weights == nullptr || columns.size() == 1)
      return BoxLevelKernels<V>::restrict_residuals(context, fine, coarsening, coarse, diagonal, factor, columns);
    launch(context, coarse.n(), restrict_columns_kernel<V>, fine, coarsening, coarse, diagonal, factor,
           ColumnList<RestrictedColumn<V>>(columns));
  }
  void prolong_all(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                   std::span<ProlongedColumn<V> const> columns) const override {
    if (coarsening.weights == nullptr || columns.size() == 1)
      return BoxLevelKernels<V>::prolong_all(context, fine, coarsening, coarse, columns);
    launch(context, coarse.n(), prolong_columns_kernel<V>, fine, coarsening, coarse, ColumnList<ProlongedColumn<V>>(columns));
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
