#include "gpu/kernels/lattice_half_cds.hpp"

#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/half_cds_march.cuh"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace poisson {

namespace {

// Large lattices are marched through (half_cds_march.cuh), when all of them together are beyond L2. Everything else takes one
// thread a node here.

constexpr int threads = 256;

/// How nodes are shared out: a unit of so many lattices has a number of blocks of its own, so that threads divide 32-bit numbers
/// only, and small lattices still fill blocks.
struct Tiling {
  unsigned lattices, blocks;  ///< of a unit
  unsigned units;
  [[nodiscard]] unsigned grid() const { return units * blocks; }
};

Tiling tiling_of(LatticeView const& lattices) {
  std::int64_t const nodes = lattices.nodes_of_lattice(), of_unit = std::max<std::int64_t>(1, 4 * threads / nodes);
  return {static_cast<unsigned>(of_unit), cuda::n_blocks(of_unit * nodes, threads),
          static_cast<unsigned>((lattices.n_lattices + of_unit - 1) / of_unit)};
}

/// Calls row(what the lattice's matrix makes of x at a node, x there). Bytes: those of the stored values, twice but for the main
/// diagonal's, once of which from L1 or L2; x and results; of nodes next to the rim or on it 4 for every neighbour on the rim.
template <class T, class Accumulator, class Values, class Row>
__device__ __forceinline__ void multiply_at(LatticeView const& lattices, Values values, ConstPointer<T> x, std::int32_t lattice,
                                            std::int32_t i, std::int32_t j, std::int32_t k, Row const& row) {
  using namespace half_stencil;
  std::int32_t const m = lattices.m, plane = m * m, nodes = plane * m;
  auto const holds = [m](int index) { return index >= 0 && index < m; };

  // x of the neighbours, by ascending place in the box. All entries are looked up first, then all are asked for.
  std::int32_t unknowns[27];
#pragma unroll
  for (int d = 0; d < 27; ++d) {
    int const i2 = i + d % 3 - 1, j2 = j + d / 3 % 3 - 1, k2 = k + d / 9 - 1;
    unknowns[d] = -1;
    if (holds(i2) && holds(j2) && holds(k2)) {
      LatticePlace const place(LatticePlane(m, lattice, k2), LatticePlaneNode(m, i2, j2));
      unknowns[d] = place.on_rim ? __ldg(lattices.rim_unknowns + place.at) : place.at;
    }
  }
  T x_around[27];
#pragma unroll
  for (int d = 0; d < 27; ++d)
    x_around[d] = unknowns[d] >= 0 ? cuda::load_constant(x, unknowns[d]) : T(0);

  std::int64_t const n = lattices.n_lattices * nodes, own = std::int64_t{lattice} * nodes + k * plane + j * m + i;
  Accumulator sum{};
#pragma unroll
  for (int d = 0; d < diagonals; ++d)
    if (unknowns[13 - d] >= 0)
      sum.add(cuda::load_constant(values, d * n + own), x_around[13 - d]);
#pragma unroll
  for (int d = 1; d < diagonals; ++d)
    if (unknowns[13 + d] >= 0)
      sum.add(cuda::load_constant(values, d * n + own + dz(d) * plane + dy(d) * m + dx(d)), x_around[13 + d]);
  row(sum.value(), x_around[13]);
}

/// Calls row(place, what the lattice's matrix makes of x there, x there) for this thread's node, if it has one.
template <class T, class Values, class Row>
__device__ __forceinline__ void for_node(Tiling const& tiling, LatticeView const& lattices, Values values, ConstPointer<T> x,
                                         Row const& row) {
  std::int32_t const m = lattices.m, plane = m * m;
  auto const nodes = static_cast<unsigned>(plane * m);
  unsigned const in_unit = blockIdx.x % tiling.blocks * threads + threadIdx.x, lattice_in_unit = in_unit / nodes;
  auto const lattice = static_cast<std::int32_t>(blockIdx.x / tiling.blocks * tiling.lattices + lattice_in_unit);
  if (lattice_in_unit >= tiling.lattices || lattice >= lattices.n_lattices)
    return;
  auto const node = static_cast<std::int32_t>(in_unit - lattice_in_unit * nodes);
  std::int32_t const k = node / plane, j = node / m - k * m, i = node - (k * m + j) * m;
  multiply_at<T, DotSum<T>>(lattices, values, x, lattice, i, j, k, [&](T sum, T own) {
    row(LatticePlace(LatticePlane(m, lattice, k), LatticePlaneNode(m, i, j)), sum, own);
  });
}

/// y_i = alpha sum + beta y_i of inner nodes; sums of nodes on rims are for the exchange.
template <class T>
struct StoreScaled {
  T alpha, beta;
  Pointer<T> y;
  T* rims;
  __device__ __forceinline__ void operator()(LatticePlace place, T sum, T) const {
    if (place.on_rim)
      rims[place.at] = sum;
    else
      cuda::store_streaming(y, place.at, cuda::combine(alpha, sum, beta, y, place.at));
  }
};

/// The same with alpha = 1 and beta = 0, and adds x_i times the sum of every node.
template <class T>
struct StoreAndAdd {
  Pointer<T> y;
  T* rims;
  DotSum<T>& dot;
  __device__ __forceinline__ void operator()(LatticePlace place, T sum, T x) const {
    if (place.on_rim)
      rims[place.at] = sum;
    else
      cuda::store_streaming(y, place.at, sum);
    dot.add(x, sum);
  }
};

template <class T, class Values>
__global__ void __launch_bounds__(threads)
    product_kernel(Tiling const tiling, LatticeView const lattices, Values values, ConstPointer<T> x, StoreScaled<T> const store) {
  cuda::let_next_start();
  for_node<T>(tiling, lattices, values, x, store);
}

template <class T, class Values>
__global__ void __launch_bounds__(threads)
    product_dot_kernel(Tiling const tiling, LatticeView const lattices, Values values, ConstPointer<T> x, Pointer<T> y, T* rims,
                       T* dot, std::int32_t const* stop, T* partial, unsigned* counter) {
  cuda::let_next_start();
  if (*stop != 0)
    return;
  DotSum<T> sum{};
  for_node<T>(tiling, lattices, values, x, StoreAndAdd<T>{y, rims, sum});
  T sums[1] = {sum.value()};
  if (cuda::grid_sum<threads>(sums, partial, counter))
    *dot = sums[0];
}

template <class Tile, class T, class Stored>
__global__ void __launch_bounds__(Tile::threads, march::Layout<Stored, T, Tile>::blocks_at_once)
    march_product_kernel(march::Box const box, march::LatticeNodes<T> const nodes, Stored const* __restrict__ values,
                         ConstPointer<T> x, StoreScaled<T> const store) {
  cuda::let_next_start();
  march::for_rows<Tile, T>(box, values, x, store, nodes);
}

template <class Tile, class T, class Stored>
__global__ void __launch_bounds__(Tile::threads, march::Layout<Stored, T, Tile>::blocks_at_once)
    march_product_dot_kernel(march::Box const box, march::LatticeNodes<T> const nodes, Stored const* __restrict__ values,
                             ConstPointer<T> x, Pointer<T> y, T* rims, T* dot, std::int32_t const* stop, T* partial,
                             unsigned* counter) {
  cuda::let_next_start();
  if (*stop != 0) {
    cuda::wait_for_last();  // whoever waits for this kernel waits for those ahead of it
    return;
  }
  DotSum<T> sum{};
  march::for_rows<Tile, T>(box, values, x, StoreAndAdd<T>{y, rims, sum}, nodes);
  T sums[1] = {sum.value()};
  if (cuda::grid_sum<Tile::threads>(sums, partial, counter))
    *dot = sums[0];
}

/// rims = x of the nodes on rims, unless `stop` is there and set. Bytes a node: 4, and x twice.
template <class T>
__global__ void __launch_bounds__(threads)
    gather_kernel(LatticeView const lattices, ConstPointer<T> x, Pointer<T> rims, std::int32_t const* stop) {
  cuda::let_next_start();
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= lattices.n_lattices * lattices.rim().size())
    return;
  // Asked for before anybody waits for `stop`.
  std::int32_t const unknown = __ldg(lattices.rim_unknowns + i);
  if (stop == nullptr || *stop == 0)
    store(rims, i, cuda::load_constant(x, unknown));
}

