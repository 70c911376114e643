#include "gpu/kernels/label_stencil.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/label_stencil_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace poisson {

namespace {

using box_rows::Node;
using box_rows::Sum;

/// A warp works on a strip of lines, a thread on one place of each, while it walks from plane to plane; warps do not wait for each
/// other. Of its 32 places the two at the ends are there for their neighbours. A block's warps have strips side by side, so that
/// they find each other's lines in L1.
constexpr int warps = 4, threads = 32 * warps, tile_x = 30;
/// Products by modes, with fewer numbers a label where cells are cubes of one k each; the lines of a strip, and the blocks of a
/// multiprocessor. A strip computes one line of cells more than it has of nodes. What is kept from plane to plane is in registers.
template <class S, bool cubic_>
struct ByModes {
  static constexpr bool by_edges = false, cubic = cubic_;
  static constexpr int lines = std::is_same_v<S, DoubleDouble> ? 1 : 4, blocks = 3;
};
/// Products by edges of such cubes. On an H200, at 400^3 in double, they take 0.42 of the time: 62 % of the copy bandwidth. Loads,
/// shuffles and other instructions, about 70 a row, bound them.
template <class S>
struct ByEdges {
  static constexpr bool by_edges = true;
  static constexpr int lines = std::is_same_v<S, float> ? 3 : 4, blocks = std::is_same_v<S, float> ? 4 : 3;
};
constexpr int most_in_shared = 256;  ///< labels whose table a block keeps

/// Whether the bytes of a plane in double have numbers of 32 bits, by which for_rows_by_edges finds its places.
bool fits_by_edges(BoxElements const& box) {
  return box.nodes[0] * box.nodes[1] <= std::numeric_limits<std::uint32_t>::max() / std::int64_t{sizeof(double)};
}

struct Tiling {
  std::int64_t planes;  ///< of nodes that a block walks through
  dim3 grid;
};

Tiling tiling_of(BoxElements const& box, int lines, int multiprocessors) {
  auto const tiles = [](std::int64_t n, int size) { return static_cast<unsigned>((n + size - 1) / size); };
  unsigned const x = tiles(box.nodes[0], tile_x), y = tiles(box.nodes[1], warps * lines);
  std::int64_t const all = box.nodes[2], in_plane = std::int64_t{x} * y;
  // Long walks load and compute few planes twice; short ones keep all processors busy on small boxes. Three blocks a
  // multiprocessor, four times.
  std::int64_t const planes = std::clamp<std::int64_t>(all * in_plane / (12 * multiprocessors), 4, 64);
  return {planes, dim3(x * y, static_cast<unsigned>((all + planes - 1) / planes))};
}

__device__ __forceinline__ float shuffle_up(float v) {
  return __shfl_up_sync(0xffffffffu, v, 1);
}
__device__ __forceinline__ double shuffle_up(double v) {
  return __shfl_up_sync(0xffffffffu, v, 1);
}
__device__ __forceinline__ DoubleDouble shuffle_up(DoubleDouble v) {
  return {shuffle_up(v.hi), shuffle_up(v.lo)};
}

/// Calls row(i, (A x)_i, x_i) for the rows of this thread. Every x is read from memory once, but for the rims of strips and walks.
/// The modes of cells in x and y are numbered as in the kernels of the host: 0 the sum over the corners, 1 the difference in x, 2
/// that in y, 3 both. What row.load asks for, where there is such a thing, travels meanwhile.
template <class T, class S, class Way, class Label, class Row>
__device__ __forceinline__ void for_rows_by_modes(LabelStencilView const& a, Label const* __restrict__ labels, std::int64_t planes,
                                                  ConstPointer<T> x, Row const& row) {
  using Weight = std::conditional_t<std::is_same_v<S, float>, float, double>;
  constexpr bool in_shared = std::is_same_v<Label, std::uint8_t>;
  constexpr int lines = Way::lines;
  __shared__ Weight table[in_shared ? 7 * (most_in_shared + 1) : 1];  // labels that are not alike are in different banks, mostly
  if constexpr (in_shared) {
    for (int t = static_cast<int>(threadIdx.x); t < 7 * (a.n_labels + 1); t += threads)
      table[t] = static_cast<Weight>(a.modes[t]);
    __syncthreads();
  }
  auto const mode = [&](std::int32_t label, int m) {
    if constexpr (in_shared)
      return table[7 * label + m - 1];
    else
      return static_cast<Weight>(__ldg(a.modes + 7 * label + m - 1));
  };

  BoxElements const& box = a.box;
  std::int64_t const nx = box.nodes[0], ny = box.nodes[1], nz = box.nodes[2];
  unsigned const tiles_x = static_cast<unsigned>((nx + tile_x - 1) / tile_x);
  int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  std::int64_t const i = std::int64_t{blockIdx.x % tiles_x} * tile_x + lane - 1;
  std::int64_t const y0 = (std::int64_t{blockIdx.x / tiles_x} * warps + warp) * lines - 1;  // the line before the first own one
  std::int64_t const first = blockIdx.y * planes, last = min(first + planes, nz) - 1;
  bool const own_place = lane >= 1 && lane <= tile_x && i < nx, in_line = i >= 0 && i < nx,
             is_cell = i >= 0 && i < nx - 1 && lane < 31, fixed_place = in_line && box_rows::is_dirichlet_plane(box, 0, i);
  unsigned counts = 0, fixed = 0, cells = 0;  // a bit for each line of nodes, or of cells
#pragma unroll
  for (int q = 0; q < lines + 2; ++q) {
    std::int64_t const y = y0 + q;
    bool const exists = in_line && y >= 0 && y < ny;
    bool const is_fixed = exists && (fixed_place || box_rows::is_dirichlet_plane(box, 1, y));
    counts |= exists && !is_fixed ? 1u << q : 0u;
    fixed |= is_fixed ? 1u << q : 0u;
    cells |= is_cell && y >= 0 && y < ny - 1 ? 1u << q : 0u;
  }
  // Distances within a strip fit 32 bits, which saves registers.
  auto const line = static_cast<std::uint32_t>(nx), line_of_cells = line - 1;
  S next[lines + 2];
  std::int32_t next_label[lines + 1];
  auto const fetch = [&](std::int64_t z) {
    bool const is_free = z >= 0 && z < nz && !box_rows::is_dirichlet_plane(box, 2, z);
    std::int64_t const start = (z * ny + y0) * nx + i;
#pragma unroll
    for (int q = 0; q < lines + 2; ++q)
      next[q] =
          is_free && (counts >> q & 1u) != 0 ? static_cast<S>(box_rows::wide(cuda::load_constant(x, start + q * line))) : S(0);
  };
  auto const fetch_labels = [&](std::int64_t z) {
    bool const exists = z >= 0 && z < nz - 1;
    std::int64_t const start = (z * (ny - 1) + y0) * (nx - 1) + i;
#pragma unroll
    for (int q = 0; q < lines + 1; ++q)
      next_label[q] =
          exists && (cells >> q & 1u) != 0 ? static_cast<std::int32_t>(__ldg(labels + start + q * line_of_cells)) : a.n_labels;
  };

  S below[lines + 1][4], carried[lines + 1][4], x_own[lines];
#pragma unroll
  for (int q = 0; q < lines + 1; ++q)
#pragma unroll
    for (int m = 0; m < 4; ++m)
      below[q][m] = carried[q][m] = S(0);
#pragma unroll
  for (int q = 0; q < lines; ++q)
    x_own[q] = S(0);
  fetch(first - 1);
  fetch_labels(-1);  // none
  for (std::int64_t z = first - 1; z <= last + 1; ++z) {
    // The cells of layer z - 1: between the plane of nodes before and this one.
    S now[lines + 2];
    std::int32_t label[lines + 1];
#pragma unroll
    for (int q = 0; q < lines + 2; ++q)
      now[q] = next[q];
#pragma unroll
    for (int q = 0; q < lines + 1; ++q)
      label[q] = next_label[q];
    if (z <= last) {
      fetch(z + 1);
      fetch_labels(z);
    }
    bool const completes = z > first && own_place;
    bool const fixed_plane = box_rows::is_dirichlet_plane(box, 2, z - 1);
    std::int64_t const start = ((z - 1) * ny + y0) * nx + i;
    [[maybe_unused]] cuda::TermsOf<Row> terms[lines];
    if constexpr (cuda::LoadsEarly<Row>) {
#pragma unroll
      for (int q = 0; q < lines; ++q)
        if (completes && y0 + 1 + q < ny)
          terms[q] = row.load(start + (q + 1) * line);
    }
    S sum_before(0), difference_before(0), high_sum(0), high_difference(0);
#pragma unroll
    for (int q = 0; q < lines + 2; ++q) {
      S const after = cuda::shuffle_down(now[q], 1), sum = now[q] + after, difference = after - now[q];
      if (q > 0) {  // the cells between this line and the one before
        S(&b)[4] = below[q - 1];
        S(&c)[4] = carried[q - 1];
        std::int32_t const of = label[q - 1];
        Weight t[7];
        if constexpr (Way::cubic) {
          t[0] = t[1] = t[3] = mode(of, 1);
          t[2] = t[4] = t[5] = mode(of, 3);
          t[6] = mode(of, 7);
        } else {
#pragma unroll
          for (int m = 1; m < 8; ++m)
            t[m - 1] = mode(of, m);
        }
        S const w[4] = {sum_before + sum, difference_before + difference, sum - sum_before, difference - difference_before};
        S total[4];
        {
          S const minus = t[3] * (w[0] - b[0]);
          total[0] = c[0] - minus;
          c[0] = minus;
          b[0] = w[0];
        }
#pragma unroll
        for (int m = 1; m < 4; ++m) {
          S const plus = t[m - 1] * (w[m] + b[m]), rise = w[m] - b[m];
          total[m] = (c[m] + plus) - t[m + 3] * rise;
          c[m] = plus + t[m + 3] * rise;
          b[m] = w[m];
        }
        S const line_sum = high_sum + (total[0] - total[2]), line_difference = high_difference + (total[1] - total[3]);
        high_sum = total[0] + total[2];
        high_difference = total[1] + total[3];
        if (q > 1) {  // the line before is own, and has all that it gets
          S const from_left = shuffle_up(line_sum + line_difference);
          S value = from_left + (line_sum - line_difference);
          std::int64_t const y = y0 + q - 1;
          if (completes && y < ny) {
            std::int64_t const at = start + (q - 1) * line;
            S x_at = x_own[q - 2];
            if (fixed_plane || (fixed >> (q - 1) & 1u) != 0) {
              x_at = static_cast<S>(box_rows::wide(cuda::load_constant(x, at)));
              value = label_rows::dirichlet_row(a, {{i, y, z - 1}}, x_at);
            }
            if constexpr (cuda::LoadsEarly<Row>)
              row(at, value, x_at, terms[q - 2]);
            else
              row(at, value, x_at);
          }
          x_own[q - 2] = now[q - 1];
        }
      }
      sum_before = sum;
      difference_before = difference;
    }
  }
}

/// The same for cubes with one k each, in double or single. Of a cube with k h = 12 c the matrix has 5 c - c on the diagonal. With
/// S the sum of x over the corners of a cell,
///   (A x)_i = sum over its 8 cells of c (5 x_i - S) + sum over its 6 edges to nodes j of (the sum of c of the edge's 4 cells) x_j.
/// Nearly 30 additions and multiplications a row. Precondition: fits_by_edges.
template <class T, class S, int lines, class Row>
__device__ __forceinline__ void for_rows_by_edges(LabelStencilView const& a, std::uint8_t const* __restrict__ labels,
                                                  std::int64_t planes, T const* __restrict__ x, Row const& row) {
  __shared__ S table[most_in_shared + 1];
  for (int t = static_cast<int>(threadIdx.x); t <= a.n_labels; t += threads)
    table[t] = static_cast<S>(4 * a.modes[7 * t + 6]);
  __syncthreads();

  BoxElements const& box = a.box;
  // Indices in a plane fit 32 bits, which saves registers.
  auto const nx = static_cast<std::int32_t>(box.nodes[0]), ny = static_cast<std::int32_t>(box.nodes[1]),
             nz = static_cast<std::int32_t>(box.nodes[2]);
  std::int32_t const tiles_x = (nx + tile_x - 1) / tile_x;
  int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  std::int32_t const i = static_cast<std::int32_t>(blockIdx.x) % tiles_x * tile_x + lane - 1,
                     y0 =
                         (static_cast<std::int32_t>(blockIdx.x) / tiles_x * warps + warp) * lines - 1,  // before the first own line
      first = static_cast<std::int32_t>(blockIdx.y * planes), last = min(first + static_cast<std::int32_t>(planes), nz) - 1;
  bool const in_line = i >= 0 && i < nx;
  unsigned counts = 0, cells = 0, own = 0,
           fixed = 0;  // a bit for each line of nodes, of cells, of own rows, and of their fixed ones
  // Where lines are in a plane, in bytes. Every load has an address: no branch is around it. What does not count is put out later.
  std::uint32_t nodes_at[lines + 2], cells_at[lines + 1];
#pragma unroll
  for (int q = 0; q < lines + 2; ++q) {
    std::int32_t const y = y0 + q;
    bool const exists = in_line && y >= 0 && y < ny,
               is_fixed = exists && (box_rows::is_dirichlet_plane(box, 0, i) || box_rows::is_dirichlet_plane(box, 1, y)),
               is_own = exists && q > 0 && q <= lines && lane >= 1 && lane <= tile_x;
    counts |= exists && !is_fixed ? 1u << q : 0u;
    own |= is_own ? 1u << q : 0u;
    fixed |= is_own && is_fixed ? 1u << q : 0u;
    nodes_at[q] = static_cast<std::uint32_t>(min(max(y, 0), ny - 1) * nx + min(max(i, 0), nx - 1)) * std::uint32_t{sizeof(T)};
    if (q <= lines) {
      cells |= i >= 0 && i < nx - 1 && lane < 31 && y >= 0 && y < ny - 1 ? 1u << q : 0u;
      cells_at[q] = static_cast<std::uint32_t>(min(max(y, 0), ny - 2) * (nx - 1) + min(max(i, 0), nx - 2));
    }
  }
  S next[lines + 2];
  std::uint32_t next_label[lines + 1];
  unsigned plane_counts = 0, layer_cells = 0;
  auto const fetch = [&](std::int32_t z) {
    auto const* const plane = reinterpret_cast<char const*>(x + std::int64_t{min(max(z, 0), nz - 1)} * ny * nx);
#pragma unroll
    for (int q = 0; q < lines + 2; ++q)
      next[q] = static_cast<S>(__ldg(reinterpret_cast<T const*>(plane + nodes_at[q])));
    plane_counts = z >= 0 && z < nz && !box_rows::is_dirichlet_plane(box, 2, z) ? counts : 0;
  };
  auto const fetch_labels = [&](std::int32_t z) {
    std::uint8_t const* const plane = labels + std::int64_t{min(max(z, 0), nz - 2)} * (ny - 1) * (nx - 1);
#pragma unroll
    for (int q = 0; q < lines + 1; ++q)
      next_label[q] = __ldg(plane + cells_at[q]);
    layer_cells = z >= 0 && z < nz - 1 ? cells : 0;
  };

  // Of the plane before: x at the nodes, and the sums over a cell's four nodes in it. Of the layer of cells before it: sums of c
  // over the cells beside edges in x and y, of c S over a column's cells, and what comes along edges in z.
  S before[lines + 2], before_after[lines], of_faces[lines + 1], beside_x[lines], beside_y[lines + 1], of_column[lines],
      along_z[lines];
#pragma unroll
  for (int q = 0; q < lines + 2; ++q)
    before[q] = S(0);
#pragma unroll
  for (int q = 0; q < lines + 1; ++q)
    of_faces[q] = beside_y[q] = S(0);
#pragma unroll
  for (int q = 0; q < lines; ++q)
    before_after[q] = beside_x[q] = of_column[q] = along_z[q] = S(0);
  fetch(first - 1);
  fetch_labels(-1);  // none
#pragma unroll 1
  for (std::int32_t z = first - 1; z <= last + 1; ++z) {
    S now[lines + 2];
    std::uint32_t label[lines + 1];
#pragma unroll
    for (int q = 0; q < lines + 2; ++q)
      now[q] = (plane_counts >> q & 1u) != 0 ? next[q] : S(0);
#pragma unroll
    for (int q = 0; q < lines + 1; ++q)
      label[q] = (layer_cells >> q & 1u) != 0 ? next_label[q] : static_cast<std::uint32_t>(a.n_labels);
    fetch(z + 1);
    fetch_labels(z);
    unsigned const fixed_here = box_rows::is_dirichlet_plane(box, 2, z - 1) ? own : fixed,
                   completes = z > first ? own & ~fixed_here : 0;
    std::int64_t const start = (std::int64_t{z - 1} * ny + y0) * nx + i;
    [[maybe_unused]] cuda::TermsOf<Row> terms[lines];
    if constexpr (cuda::LoadsEarly<Row>) {
#pragma unroll
      for (int q = 0; q < lines; ++q)
        if ((completes >> (q + 1) & 1u) != 0)
          terms[q] = row.load(start + (q + 1) * nx);
    }
    S pair_before(0), after_before(0), c_before(0), c_pair_before(0), weighted_before(0);
#pragma unroll
    for (int q = 0; q < lines + 2; ++q) {
      S const after = cuda::shuffle_down(now[q], 1), pair = now[q] + after;
      if (q > 0) {  // the cells between this line and the one before
        S const c = table[label[q - 1]], c_pair = c + shuffle_up(c);
        S const of_face = pair_before + pair, weighted = c * (of_faces[q - 1] + of_face);
        of_faces[q - 1] = of_face;
        if (q > 1) {  // the line before is own, and has all that it gets
          int const o = q - 2;
          S const x_at = before[q - 1], c_x = c_before + c, edge_x = beside_x[o] + c_x, of_layer = weighted_before + weighted,
                  column = of_column[o] + of_layer, c_z = c_pair_before + c_pair;
          S value = shuffle_up(edge_x * x_at - column) + along_z[o];
          value += edge_x * before_after[o] - column;
          value += c_z * now[q - 1];
          value += (beside_y[o] + c_pair_before) * before[o];
          value += (beside_y[q - 1] + c_pair) * before[q];
          value += S(5) * ((beside_y[o] + beside_y[q - 1]) + c_z) * x_at;
          if ((completes >> (q - 1) & 1u) != 0) {
            if constexpr (cuda::LoadsEarly<Row>)
              row(start + (q - 1) * nx, value, x_at, terms[o]);
            else
              row(start + (q - 1) * nx, value, x_at);
          }
          beside_x[o] = c_x;
          beside_y[o] = c_pair_before;
          of_column[o] = of_layer;
          along_z[o] = c_z * x_at;
          before[o] = now[o];
          before_after[o] = after_before;
        }
        c_before = c;
        c_pair_before = c_pair;
        weighted_before = weighted;
      }
      pair_before = pair;
      after_before = after;
    }
    beside_y[lines] = c_pair_before;
    before[lines] = now[lines];
    before[lines + 1] = now[lines + 1];
    if (z > first && fixed_here != 0)
#pragma unroll 1
      for (int q = 1; q <= lines; ++q)
        if ((fixed_here >> q & 1u) != 0) {
          std::int64_t const at = start + q * nx;
          S const x_at = static_cast<S>(x[at]);
          row(at, label_rows::dirichlet_row(a, {{i, y0 + q, z - 1}}, x_at), x_at);
        }
  }
}

template <class T, class S, class Way, class Label, class Row>
__device__ __forceinline__ void for_rows(LabelStencilView const& a, Label const* __restrict__ labels, std::int64_t planes,
                                         ConstPointer<T> x, Row const& row) {
  if constexpr (Way::by_edges)
    for_rows_by_edges<T, S, Way::lines>(a, labels, planes, x, row);
  else
    for_rows_by_modes<T, S, Way>(a, labels, planes, x, row);
}

template <class T, class Way, class Label>
__global__ void __launch_bounds__(threads, Way::blocks)
    product_kernel(LabelStencilView const a, Label const* __restrict__ labels, std::int64_t planes, T alpha, ConstPointer<T> x,
                   T beta, Pointer<T> y) {
  for_rows<T, Sum<T>, Way>(a, labels, planes, x, [&](std::int64_t i, Sum<T> value, Sum<T>) {
    cuda::store_streaming(y, i, cuda::combine(alpha, static_cast<T>(value), beta, y, i));
  });
}

template <class T, class Way, class Label>
__global__ void __launch_bounds__(threads, Way::blocks)
    product_dot_kernel(LabelStencilView const a, Label const* __restrict__ labels, std::int64_t planes, ConstPointer<T> x,
                       Pointer<T> y, T* dot, std::int32_t const* stop, T* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  DotSum<T> sum{};
  for_rows<T, Sum<T>, Way>(a, labels, planes, x, [&](std::int64_t i, Sum<T> value, Sum<T> x_i) {
    T const rounded = static_cast<T>(value);
    cuda::store_streaming(y, i, rounded);
    sum.add(static_cast<T>(x_i), rounded);
  });
  T sums[1] = {sum.value()};
  if (cuda::grid_sum<threads>(sums, partial, counter))
    *dot = sums[0];
}

template <class V, class Way, class Label, class Row>
__global__ void __launch_bounds__(threads, Way::blocks)
    rows_kernel(LabelStencilView const a, Label const* __restrict__ labels, std::int64_t planes, V const* __restrict__ x,
                Row const row, std::int32_t const* stop) {
  if (*stop == 0)
    for_rows<V, V, Way>(a, labels, planes, x, row);
}

/// Calls action(row, node) for rows from `first` to before `end`, a thread each.
template <class Action>
__global__ void __launch_bounds__(256)
    nodes_kernel(BoxElements const box, std::int64_t first, std::int64_t end, Action const action) {
  std::int64_t const row = first + std::int64_t{blockIdx.x} * 256 + threadIdx.x, nx = box.nodes[0], ny = box.nodes[1];
  if (row < end)
    action(row, Node{{row % nx, row / nx % ny, row / (nx * ny)}});
}

template <class V>
struct FillRow {
  LabelStencilView a;
  std::int64_t first, end;
  V* values;
  __device__ void operator()(std::int64_t, Node const& node) const { label_rows::fill_row(a, first, end, node, values); }
};
template <class V>
struct DiagonalOfRow {
  LabelStencilView a;
  V* d;
  __device__ void operator()(std::int64_t row, Node const& node) const {
    d[row] = static_cast<V>(label_rows::entry(a, node, 0, 0, 0));
  }
};
struct CheckedRow {
  LabelStencilView a;
  double const *x, *x_low, *b;
  double* r;
  __device__ void operator()(std::int64_t row, Node const& node) const {
    r[row] = label_rows::residual_of_row(a, node, x, x_low, b[row]);
  }
};

class CudaLabelStencil final : public LabelStencilKernels {
public:
  void product(Context& context, LabelStencilView const& a, float alpha, float const* x, float beta, float* y) const override {
    multiply<float>(context, a, alpha, x, beta, y);
  }
  void product(Context& context, LabelStencilView const& a, double alpha, double const* x, double beta, double* y) const override {
    multiply<double>(context, a, alpha, x, beta, y);
  }
  void product(Context& context, LabelStencilView const& a, DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta,
               Pointer<DoubleDouble> y) const override {
    multiply<DoubleDouble>(context, a, alpha, x, beta, y);
  }
  void product_dot(Context& context, LabelStencilView const& a, float const* x, float* y, float* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<float>(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, LabelStencilView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<double>(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, LabelStencilView const& a, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y,
                   DoubleDouble* dot, std::int32_t const* stop) const override {
    multiply_dot<DoubleDouble>(context, a, x, y, dot, stop);
  }
  void smooth(Context& context, LabelStencilView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    finish_rows(context, a, x, SmoothingRow<float>{step}, stop);
  }
  void smooth(Context& context, LabelStencilView const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const override {
    finish_rows(context, a, x, SmoothingRow<double>{step}, stop);
  }
  void subtract_product(Context& context, LabelStencilView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    finish_rows(context, a, x, ResidualRow<float>{b, r}, stop);
  }
  void subtract_product(Context& context, LabelStencilView const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const override {
    finish_rows(context, a, x, ResidualRow<double>{b, r}, stop);
  }
  void fill_diagonals(Context& context, LabelStencilView const& a, std::int64_t first, std::int64_t end,
                      float* values) const override {
    for_nodes(context, a, first, end, FillRow<float>{a, first, end, values});
  }
  void fill_diagonals(Context& context, LabelStencilView const& a, std::int64_t first, std::int64_t end,
                      double* values) const override {
    for_nodes(context, a, first, end, FillRow<double>{a, first, end, values});
  }
  void diagonal(Context& context, LabelStencilView const& a, float* d) const override {
    for_nodes(context, a, 0, a.box.nodes[2], DiagonalOfRow<float>{a, d});
  }
  void diagonal(Context& context, LabelStencilView const& a, double* d) const override {
    for_nodes(context, a, 0, a.box.nodes[2], DiagonalOfRow<double>{a, d});
  }
  void residual(Context& context, LabelStencilView const& a, double const* x, double const* x_low, double const* b,
                double* r) const override {
    for_nodes(context, a, 0, a.box.nodes[2], CheckedRow{a, x, x_low, b, r});
  }

private:
  /// In the planes first <= z < end.
  template <class Action>
  static void for_nodes(Context& context, LabelStencilView const& a, std::int64_t first, std::int64_t end, Action const& action) {
    std::int64_t const plane = a.box.nodes[0] * a.box.nodes[1];
    nodes_kernel<<<cuda::n_blocks((end - first) * plane, 256), 256, 0, cuda::of(context).stream()>>>(a.box, first * plane,
                                                                                                     end * plane, action);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  /// Calls launch(labels, way).
  template <class S, class Launch>
  static void with_labels(LabelStencilView const& a, Launch const& launch) {
    if (a.bytes == nullptr)
      launch(a.words, ByModes<S, false>());
    else if (!a.cubic || !fits_by_edges(a.box))
      launch(a.bytes, ByModes<S, false>());
    else if constexpr (std::is_same_v<S, DoubleDouble>)
      launch(a.bytes, ByModes<S, true>());
    else
      launch(a.bytes, ByEdges<S>());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  template <class V, class Row>
  static void finish_rows(Context& context, LabelStencilView const& a, V const* x, Row const& row, std::int32_t const* stop) {
    auto& device = cuda::of(context);
    with_labels<V>(a, [&]<class Way>(auto const* labels, Way) {
      Tiling const tiling = tiling_of(a.box, Way::lines, device.multiprocessors());
      rows_kernel<V, Way><<<tiling.grid, threads, 0, device.stream()>>>(a, labels, tiling.planes, x, row, stop);
    });
  }

  template <class T>
  static void multiply(Context& context, LabelStencilView const& a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    auto& device = cuda::of(context);
    with_labels<Sum<T>>(a, [&]<class Way>(auto const* labels, Way) {
      Tiling const tiling = tiling_of(a.box, Way::lines, device.multiprocessors());
      product_kernel<T, Way><<<tiling.grid, threads, 0, device.stream()>>>(a, labels, tiling.planes, alpha, x, beta, y);
    });
  }

  template <class T>
  static void multiply_dot(Context& context, LabelStencilView const& a, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    auto& device = cuda::of(context);
    with_labels<Sum<T>>(a, [&]<class Way>(auto const* labels, Way) {
      Tiling const tiling = tiling_of(a.box, Way::lines, device.multiprocessors());
      T* const partial = device.partial_sums<T>(std::int64_t{tiling.grid.x} * tiling.grid.y);
      product_dot_kernel<T, Way><<<tiling.grid, threads, 0, device.stream()>>>(a, labels, tiling.planes, x, y, dot, stop, partial,
                                                                               device.block_counter());
    });
  }
};

}  // namespace

LabelStencilKernels const& LabelStencilKernels::cuda() {
  static CudaLabelStencil const kernels;
  return kernels;
}

}  // namespace poisson
