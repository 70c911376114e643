#include "gpu/kernels/lattice_operator.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace poisson {

namespace {

using namespace lattice_cells;

constexpr int threads = 256, batch = LatticeTensors::cells_of_batch;
static_assert(batch == 32);

[[nodiscard]] __device__ __forceinline__ bool is_stopped(std::int32_t const* stop) {
  return stop != nullptr && *stop != 0;
}

// Cells of order 1 to 4: one block a batch of cells, one lane of its warps a cell, one warp a plane of nodes or points. A thread
// has a plane in registers, so that contractions along two directions need nothing else: at nodes a plane (x, y) of constant z, at
// points a plane (x, z) of constant y. In between planes change hands through shared memory, lane by lane, without bank conflicts.

template <int p, class T>
struct PlaneTables {
  Real<T> value[p + 1][p + 1], collocation[p + 1][p + 1];
  Real<T> weight[p + 1];  ///< of points, on a box
};
template <int p, class T>
PlaneTables<p, T> plane_tables(LatticeOperatorView const& a) {
  ElementTables const tables = element_tables(p);
  PlaneTables<p, T> result;
  for (std::size_t q = 0; q <= p; ++q)
    result.weight[q] = static_cast<Real<T>>(a.box.weight[q]);
  for (std::size_t q = 0; q <= p; ++q)
    for (std::size_t a = 0; a <= p; ++a) {
      result.value[q][a] = static_cast<Real<T>>(tables.value[q][a]);
      result.collocation[q][a] = static_cast<Real<T>>(tables.collocation[q][a]);
    }
  return result;
}

template <int p, class T>
struct Planes {
  static constexpr int n1 = p + 1, points = n1 * n1 * n1, threads = batch * n1;
  static constexpr int shared_bytes = 2 * points * batch * static_cast<int>(sizeof(T));
  /// Blocks of a multiprocessor: three planes of numbers stay in registers.
  static constexpr int blocks_at_once = (p == 1 ? 14 : p == 2 ? 6 : p == 3 ? 3 : 2) * (sizeof(T) == 4 && p > 1 ? 2 : 1);
};

/// x at the nodes of plane c of a cell: [y][x]; all entries are looked up first, then all are asked for. `exists`: otherwise 0.
template <int p, class T>
__device__ __forceinline__ void load_plane(LatticeOperatorView const& a, bool exists, Place const& cell, int c, T const* x,
                                           T (&values)[p + 1][p + 1]) {
  LatticeView const& lattices = a.lattices;
  if (lattices.is_box()) {
    LatticeView::InBox const at = lattices.box_cell(cell.lattice);
    auto const nx = static_cast<std::int32_t>(lattices.box_nodes(0));
    auto const first = static_cast<std::int32_t>(lattices.box_unknown(p * at.i[0], p * at.i[1], p * at.i[2] + c));
    bool const at_surface =
        a.fixed != nullptr && (at.i[0] == 0 || at.i[0] == lattices.box[0] - 1 || at.i[1] == 0 || at.i[1] == lattices.box[1] - 1 ||
                               at.i[2] == 0 || at.i[2] == lattices.box[2] - 1);
#pragma unroll
    for (int j = 0; j <= p; ++j)
#pragma unroll
      for (int i = 0; i <= p; ++i) {
        std::int32_t const unknown = first + j * nx + i;
        values[j][i] = exists && !(at_surface && a.fixed[unknown] != 0) ? cuda::load_constant(x, unknown) : T(0);
      }
    return;
  }
  std::int32_t const n = lattices.cells, m = lattices.m, inner = m - 2, cx = cell.i[0], cy = cell.i[1], cz = cell.i[2];
  std::int32_t const first = cell.lattice * (inner * inner * inner), z = cz - (c == 0 ? 1 : 0);
  std::int32_t const* const kinds = lattices.kind_first + (c == p ? 0 : c) * p * p;
  std::int32_t unknowns[p + 1][p + 1];
#pragma unroll
  for (int j = 0; j <= p; ++j)
#pragma unroll
    for (int i = 0; i <= p; ++i) {
      std::int32_t const ny = j % p == 0 ? n - 1 : n, nx = i % p == 0 ? n - 1 : n;
      std::int32_t const kind = p == 1 ? 0 : __ldg(kinds + j % p * p + i % p);
      unknowns[j][i] = exists ? first + kind + (z * ny + cy - (j == 0 ? 1 : 0)) * nx + cx - (i == 0 ? 1 : 0) : -1;
    }
  std::int32_t const k = p * cz + c, last = n - 1;
  bool const face = k == 0 || k == m - 1 || lattices.all_on_rim;
  if (exists && (face || cx == 0 || cx == last || cy == 0 || cy == last)) {
    LatticePlane const plane(m, cell.lattice, k, lattices.all_on_rim);
#pragma unroll
    for (int j = 0; j <= p; ++j)
#pragma unroll
      for (int i = 0; i <= p; ++i) {
        LatticePlaneNode const node(m, p * cx + i, p * cy + j);
        if (face || node.on_ring)
          unknowns[j][i] = __ldg(lattices.rim_unknowns + plane.rim_first + (face ? node.of_face : node.of_inner));
      }
    auto const n_inner = static_cast<std::int32_t>(lattices.n_inner());
    if (a.fixed != nullptr)
#pragma unroll
      for (int j = 0; j <= p; ++j)
#pragma unroll
        for (int i = 0; i <= p; ++i)
          if (unknowns[j][i] >= n_inner && a.fixed[unknowns[j][i] - n_inner] != 0)
            unknowns[j][i] = -1;
  }
#pragma unroll
  for (int j = 0; j <= p; ++j)
#pragma unroll
    for (int i = 0; i <= p; ++i)
      values[j][i] = unknowns[j][i] >= 0 ? cuda::load_constant(x, unknowns[j][i]) : T(0);
}

/// In place: the table along the first or the second index of a plane, or its transpose.
template <bool first_index, bool transposed, int n1, class T>
__device__ __forceinline__ void contract(Real<T> const (&table)[n1][n1], T (&plane)[n1][n1]) {
#pragma unroll
  for (int line = 0; line < n1; ++line) {
    T from[n1];
#pragma unroll
    for (int r = 0; r < n1; ++r)
      from[r] = first_index ? plane[r][line] : plane[line][r];
#pragma unroll
    for (int q = 0; q < n1; ++q) {
      Sum<T> sum{};
#pragma unroll
      for (int r = 0; r < n1; ++r)
        sum.add(transposed ? table[r][q] : table[q][r], from[r]);
      (first_index ? plane[q][line] : plane[line][q]) = sum.value();
    }
  }
}

/// Asks for numbers to come to L2, where that costs one instruction. They begin and end at multiples of 16 bytes.
__device__ __forceinline__ void prefetch_to_l2(void const* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");
#else
  static_cast<void>(from), static_cast<void>(bytes);
#endif
}

/// Bytes of a point, in double: 48 for its tensor and 8 written; x, once from memory, and by neighbouring cells from caches. With
/// from_k a component of k in place of the tensor where k varies in cells.
template <int p, class T, bool from_k>
__global__ void __launch_bounds__(Planes<p, T>::threads, Planes<p, T>::blocks_at_once)
    planes_kernel(__grid_constant__ LatticeOperatorView const a, __grid_constant__ PlaneTables<p, T> const tables,
                  T const* __restrict__ tensors, T const* __restrict__ x, T* __restrict__ vectors, T* __restrict__ partial,
                  std::int32_t const* stop) {
  if (is_stopped(stop))
    return;
  constexpr int n1 = p + 1, plane = n1 * n1, points = n1 * plane, of_point = 6 * batch;
  extern __shared__ __align__(16) std::byte shared[];
  T* const exchange = reinterpret_cast<T*>(shared);  // two numbers at every node or point: [(2 z + y) n1 + x][lane]
  int const lane = static_cast<int>(threadIdx.x) % batch, own = static_cast<int>(threadIdx.x) / batch;
  std::int64_t const cell = std::int64_t{blockIdx.x} * batch + lane;
  bool const exists = cell < a.n_cells();

  // Tensors at points (x, own, z): the first planes in z now, the others while those are used.
  T const* const own_tensors = tensors + std::int64_t{blockIdx.x} * points * of_point + own * n1 * of_point;
  auto const prefetch = [&](int begin, int end) {
    if (!from_k && lane >= begin && lane < end)
      prefetch_to_l2(own_tensors + lane * plane * of_point, n1 * of_point * sizeof(T));
  };
  prefetch(0, n1 / 2);

  T u[n1][n1], by_y[n1][n1];
  load_plane<p, T>(a, exists, cell_place(a, exists ? cell : 0), own, x, u);
  contract<false, false>(tables.value, u);
  contract<true, false>(tables.value, u);
#pragma unroll
  for (int j = 0; j < n1; ++j)
#pragma unroll
    for (int i = 0; i < n1; ++i) {
      Sum<T> sum{};
#pragma unroll
      for (int r = 0; r < n1; ++r)
        sum.add(tables.collocation[j][r], u[r][i]);
      T* const to = exchange + ((own * n1 + j) * n1 + i) * batch + lane;
      to[0] = u[j][i];
      to[points * batch] = sum.value();
    }
  __syncthreads();
  prefetch(n1 / 2, n1);

#pragma unroll
  for (int k = 0; k < n1; ++k)
#pragma unroll
    for (int i = 0; i < n1; ++i) {
      T const* const from = exchange + ((k * n1 + own) * n1 + i) * batch + lane;
      u[k][i] = from[0];
      by_y[k][i] = from[points * batch];
    }
  contract<true, false>(tables.value, u);
  contract<true, false>(tables.value, by_y);
  T sums[n1][n1];  // of x and z components of fluxes times derivatives
#pragma unroll
  for (int k = 0; k < n1; ++k)
#pragma unroll
    for (int i = 0; i < n1; ++i)
      sums[k][i] = 0;
  DotSum<T> dot{};
  T factor[3] = {0, 0, 0};
  T const* own_k = tensors;
  if constexpr (from_k) {
    BoxCell const in_common(a, exists ? cell : 0);
#pragma unroll
    for (int c = 0; c < 3; ++c)
      factor[c] = exists ? static_cast<T>(in_common.factor[c]) : T(0);
    own_k += a.box.k.at(exists ? cell : 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < n1; ++k)
#pragma unroll
    for (int i = 0; i < n1; ++i) {
      if constexpr (from_k) {
        T const* const k_x = own_k + ((k * n1 + own) * n1 + i) * a.box.k.of_point;
        T const weight = tables.weight[i] * tables.weight[own] * tables.weight[k];
        T const first = __ldg(k_x);
        bool const isotropic = a.box.k.of_component == 0;
        T const xx = weight * (factor[0] * first),
                yy = weight * (factor[1] * (isotropic ? first : __ldg(k_x + a.box.k.of_component))),
                zz = weight * (factor[2] * (isotropic ? first : __ldg(k_x + 2 * a.box.k.of_component)));
        Sum<T> by_x{}, by_z{};
#pragma unroll
        for (int r = 0; r < n1; ++r) {
          by_x.add(tables.collocation[i][r], u[k][r]);
          by_z.add(tables.collocation[k][r], u[r][i]);
        }
        T const of_x = xx * by_x.value(), of_y = yy * by_y[k][i], of_z = zz * by_z.value();
        dot.add(by_x.value(), of_x);
        dot.add(by_y[k][i], of_y);
        dot.add(by_z.value(), of_z);
        by_y[k][i] = of_y;
#pragma unroll
        for (int r = 0; r < n1; ++r) {
          sums[k][r] = fma(tables.collocation[i][r], of_x, sums[k][r]);
          sums[r][i] = fma(tables.collocation[k][r], of_z, sums[r][i]);
        }
      } else {
        T const* const d = own_tensors + (k * plane + i) * of_point + lane;
        T const xx = __ldcs(d), yy = __ldcs(d + batch), zz = __ldcs(d + 2 * batch), xy = __ldcs(d + 3 * batch),
                xz = __ldcs(d + 4 * batch), yz = __ldcs(d + 5 * batch);
        Sum<T> by_x{}, by_z{}, of_x{}, of_y{}, of_z{};
#pragma unroll
        for (int r = 0; r < n1; ++r) {
          by_x.add(tables.collocation[i][r], u[k][r]);
          by_z.add(tables.collocation[k][r], u[r][i]);
        }
        of_x.add(xx, by_x.value()), of_x.add(xy, by_y[k][i]), of_x.add(xz, by_z.value());
        of_y.add(xy, by_x.value()), of_y.add(yy, by_y[k][i]), of_y.add(yz, by_z.value());
        of_z.add(xz, by_x.value()), of_z.add(yz, by_y[k][i]), of_z.add(zz, by_z.value());
        dot.add(by_x.value(), of_x.value());
        dot.add(by_y[k][i], of_y.value());
        dot.add(by_z.value(), of_z.value());
        by_y[k][i] = of_y.value();
#pragma unroll
        for (int r = 0; r < n1; ++r) {
          sums[k][r] = fma(tables.collocation[i][r], of_x.value(), sums[k][r]);
          sums[r][i] = fma(tables.collocation[k][r], of_z.value(), sums[r][i]);
        }
      }
    }
  contract<true, true>(tables.value, sums);
  contract<true, true>(tables.value, by_y);
  // The same places that this thread has read.
#pragma unroll
  for (int k = 0; k < n1; ++k)
#pragma unroll
    for (int i = 0; i < n1; ++i) {
      T* const to = exchange + ((k * n1 + own) * n1 + i) * batch + lane;
      to[0] = sums[k][i];
      to[points * batch] = by_y[k][i];
    }
  __syncthreads();

#pragma unroll
  for (int j = 0; j < n1; ++j)
#pragma unroll
    for (int i = 0; i < n1; ++i) {
      T const* const from = exchange + ((own * n1 + j) * n1 + i) * batch + lane;
      u[j][i] = from[0];
      by_y[j][i] = from[points * batch];
    }
#pragma unroll
  for (int j = 0; j < n1; ++j)
#pragma unroll
    for (int i = 0; i < n1; ++i)
#pragma unroll
      for (int r = 0; r < n1; ++r)
        u[r][i] = fma(tables.collocation[j][r], by_y[j][i], u[r][i]);
  contract<true, true>(tables.value, u);
  contract<false, true>(tables.value, u);
  if (exists) {
    std::int64_t const stride = a.stride();
#pragma unroll
    for (int j = 0; j < n1; ++j)
#pragma unroll
      for (int i = 0; i < n1; ++i)
        cuda::store_streaming(vectors, (own * plane + j * n1 + i) * stride + cell, u[j][i]);
  }
  if (partial != nullptr)
    cuda::store_warp_sum(dot.value(), partial);
}

// Cells of any order, in any arithmetic: a block takes `cells` of them, a power of two, and keeps four numbers for each of their
// nodes or points in shared memory, at [node or point][cell].

/// out = the table along the direction in which entries are `step` apart, or its transpose; waits for the block at the end.
template <bool transposed, class T>
__device__ void contract_shared(double const* table, int n1, int step, int cells, T const* in, T* out) {
  for (int t = static_cast<int>(threadIdx.x); t < n1 * n1 * n1 * cells; t += threads) {
    int const q = t / (cells * step) % n1, first = t - q * step * cells;
    Sum<T> sum{};
    for (int r = 0; r < n1; ++r)
      sum.add(static_cast<Real<T>>(transposed ? table[r * n1 + q] : table[q * n1 + r]), in[first + r * step * cells]);
    out[t] = sum.value();
  }
  __syncthreads();
}

template <class T, class Stored>
__global__ void __launch_bounds__(threads)
    any_order_kernel(__grid_constant__ LatticeOperatorView const a, __grid_constant__ ElementTables const tables, int cells,
                     Stored const* __restrict__ tensors, ConstPointer<T> x, Pointer<T> vectors, T* __restrict__ partial,
                     std::int32_t const* stop) {
  if (is_stopped(stop))
    return;
  int const n1 = tables.points(), points = n1 * n1 * n1, size = points * cells, thread = static_cast<int>(threadIdx.x);
  extern __shared__ __align__(16) std::byte shared[];
  double* const value = reinterpret_cast<double*>(shared);
  double* const collocation = value + n1 * n1;
  T* const u = reinterpret_cast<T*>(collocation + n1 * n1);
  T *const v = u + size, *const y = v + size, *const z = y + size;
  for (int t = thread; t < n1 * n1; t += threads) {
    value[t] = tables.value[t / n1][t % n1];
    collocation[t] = tables.collocation[t / n1][t % n1];
  }
  std::int64_t const first = std::int64_t{blockIdx.x} * cells, n_cells = a.n_cells();
  for (int t = thread; t < size; t += threads) {
    int const node = t / cells;
    std::int64_t const cell = first + t % cells;
    u[t] = cell < n_cells
               ? free_entry<T>(a, x, unknown_of(a.lattices, cell_place(a, cell), node % n1, node / n1 % n1, node / (n1 * n1)))
               : T(0);
  }
  __syncthreads();
  contract_shared<false>(value, n1, 1, cells, u, v);
  contract_shared<false>(value, n1, n1, cells, v, u);
  contract_shared<false>(value, n1, n1 * n1, cells, u, v);
  DotSum<T> dot{};
  for (int t = thread; t < size; t += threads) {
    int const q = t / cells, qx = q % n1, qy = q / n1 % n1, qz = q / (n1 * n1), lane = t % cells;
    Sum<T> by_x{}, by_y{}, by_z{}, of_x{}, of_y{}, of_z{};
    for (int r = 0; r < n1; ++r) {
      by_x.add(static_cast<Real<T>>(collocation[qx * n1 + r]), v[(q + r - qx) * cells + lane]);
      by_y.add(static_cast<Real<T>>(collocation[qy * n1 + r]), v[(q + (r - qy) * n1) * cells + lane]);
      by_z.add(static_cast<Real<T>>(collocation[qz * n1 + r]), v[(q + (r - qz) * n1 * n1) * cells + lane]);
    }
    double tensor[6];
    tensor_at(a, tensors, first + lane, q, tensor);
    auto const entry = [&](int c) { return static_cast<Real<T>>(tensor[c]); };
    of_x.add(entry(0), by_x.value()), of_x.add(entry(3), by_y.value()), of_x.add(entry(4), by_z.value());
    of_y.add(entry(3), by_x.value()), of_y.add(entry(1), by_y.value()), of_y.add(entry(5), by_z.value());
    of_z.add(entry(4), by_x.value()), of_z.add(entry(5), by_y.value()), of_z.add(entry(2), by_z.value());
    dot.add(by_x.value(), of_x.value());
    dot.add(by_y.value(), of_y.value());
    dot.add(by_z.value(), of_z.value());
    u[t] = of_x.value();
    y[t] = of_y.value();
    z[t] = of_z.value();
  }
  __syncthreads();
  for (int t = thread; t < size; t += threads) {
    int const q = t / cells, qx = q % n1, qy = q / n1 % n1, qz = q / (n1 * n1), lane = t % cells;
    Sum<T> sum{};
    for (int r = 0; r < n1; ++r) {
      sum.add(static_cast<Real<T>>(collocation[r * n1 + qx]), u[(q + r - qx) * cells + lane]);
      sum.add(static_cast<Real<T>>(collocation[r * n1 + qy]), y[(q + (r - qy) * n1) * cells + lane]);
      sum.add(static_cast<Real<T>>(collocation[r * n1 + qz]), z[(q + (r - qz) * n1 * n1) * cells + lane]);
    }
    v[t] = sum.value();
  }
  __syncthreads();
  contract_shared<true>(value, n1, n1 * n1, cells, v, u);
  contract_shared<true>(value, n1, n1, cells, u, v);
  contract_shared<true>(value, n1, 1, cells, v, u);
  std::int64_t const stride = a.stride();
  for (int t = thread; t < size; t += threads)
    if (first + t % cells < n_cells)
      store(vectors, t / cells * stride + first + t % cells, u[t]);
  if (partial != nullptr)
    cuda::store_warp_sum(dot.value(), partial);
}

/// Threads of a cell at a face, one a node or point: at most 81.
constexpr int face_threads = 96;

/// Adds what Robin conditions on faces of one direction contribute: of the next direction in the next launch, as cells may be at
/// two faces.
template <class T>
__global__ void __launch_bounds__(face_threads)
    faces_kernel(__grid_constant__ LatticeOperatorView const a, __grid_constant__ ElementTables const tables, int face,
                 ConstPointer<T> x, Pointer<T> vectors, T* __restrict__ partial, std::int32_t const* stop) {
  std::int32_t const of_face = a.lattices.cells * a.lattices.cells;
  auto const number = static_cast<std::int32_t>(blockIdx.x) / of_face;
  if (is_stopped(stop) || a.mass_faces[number] % 6 != face)
    return;
  __shared__ T values[max_points * max_points], fluxes[max_points * max_points];
  FaceCell const cell = face_cell(a, number, static_cast<std::int32_t>(blockIdx.x) % of_face);
  int const n1 = tables.points(), t = static_cast<int>(threadIdx.x);
  bool const works = t < n1 * n1;
  int i[3];
  cell.node(n1 - 1, t, i);
  if (works)
    values[t] = free_entry<T>(a, x, unknown_of(a.lattices, cell.cell, i[0], i[1], i[2]));
  __syncthreads();
  DotSum<T> dot{};
  if (works) {
    T at_point;
    fluxes[t] = face_flux<T>(
        tables, t, a.face_mass[std::int64_t{blockIdx.x} * n1 * n1 + t], [&](int s) { return values[s]; }, at_point);
    dot.add(at_point, fluxes[t]);
  }
  __syncthreads();
  if (works) {
    std::int64_t const place = ((i[2] * n1 + i[1]) * n1 + i[0]) * a.stride() + cell_number(a, cell.cell);
    store(vectors, place, load(vectors, place) + face_term<T>(tables, t, [&](int q) { return fluxes[q]; }));
  }
  if (partial != nullptr)
    cuda::store_warp_sum(dot.value(), partial);
}

/// y = alpha (the element vectors, added up) + beta y. One thread an inner node of kind blockIdx.y; the order is that of
/// for_cells_around. Bytes of a row: y, and a T for each of the 1, 2, 4 or 8 cells around it.
template <class T>
__global__ void __launch_bounds__(threads)
    gather_inner_kernel(__grid_constant__ LatticeOperatorView const a, ConstPointer<T> vectors, T alpha, T beta, Pointer<T> y,
                        std::int32_t const* stop) {
  LatticeView const& lattices = a.lattices;
  auto const p = static_cast<unsigned>(lattices.order), n = static_cast<unsigned>(lattices.cells), n1 = p + 1;
  unsigned const kind = blockIdx.y, kx = kind % p, ky = kind / p % p, kz = kind / (p * p);
  // A node between cells is the last one of the lower and the first one of the upper cell.
  unsigned const in_x = kx == 0 ? 2 : 1, in_y = ky == 0 ? 2 : 1, in_z = kz == 0 ? 2 : 1;
  unsigned const nx = n + 1 - in_x, ny = n + 1 - in_y, size = nx * ny * (n + 1 - in_z);
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= lattices.n_lattices * size || is_stopped(stop))
    return;
  auto const number = static_cast<unsigned>(t);
  unsigned const lattice = number / size, in_kind = number - lattice * size, line = in_kind / nx, x = in_kind - line * nx;
  std::int64_t const cell = ((std::int64_t{lattice} * n + line / ny) * n + line % ny) * n + x;  // the lowest around the node
  std::int64_t const stride = a.stride();
  T terms[8];
#pragma unroll
  for (unsigned c = 0; c < 8; ++c) {
    unsigned const dx = c & 1, dy = c >> 1 & 1, dz = c >> 2;
    unsigned const i = in_x == 1 ? kx : dx == 0 ? p : 0, j = in_y == 1 ? ky : dy == 0 ? p : 0, k = in_z == 1 ? kz : dz == 0 ? p : 0;
    terms[c] = 0;
    if (dx < in_x && dy < in_y && dz < in_z)
      terms[c] = cuda::load_constant(vectors, ((k * n1 + j) * n1 + i) * stride + cell + (dz * n + dy) * n + dx);
  }
  T sum = terms[0];
#pragma unroll
  for (unsigned c = 1; c < 8; ++c)
    if ((c & 1) < in_x && (c >> 1 & 1) < in_y && c >> 2 < in_z)
      sum = sum + terms[c];
  std::int64_t const unknown =
      lattice * lattices.inner_of_lattice() + (p == 1 ? 0 : lattices.kind_first[kind]) + static_cast<std::int32_t>(in_kind);
  cuda::store_streaming(y, unknown, cuda::combine(alpha, sum, beta, y, unknown));
}

/// The same for unknowns on rims, one thread each. Rows with Dirichlet values are a_ii x_i.
template <class T>
__global__ void __launch_bounds__(threads)
    gather_rim_kernel(__grid_constant__ LatticeOperatorView const a, ConstPointer<T> vectors, T alpha, ConstPointer<T> x, T beta,
                      Pointer<T> y, T* __restrict__ partial, std::int32_t const* stop) {
  if (is_stopped(stop))
    return;
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x, unknown = a.lattices.n_inner() + i;
  DotSum<T> dot{};
  if (i < a.lattices.n_rim()) {
    T sum;
    if (a.is_fixed(unknown)) {
      T const x_i = load(x, unknown);
      sum = static_cast<T>(static_cast<Real<T>>(a.diagonal[unknown]) * x_i);
      dot.add(x_i, sum);
    } else {
      sum = gathered_on_rim<T>(a, vectors, unknown);
    }
    store(y, unknown, cuda::combine(alpha, sum, beta, y, unknown));
  }
  if (partial != nullptr)
    cuda::store_warp_sum(dot.value(), partial);
}

/// One thread an unknown.
template <class T>
__global__ void __launch_bounds__(threads)
    sums_on_rims_kernel(__grid_constant__ LatticeOperatorView const a, ConstPointer<T> vectors, std::int64_t first, std::int64_t n,
                        T* __restrict__ out) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x, unknown = first + i;
  if (i < n)
    out[i] = a.is_fixed(unknown) ? T(0) : gathered_on_rim<T>(a, vectors, unknown);
}