/// x of the nodes on rims, in `rims`. An ordinary launch: what was enqueued before is done when kernels that follow early start.
template <class T>
march::LatticeNodes<T> gather(cuda::CudaContext const& device, LatticeView const& lattices, ConstPointer<T> x, Pointer<T> rims,
                              std::int32_t const* stop) {
  gather_kernel<T><<<cuda::n_blocks(lattices.n_lattices * lattices.rim().size(), threads), threads, 0, device.stream()>>>(
      lattices, x, rims, stop);
  POISSON_CUDA_CHECK(cudaGetLastError());
  return {lattices.m, rims};
}

/// y = alpha (the sums of rims and `added`, added up) + beta y for the unknowns on rims, unless `stop` is there and set. Bytes per
/// unknown: 8, y, and 4 and a T for every copy.
template <class T>
__global__ void __launch_bounds__(threads) exchange_kernel(LatticeView const lattices, T const* rims, ConstPointer<T> added,
                                                           T alpha, T beta, Pointer<T> y, std::int32_t const* stop) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= lattices.n_rim())
    return;
  // Nearly all unknowns have one copy or two. Both are asked for at once, a single one twice, and before anybody waits for `stop`.
  std::int64_t const first = lattices.copy_offsets[i], end = lattices.copy_offsets[i + 1];
  std::int32_t const place = lattices.copies[first], second_place = lattices.copies[min(first + 1, end - 1)];
  cuda::wait_for_last();
  if (stop != nullptr && *stop != 0)
    return;
  T const copy = cuda::load_from_l2(rims + place), second_copy = cuda::load_from_l2(rims + second_place);
  T sum = T(0) + copy;
  if (first + 1 < end)
    sum = sum + second_copy;
  for (std::int64_t c = first + 2; c < end; ++c)
    sum = sum + cuda::load_from_l2(rims + lattices.copies[c]);
  sum = with_added<T>(sum, added, i);
  std::int64_t const unknown = lattices.n_inner() + i;
  store(y, unknown, cuda::combine(alpha, sum, beta, y, unknown));
}