/// One thread a node of a cell. Tensors are read from memory once, and by the other nodes of a cell from caches.
__global__ void __launch_bounds__(threads)
    diagonal_kernel(__grid_constant__ LatticeOperatorView const a, __grid_constant__ AccurateTables const tables,
                    double* __restrict__ vectors) {
  int const points = a.points();
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x, of_batch = std::int64_t{batch} * points;
  std::int64_t const cell = t / of_batch * batch + t % batch;
  int const node = static_cast<int>(t % of_batch / batch);
  if (cell >= a.n_cells())
    return;
  double sum = 0;
  for (int q = 0; q < points; ++q) {
    double weights[6], tensor[6];
    diagonal_weights(tables.element, tables.derivative, node, q, weights);
    tensor_at(a, a.values, cell, q, tensor);
#pragma unroll
    for (int c = 0; c < 6; ++c)
      sum += weights[c] * tensor[c];
  }
  vectors[node * a.stride() + cell] = sum;
}

/// A node of a cell at a face, as threads of the two kernels below have them. Where it is in element vectors; -1: there is none, or
/// its face has another direction.
struct FaceNode {
  FaceCell cell;
  int t;
  std::int64_t place;
  double const* mass;

  __device__ FaceNode(LatticeOperatorView const& a, int face) : cell(), t(0), place(-1), mass(nullptr) {
    int const n1 = a.points_of_direction(), of_face = n1 * n1;
    std::int64_t const number = std::int64_t{blockIdx.x} * threads + threadIdx.x, face_cell_number = number / of_face;
    std::int32_t const cells = a.lattices.cells * a.lattices.cells;
    if (face_cell_number >= std::int64_t{a.n_mass_faces} * cells)
      return;
    cell = face_cell(a, static_cast<std::int32_t>(face_cell_number / cells), static_cast<std::int32_t>(face_cell_number % cells));
    t = static_cast<int>(number % of_face);
    mass = a.face_mass + face_cell_number * of_face;
    int i[3];
    cell.node(n1 - 1, t, i);
    if (cell.face == face)
      place = ((i[2] * n1 + i[1]) * n1 + i[0]) * a.stride() + cell_number(a, cell.cell);
  }
};

__global__ void __launch_bounds__(threads)
    face_diagonal_kernel(__grid_constant__ LatticeOperatorView const a, __grid_constant__ ElementTables const tables, int face,
                         double* __restrict__ vectors) {
  FaceNode const node(a, face);
  if (node.place < 0)
    return;
  double sum = vectors[node.place];
  for (int q = 0; q < tables.points() * tables.points(); ++q) {
    double const value = face_value(tables, node.t, q);
    sum += node.mass[q] * value * value;
  }
  vectors[node.place] = sum;
}

/// What a residual multiplies by the matrix.
struct ResidualOf {
  double const* x;
  double const* x_low;
  __device__ DoubleDouble operator()(LatticeOperatorView const& a, Place const& cell, int i, int j, int k) const {
    std::int64_t const unknown = unknown_of(a.lattices, cell, i, j, k);
    if (a.is_fixed(unknown))
      return 0;
    return x_low == nullptr ? DoubleDouble(x[unknown]) : two_sum(x[unknown], x_low[unknown]);
  }
};

constexpr int residual_threads = 128;

/// One block a cell.
__global__ void __launch_bounds__(residual_threads)
    residual_cells_kernel(__grid_constant__ LatticeOperatorView const a, __grid_constant__ AccurateTables const tables,
                          ResidualOf const x, Pointer<DoubleDouble> vectors) {
  extern __shared__ __align__(16) std::byte shared[];
  int const points = a.points(), n1 = a.points_of_direction();
  auto* const values = reinterpret_cast<DoubleDouble*>(shared);
  DoubleDouble* const fluxes = values + points;
  std::int64_t const cell = blockIdx.x;
  Place const place = cell_place(a, cell);
  for (int node = static_cast<int>(threadIdx.x); node < points; node += residual_threads)
    values[node] = x(a, place, node % n1, node / n1 % n1, node / (n1 * n1));
  __syncthreads();
  for (int q = static_cast<int>(threadIdx.x); q < points; q += residual_threads) {
    double tensor[6];
    tensor_at(a, a.values, cell, q, tensor);
    DoubleDouble flux[3];
    accurate_flux(
        tables, q, tensor, [&](int node) { return values[node]; }, flux);
    for (int d = 0; d < 3; ++d)
      fluxes[d * points + q] = flux[d];
  }
  __syncthreads();
  for (int node = static_cast<int>(threadIdx.x); node < points; node += residual_threads)
    store(vectors, node * a.stride() + cell, accurate_term(tables, node, [&](int d, int q) { return fluxes[d * points + q]; }));
}
__global__ void __launch_bounds__(threads)
    residual_faces_kernel(__grid_constant__ LatticeOperatorView const a, __grid_constant__ ElementTables const tables, int face,
                          ResidualOf const x, Pointer<DoubleDouble> vectors) {
  FaceNode const node(a, face);
  if (node.place < 0)
    return;
  DoubleDouble const term = accurate_face_term(tables, node.mass, node.t, [&](int s) {
    int i[3];
    node.cell.node(tables.order, s, i);
    return x(a, node.cell.cell, i[0], i[1], i[2]);
  });
  store(vectors, node.place, load(vectors, node.place) + term);
}
__global__ void __launch_bounds__(threads)
    residual_rows_kernel(__grid_constant__ LatticeOperatorView const a, ConstPointer<DoubleDouble> vectors, double const* x,
                         double const* x_low, double const* b, double* r) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row < a.lattices.n_unknowns)
    r[row] = residual_of_row(a, row, vectors, x, x_low, b[row]);
}