template <class T>
void exchange(cuda::CudaContext const& device, LatticeHalfCdsView const& a, T const* rims, T alpha, T beta, Pointer<T> y,
              std::int32_t const* stop) {
  ConstPointer<T> const added = take_sums<T>(a);
  if (a.lattices.n_rim() > 0)
    cuda::launch_early(device, exchange_kernel<T>, cuda::n_blocks(a.lattices.n_rim(), threads), threads, 0, a.lattices, rims, added,
                       alpha, beta, y, stop);
}

/// Returns, in the first lane of a warp, what the lattices' matrices make of x at unknown `number` on rims. Each lane has one
/// neighbour.
template <class T, class Accumulator, class Values>
__device__ __forceinline__ T sum_on_rim(LatticeView const& lattices, Values values, ConstPointer<T> x, std::int64_t number) {
  auto const lane = static_cast<int>(threadIdx.x % 32), step = lane - 13;  // 9 dz + 3 dy + dx
  int const dx = lane % 3 - 1, dy = lane / 3 % 3 - 1, dz = lane / 9 - 1;
  std::int32_t const m = lattices.m;
  LatticeRim const rim = lattices.rim();
  auto const rim_size = static_cast<std::uint32_t>(rim.size());
  std::int64_t const n = lattices.n_lattices * lattices.nodes_of_lattice();
  Accumulator sum{};
  for (std::int64_t c = lattices.copy_offsets[number]; c < lattices.copy_offsets[number + 1]; ++c) {
    auto const place = static_cast<std::uint32_t>(lattices.copies[c]);
    auto const lattice = static_cast<std::int32_t>(place / rim_size);
    LatticeRim::Node const node = rim.node(place % rim_size);
    std::int32_t const i = node.i + dx, j = node.j + dy, k = node.k + dz;
    if (lane >= 27 || i < 0 || j < 0 || k < 0 || i >= m || j >= m || k >= m)
      continue;
    LatticePlace const other(LatticePlane(m, lattice, k), LatticePlaneNode(m, i, j));
    std::int64_t const stored_at = step <= 0 ? ((std::int64_t{lattice} * m + node.k) * m + node.j) * m + node.i
                                             : ((std::int64_t{lattice} * m + k) * m + j) * m + i;
    auto const value = cuda::load_constant(values, std::int64_t{step <= 0 ? -step : step} * n + stored_at);
    std::int32_t const at = other.on_rim ? lattices.rim_unknowns[other.at] : other.at;
    sum.add(value, cuda::load_constant(x, at));
  }
  T all = sum.value();
  for (int distance = 16; distance > 0; distance /= 2)
    all = all + cuda::shuffle_down(all, distance);
  return all;
}

/// Calls row(unknown, y, x there), y = A x, for all unknowns of lattices that are in L2, and bound by waiting: with a thread for
/// each unknown inside, in the first blocks, and a warp for each one on rims, a lane for each neighbour.
template <class V, class Values, class Row>
__global__ void __launch_bounds__(threads)
    few_rows_kernel(LatticeView const lattices, unsigned blocks_inside, Values values, V const* added, V const* __restrict__ x,
                    Row const row, std::int32_t const* stop) {
  std::int32_t const stopped = *stop, m = lattices.m;
  if (blockIdx.x < blocks_inside) {
    std::uint32_t const unknown = blockIdx.x * threads + threadIdx.x, line = static_cast<std::uint32_t>(m - 2);
    if (unknown >= lattices.n_inner())
      return;
    std::uint32_t const lines = unknown / line, planes = lines / line, lattice = planes / line;
    auto const index = [line](std::uint32_t all, std::uint32_t before) {
      return static_cast<std::int32_t>(1 + all - before * line);
    };
    auto const terms = row.load(unknown);
    multiply_at<V, PlainSum<V>>(lattices, values, x, static_cast<std::int32_t>(lattice), index(unknown, lines),
                                index(lines, planes), index(planes, lattice), [&](V sum, V own) {
                                  if (stopped == 0)
                                    row(unknown, sum, own, terms);
                                });
    return;
  }
  std::int64_t const number = std::int64_t{blockIdx.x - blocks_inside} * (threads / 32) + threadIdx.x / 32;
  if (number >= lattices.n_rim())
    return;
  std::int64_t const unknown = lattices.n_inner() + number;
  V const sum = sum_on_rim<V, PlainSum<V>>(lattices, values, x, number);
  if (threadIdx.x % 32 == 0 && stopped == 0)
    row(unknown, with_added<V>(sum, added, number), x[unknown]);
}

/// What a march makes of rows: unknowns inside are complete, the rest is for the exchange.
template <class V, class Row>
struct StoreRow {
  Row row;
  V* rims;
  using Terms = typename Row::Terms;
  [[nodiscard]] __device__ __forceinline__ Terms load(LatticePlace place) const {
    return place.on_rim ? Terms{} : row.load(place.at);
  }
  __device__ __forceinline__ void operator()(LatticePlace place, V sum, V x, Terms const& terms) const {
    if (place.on_rim)
      rims[place.at] = sum;
    else
      row(place.at, sum, x, terms);
  }
};

template <class Tile, class V, class Stored, class Row>
__global__ void __launch_bounds__(Tile::threads, march::Layout<Stored, V, Tile>::blocks_at_once)
    march_rows_kernel(march::Box const box, march::LatticeNodes<V> const nodes, Stored const* __restrict__ values, V const* x,
                      StoreRow<V, Row> const store, std::int32_t const* stop) {
  cuda::let_next_start();
  if (*stop != 0) {
    cuda::wait_for_last();
    return;
  }
  march::for_rows<Tile, V>(box, values, x, store, nodes);
}