/// Element vectors, and room for the partial sums of a dot.
template <class T>
struct Scratch {
  Pointer<T> vectors;
  T* partial;

  Scratch(cuda::CudaContext& device, LatticeOperatorView const& a, std::int64_t n_partial = 0) {
    std::int64_t const size = a.points() * a.stride();
    T* const all = device.partial_sums<T>(size + n_partial);
    if constexpr (std::is_same_v<T, DoubleDouble>) {
      auto* const numbers = reinterpret_cast<double*>(all);
      vectors = {numbers, numbers + size};
    } else {
      vectors = all;
    }
    partial = n_partial > 0 ? all + size : nullptr;
  }
};

template <class Kernel>
void allow_shared_memory(Kernel* kernel, int bytes) {
  if (bytes > 48 * 1024)
    POISSON_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

/// Calls call(face) for every direction of a face that has Robin conditions somewhere, or may have.
template <class Call>
void for_faces(LatticeOperatorView const& a, Call const& call) {
  if (a.n_mass_faces == 0)
    return;
  for (int face = 0; face < 6; ++face) {
    call(face);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
}

/// How a product launches its kernels.
template <class T, class Stored>
class Product {
public:
  Product(Context& context, LatticeOperatorView const& a, Stored const* tensors)
      : device_(cuda::of(context)),
        a_(a),
        tensors_(tensors),
        in_planes_(std::is_same_v<T, Stored> && a.lattices.order <= 4),
        n_face_cells_(std::int64_t{a.n_mass_faces} * a.lattices.cells * a.lattices.cells) {
    if (!in_planes_)
      while (cells_ > 1 && shared_bytes() > 64 * 1024)
        cells_ /= 2;
  }

  /// y = alpha A x + beta y and *dot = x . A x, unless `dot` is null.
  void operator()(T alpha, ConstPointer<T> x, T beta, Pointer<T> y, T* dot, std::int32_t const* stop) const {
    if (a_.lattices.n_unknowns == 0) {
      if (dot != nullptr)
        device_.set_zero(dot, sizeof(T));
      return;
    }
    std::int64_t const of_cells = in_planes_ ? a_.stride() / batch * a_.points_of_direction() : n_blocks() * (threads / 32);
    std::int64_t const of_faces = n_face_cells_ * (face_threads / 32);
    std::int64_t const n_sums = of_cells + of_faces + rim_blocks() * (threads / 32);
    Scratch<T> const scratch(device_, a_, dot != nullptr ? cuda::partials_of_warps(n_sums, 32) : 0);
    auto const part = [&](std::int64_t first) { return dot != nullptr ? scratch.partial + first : nullptr; };
    make_vectors(x, scratch, stop);
    for_faces(a_, [&](int face) {
      faces_kernel<T><<<static_cast<unsigned>(n_face_cells_), face_threads, 0, device_.stream()>>>(
          a_, element_tables(a_.lattices.order), face, x, scratch.vectors, part(of_cells), stop);
    });
    if (a_.after_cells != nullptr)
      (*a_.after_cells)();
    gather(device_, a_, scratch.vectors, alpha, x, beta, y, part(of_cells + of_faces), stop);
    if (dot != nullptr)
      cuda::sum_partials(device_, scratch.partial, n_sums, 32, dot, stop);
  }

  /// y = alpha (the element vectors, added up) + beta y.
  static void gather(cuda::CudaContext& device, LatticeOperatorView const& a, ConstPointer<T> vectors, T alpha, ConstPointer<T> x,
                     T beta, Pointer<T> y, T* partial, std::int32_t const* stop) {
    LatticeView const& lattices = a.lattices;
    dim3 const grid(cuda::n_blocks(a.n_cells(), threads), static_cast<unsigned>(lattices.order * lattices.order * lattices.order));
    if (lattices.n_inner() > 0)
      gather_inner_kernel<T><<<grid, threads, 0, device.stream()>>>(a, vectors, alpha, beta, y, stop);
    gather_rim_kernel<T>
        <<<cuda::n_blocks(lattices.n_rim(), threads), threads, 0, device.stream()>>>(a, vectors, alpha, x, beta, y, partial, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  [[nodiscard]] std::int64_t n_blocks() const { return (a_.n_cells() + cells_ - 1) / cells_; }
  [[nodiscard]] std::int64_t rim_blocks() const { return cuda::n_blocks(a_.lattices.n_rim(), threads); }
  [[nodiscard]] int shared_bytes() const {
    int const n1 = a_.points_of_direction();
    return 2 * n1 * n1 * static_cast<int>(sizeof(double)) + 4 * a_.points() * cells_ * static_cast<int>(sizeof(T));
  }

  template <int p>
  void launch_planes(ConstPointer<T> x, Scratch<T> const& scratch, std::int32_t const* stop) const {
    if (a_.stores_k())
      launch_planes<p>(planes_kernel<p, T, true>, x, scratch, stop);
    else
      launch_planes<p>(planes_kernel<p, T, false>, x, scratch, stop);
  }
  template <int p, class Kernel>
  void launch_planes(Kernel* kernel, ConstPointer<T> x, Scratch<T> const& scratch, std::int32_t const* stop) const {
    using P = Planes<p, T>;
    allow_shared_memory(kernel, P::shared_bytes);
    kernel<<<static_cast<unsigned>(a_.stride() / batch), P::threads, P::shared_bytes, device_.stream()>>>(
        a_, plane_tables<p, T>(a_), tensors_, x, scratch.vectors, scratch.partial, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void make_vectors(ConstPointer<T> x, Scratch<T> const& scratch, std::int32_t const* stop) const {
    if constexpr (std::is_same_v<T, Stored>)
      if (in_planes_) {
        std::int32_t const p = a_.lattices.order;
        return p == 1   ? launch_planes<1>(x, scratch, stop)
               : p == 2 ? launch_planes<2>(x, scratch, stop)
               : p == 3 ? launch_planes<3>(x, scratch, stop)
                        : launch_planes<4>(x, scratch, stop);
      }
    allow_shared_memory(any_order_kernel<T, Stored>, shared_bytes());
    any_order_kernel<T, Stored>
        <<<static_cast<unsigned>(n_blocks()), threads, static_cast<unsigned>(shared_bytes()), device_.stream()>>>(
            a_, element_tables(a_.lattices.order), cells_, tensors_, x, scratch.vectors, scratch.partial, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  cuda::CudaContext& device_;
  LatticeOperatorView const& a_;
  Stored const* tensors_;
  bool in_planes_;
  int cells_ = 8;  ///< of a block of any_order_kernel
  std::int64_t n_face_cells_;
};

class CudaLatticeOperator final
    : public ProductsByTemplates<LatticeOperatorKernels, CudaLatticeOperator,
                                 ValuePairList<ValuePair<float, float>, ValuePair<float, double>, ValuePair<double, float>,
                                               ValuePair<double, double>, ValuePair<double, DoubleDouble>>> {
public:
  template <class T, class Stored>
  static void multiply(Context& context, LatticeOperatorView const& a, Stored const* tensors, T alpha, ConstPointer<T> x, T beta,
                       Pointer<T> y) {
    Product<T, Stored>(context, a, tensors)(alpha, x, beta, y, nullptr, nullptr);
  }
  template <class T, class Stored>
  static void multiply_dot(Context& context, LatticeOperatorView const& a, Stored const* tensors, ConstPointer<T> x, Pointer<T> y,
                           T* dot, std::int32_t const* stop) {
    Product<T, Stored>(context, a, tensors)(T(1), x, T(0), y, dot, stop);
  }

  void gather(Context& context, LatticeOperatorView const& a, double const* vectors, double* out) const override {
    if (a.lattices.n_unknowns == 0)
      return;
    LatticeOperatorView whole = a;
    whole.fixed = nullptr;
    Product<double, double>::gather(cuda::of(context), whole, vectors, 1, nullptr, 0, out, nullptr, nullptr);
  }

  void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n, float* out) const override {
    gather_on_rims(context, a, first, n, out);
  }
  void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n,
                    double* out) const override {
    gather_on_rims(context, a, first, n, out);
  }
  void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n,
                    DoubleDouble* out) const override {
    gather_on_rims(context, a, first, n, out);
  }

  void diagonal(Context& context, LatticeOperatorView const& a, double* d) const override {
    if (a.lattices.n_unknowns == 0)
      return;
    auto& device = cuda::of(context);
    AccurateTables const tables = accurate_tables(a.lattices.order);
    Scratch<double> const scratch(device, a);
    diagonal_kernel<<<cuda::n_blocks(a.points() * a.stride(), threads), threads, 0, device.stream()>>>(a, tables, scratch.vectors);
    POISSON_CUDA_CHECK(cudaGetLastError());
    for_faces(a, [&](int face) {
      face_diagonal_kernel<<<face_blocks(a), threads, 0, device.stream()>>>(a, tables.element, face, scratch.vectors);
    });
    gather(context, a, scratch.vectors, d);
  }

  void residual(Context& context, LatticeOperatorView const& a, double const* x, double const* x_low, double const* b,
                double* r) const override {
    if (a.lattices.n_unknowns == 0)
      return;
    auto& device = cuda::of(context);
    AccurateTables const tables = accurate_tables(a.lattices.order);
    Scratch<DoubleDouble> const scratch(device, a);
    ResidualOf const of{x, x_low};
    residual_cells_kernel<<<static_cast<unsigned>(a.n_cells()), residual_threads, 4 * a.points() * sizeof(DoubleDouble),
                            device.stream()>>>(a, tables, of, scratch.vectors);
    POISSON_CUDA_CHECK(cudaGetLastError());
    for_faces(a, [&](int face) {
      residual_faces_kernel<<<face_blocks(a), threads, 0, device.stream()>>>(a, tables.element, face, of, scratch.vectors);
    });
    residual_rows_kernel<<<cuda::n_blocks(a.lattices.n_unknowns, threads), threads, 0, device.stream()>>>(a, scratch.vectors, x,
                                                                                                          x_low, b, r);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  template <class T>
  static void gather_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n, T* out) {
    if (n == 0)
      return;
    auto& device = cuda::of(context);
    Scratch<T> const scratch(device, a);
    sums_on_rims_kernel<T><<<cuda::n_blocks(n, threads), threads, 0, device.stream()>>>(a, scratch.vectors, first, n, out);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  [[nodiscard]] static unsigned face_blocks(LatticeOperatorView const& a) {
    std::int64_t const n1 = a.points_of_direction();
    return cuda::n_blocks(std::int64_t{a.n_mass_faces} * a.lattices.cells * a.lattices.cells * n1 * n1, threads);
  }
};

}  // namespace

LatticeOperatorKernels const& LatticeOperatorKernels::cuda() {
  static CudaLatticeOperator const kernels;
  return kernels;
}

}  // namespace poisson