/// row(unknown, what the lattices have made of it, x there) for the unknowns on rims.
template <class V, class Row>
__global__ void __launch_bounds__(threads) exchange_rows_kernel(LatticeView const lattices, V const* rims, V const* added,
                                                                V const* __restrict__ x, Row const row, std::int32_t const* stop) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= lattices.n_rim())
    return;
  std::int64_t const first = lattices.copy_offsets[i], end = lattices.copy_offsets[i + 1], unknown = lattices.n_inner() + i;
  std::int32_t const place = lattices.copies[first], second_place = lattices.copies[min(first + 1, end - 1)];
  cuda::wait_for_last();
  if (*stop != 0)
    return;
  auto const terms = row.load(unknown);
  V const own = x[unknown], copy = cuda::load_from_l2(rims + place), second_copy = cuda::load_from_l2(rims + second_place);
  V sum = first + 1 < end ? copy + second_copy : copy;
  for (std::int64_t c = first + 2; c < end; ++c)
    sum += cuda::load_from_l2(rims + lattices.copies[c]);
  row(unknown, with_added<V>(sum, added, i), own, terms);
}

/// out_i = what the lattices contribute at unknowns[i], with a warp for each unknown and a lane for each neighbour. Bytes an
/// unknown of one lattice: 27 values, and x there.
template <class T, class Values>
__global__ void __launch_bounds__(threads) sums_of_ghosts_kernel(LatticeView const lattices, Values values, std::int64_t n,
                                                                 std::int32_t const* unknowns, ConstPointer<T> x, T* out) {
  std::int64_t const number = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
  if (number >= n)
    return;
  T const sum = sum_on_rim<T, DotSum<T>>(lattices, values, x, unknowns[number] - lattices.n_inner());
  if (threadIdx.x % 32 == 0)
    out[number] = sum;
}

/// The same, from the sums of nodes on rims that a product has left. Bytes an unknown: 20, and 4 and a T for every copy.
template <class T>
__global__ void __launch_bounds__(threads)
    pack_sums_kernel(LatticeView const lattices, T const* rims, std::int64_t n, std::int32_t const* unknowns, T* out) {
  std::int64_t const number = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= n)
    return;
  std::int64_t const i = unknowns[number] - lattices.n_inner();
  T sum = 0;
  for (std::int64_t c = lattices.copy_offsets[i]; c < lattices.copy_offsets[i + 1]; ++c)
    sum = sum + rims[lattices.copies[c]];
  out[number] = sum;
}

template <class Stored>
__global__ void __launch_bounds__(threads)
    diagonal_kernel(LatticeHalfCdsView const a, Stored const* __restrict__ values, double* d, double* d_low) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= a.lattices.n_unknowns)
    return;
  DoubleDouble const sum = diagonal_entry(a, values, i);
  d[i] = sum.hi;
  if (d_low != nullptr)
    d_low[i] = sum.lo;
}

class CudaLatticeHalfCds final : public ProductsByTemplates<LatticeHalfCdsKernels, CudaLatticeHalfCds> {
public:
  void smooth(Context& context, LatticeHalfCdsView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    for_products(context, a, x, SmoothingRow<float>{step}, stop);
  }
  void smooth(Context& context, LatticeHalfCdsView const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const override {
    for_products(context, a, x, SmoothingRow<double>{step}, stop);
  }
  void subtract_product(Context& context, LatticeHalfCdsView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    for_products(context, a, x, ResidualRow<float>{b, r}, stop);
  }
  void subtract_product(Context& context, LatticeHalfCdsView const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const override {
    for_products(context, a, x, ResidualRow<double>{b, r}, stop);
  }

  template <class T, class Values>
  static void multiply(Context& context, LatticeHalfCdsView const& a, Values values, T alpha, ConstPointer<T> x, T beta,
                       Pointer<T> y) {
    LatticeView const& lattices = a.lattices;
    if (lattices.n_lattices == 0)
      return exchange_nothing<T>(a);
    auto& device = cuda::of(context);
    // The buffer holds the sums of nodes on rims, until the exchange, and x there.
    T* const rims = device.partial_sums<T>(2 * n_rim_sums(lattices));
    StoreScaled<T> const store{alpha, beta, y, rims};
    auto const box = box_of<T, Values>(a, device);
    if constexpr (march::marches<Values>)
      if (box) {
        using Stored = march::StoredIn<Values>;
        auto const nodes = gather<T>(device, lattices, x, pointer_at(rims, n_rim_sums(lattices)), nullptr);
        march::with_tile<T>(*box, [&]<class Tile>(Tile) {
          constexpr int shared_bytes = march::Layout<Stored, T, Tile>::shared_bytes;
          march::allow_shared_memory(march_product_kernel<Tile, T, Stored>, shared_bytes);
          cuda::launch_early(device, march_product_kernel<Tile, T, Stored>, box->grid(), Tile::threads, shared_bytes, *box, nodes,
                             values, x, store);
        });
      }
    if (!box) {
      Tiling const tiling = tiling_of(lattices);
      product_kernel<T, Values><<<tiling.grid(), threads, 0, device.stream()>>>(tiling, lattices, values, x, store);
    }
    POISSON_CUDA_CHECK(cudaGetLastError());
    send_sums<T>(device, a, rims);
    exchange<T>(device, a, rims, alpha, beta, y, nullptr);
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, LatticeHalfCdsView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    LatticeView const& lattices = a.lattices;
    if (lattices.n_lattices == 0) {
      context.set_zero(dot, sizeof(T));
      return exchange_nothing<T>(a);
    }
    auto& device = cuda::of(context);
    auto const box = box_of<T, Values>(a, device);
    Tiling const tiling = tiling_of(lattices);
    dim3 const grid = box ? box->grid() : dim3(tiling.grid());
    // The buffer holds the sums of nodes on rims, until the exchange, x there, and the sums of blocks.
    T* const rims = device.partial_sums<T>(2 * n_rim_sums(lattices) + std::int64_t{grid.x} * grid.y);
    T* const partial = rims + 2 * n_rim_sums(lattices);
    if constexpr (march::marches<Values>)
      if (box) {
        using Stored = march::StoredIn<Values>;
        auto const nodes = gather<T>(device, lattices, x, pointer_at(rims, n_rim_sums(lattices)), stop);
        march::with_tile<T>(*box, [&]<class Tile>(Tile) {
          constexpr int shared_bytes = march::Layout<Stored, T, Tile>::shared_bytes;
          march::allow_shared_memory(march_product_dot_kernel<Tile, T, Stored>, shared_bytes);
          cuda::launch_early(device, march_product_dot_kernel<Tile, T, Stored>, grid, Tile::threads, shared_bytes, *box, nodes,
                             values, x, y, rims, dot, stop, partial, device.block_counter());
        });
      }
    if (!box)
      product_dot_kernel<T, Values>
          <<<grid, threads, 0, device.stream()>>>(tiling, lattices, values, x, y, rims, dot, stop, partial, device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
    send_sums<T>(device, a, rims);
    exchange<T>(device, a, rims, T(1), T(0), y, stop);
  }

  void diagonal(Context& context, LatticeHalfCdsView const& a, double* d, double* d_low) const override {
    std::int64_t const n = a.lattices.n_unknowns;
    if (n == 0)
      return;
    unsigned const blocks = cuda::n_blocks(n, threads);
    cudaStream_t const stream = cuda::of(context).stream();
    if (a.single_values != nullptr)
      diagonal_kernel<<<blocks, threads, 0, stream>>>(a, a.single_values, d, d_low);
    else
      diagonal_kernel<<<blocks, threads, 0, stream>>>(a, a.values, d, d_low);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  /// Sends what the lattices contribute to rows of other ranks, as a product has left it.
  template <class T>
  static void send_sums(cuda::CudaContext const& device, LatticeHalfCdsView const& a, T const* rims) {
    auto const* const sums = sums_of_ranks<T>(a);
    if (sums == nullptr)
      return;
    if (sums->n > 0) {
      pack_sums_kernel<T><<<cuda::n_blocks(sums->n, threads), threads, 0, device.stream()>>>(a.lattices, rims, sums->n,
                                                                                             sums->unknowns, sums->outgoing);
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    sums->send();
  }
  /// The same ahead of a product in one launch, which leaves nothing.
  template <class T, class Values>
  static void send_sums(cuda::CudaContext const& device, LatticeHalfCdsView const& a, Values values, ConstPointer<T> x) {
    auto const* const sums = sums_of_ranks<T>(a);
    if (sums == nullptr)
      return;
    if (sums->n > 0) {
      sums_of_ghosts_kernel<T, Values><<<cuda::n_blocks(sums->n, threads / 32), threads, 0, device.stream()>>>(
          a.lattices, values, sums->n, sums->unknowns, x, sums->outgoing);
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    sums->send();
  }
  template <class V, class Row>
  static void for_products(Context& context, LatticeHalfCdsView const& a, V const* x, Row const& row, std::int32_t const* stop) {
    if (a.lattices.n_lattices == 0)
      return exchange_nothing<V>(a);
    with_stored_values<V>(
        a, [&](auto values) { launch<V>(context, a, values, x, row, stop); }, ValuePairs());
  }
  template <class V, class Values, class Row>
  static void launch(Context& context, LatticeHalfCdsView const& a, Values values, V const* x, Row const& row,
                     std::int32_t const* stop) {
    LatticeView const& lattices = a.lattices;
    auto& device = cuda::of(context);
    if constexpr (march::marches<Values>)
      if (auto const box = box_of<V, Values>(a, device)) {
        using Stored = march::StoredIn<Values>;
        V* const rims = device.partial_sums<V>(2 * n_rim_sums(lattices));
        auto const nodes = gather<V>(device, lattices, x, rims + n_rim_sums(lattices), stop);
        march::with_tile<V>(*box, [&]<class Tile>(Tile) {
          constexpr int shared_bytes = march::Layout<Stored, V, Tile>::shared_bytes;
          march::allow_shared_memory(march_rows_kernel<Tile, V, Stored, Row>, shared_bytes);
          cuda::launch_early(device, march_rows_kernel<Tile, V, Stored, Row>, box->grid(), Tile::threads, shared_bytes, *box, nodes,
                             values, x, StoreRow<V, Row>{row, rims}, stop);
        });
        send_sums<V>(device, a, rims);
        ConstPointer<V> const added = take_sums<V>(a);
        if (lattices.n_rim() > 0)
          cuda::launch_early(device, exchange_rows_kernel<V, Row>, cuda::n_blocks(lattices.n_rim(), threads), threads, 0, lattices,
                             rims, added, x, row, stop);
        return;
      }
    send_sums<V>(device, a, values, x);
    ConstPointer<V> const added = take_sums<V>(a);
    unsigned const inside = cuda::n_blocks(lattices.n_inner(), threads), on_rims = cuda::n_blocks(lattices.n_rim(), threads / 32);
    few_rows_kernel<V><<<inside + on_rims, threads, 0, device.stream()>>>(lattices, inside, values, added, x, row, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  /// A vector of n entries that lies behind n numbers of the buffer.
  template <class T>
  [[nodiscard]] static Pointer<T> pointer_at(T* buffer, std::int64_t n) {
    if constexpr (std::is_same_v<T, DoubleDouble>) {
      auto* const first = reinterpret_cast<double*>(buffer + n);
      return {first, first + n};
    } else {
      return buffer + n;
    }
  }
  [[nodiscard]] static std::int64_t n_rim_sums(LatticeView const& lattices) { return lattices.n_lattices * lattices.rim().size(); }
  /// The box that is marched through; none where one thread takes a node.
  template <class T, class Values>
  [[nodiscard]] static std::optional<march::Box> box_of(LatticeHalfCdsView const& a, cuda::CudaContext const& device) {
    if constexpr (march::marches<Values>)
      return march::box_of<march::StoredIn<Values>, T>(a, device);
    else
      return std::nullopt;
  }
};

}  // namespace

LatticeHalfCdsKernels const& LatticeHalfCdsKernels::cuda() {
  static CudaLatticeHalfCds const kernels;
  return kernels;
}

}  // namespace poisson
