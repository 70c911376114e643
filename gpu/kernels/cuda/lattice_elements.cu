#include "gpu/kernels/lattice_elements.hpp"

#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/lattice_element_rows.hpp"

namespace poisson {

namespace {

using lattice_rows::Place;

constexpr int threads = 256, threads_of_rows = 128;

/// Cell number t of those in the layers listed, whatever their labels.
__device__ __forceinline__ Place cell_of(LatticeElements const& elements, std::int64_t const* listed, std::int64_t t) {
  std::int64_t const of_layer = elements.cells_of_layer();
  std::int32_t const n = elements.lattices.cells, in_layer = static_cast<std::int32_t>(t % of_layer);
  std::int64_t const layer = listed[t / of_layer];
  return {layer / n, {in_layer % n, in_layer / n, static_cast<std::int32_t>(layer % n)}};
}

__device__ __forceinline__ void lower(std::int64_t* failed, std::int64_t found) {
  atomicMin(reinterpret_cast<unsigned long long*>(failed), static_cast<unsigned long long>(found));
}

/// One thread a Gauss point; those of a warp are the same point of neighbouring cells.
template <int stack_size>
__global__ void __launch_bounds__(threads)
    evaluate_kernel(__grid_constant__ LatticeElements const elements, __grid_constant__ MapTables const tables,
                    CellLayers const layers, ListedCells const listed, ExpressionView const code, ValueCheck const check,
                    double* __restrict__ values, std::int64_t* failed) {
  std::int64_t const of_layer = elements.cells_of_layer(), t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= listed.n_layers * of_layer)
    return;
  int const n1 = tables.points, q = static_cast<int>(blockIdx.y), qx = q % n1, qy = q / n1 % n1, qz = q / (n1 * n1);
  Place const cell = cell_of(elements, listed.layers, t);
  std::int64_t const number = lattice_rows::number_in(elements, layers, cell.lattice, cell.i[0], cell.i[1], cell.i[2]);
  if (!listed.has(number))
    return;
  double at[3];
  lattice_rows::with_map(elements, tables, cell, [&](auto const& map) {
#pragma unroll
    for (int i = 0; i < 3; ++i)
      at[i] = map.coordinate(i, qx, qy, qz);
  });
  double const value = evaluate<stack_size>(code, at[0], at[1], at[2]);
  values[q * layers.count * of_layer + number] = value;
  if (!passes(check, value))
    lower(failed, elements.points() * (layers.first * of_layer + number) + q);
}

/// One thread a plane of points of a cell.
__global__ void __launch_bounds__(threads)
    tensors_kernel(__grid_constant__ LatticeElements const elements, __grid_constant__ MapTables const tables,
                   CellLayers const layers, ListedCells const listed, int components, __grid_constant__ LatticeCoefficient const k,
                   LatticeField const f, double shift, LatticeTensors const tensors, double* __restrict__ load,
                   std::int64_t* inverted, std::int64_t* not_definite) {
  std::int64_t const of_layer = elements.cells_of_layer(), t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= listed.n_layers * of_layer)
    return;
  int const qz = static_cast<int>(blockIdx.y);
  Place const cell = cell_of(elements, listed.layers, t);
  std::int64_t const number = lattice_rows::number_in(elements, layers, cell.lattice, cell.i[0], cell.i[1], cell.i[2]);
  if (!listed.has(number))
    return;
  lattice_rows::TensorFindings const found = lattice_rows::with_map(elements, tables, cell, [&](auto const& map) {
    return lattice_rows::store_tensors(elements, map, qz, layers, components, k, f, shift, number, tensors, load);
  });
  std::int64_t const first_point = elements.points() * (layers.first * of_layer + number);
  if (found.inverted)
    lower(inverted, first_point + qz * tables.points * tables.points);
  if (found.not_definite >= 0)
    lower(not_definite, first_point + found.not_definite);
}

/// One warp a line.
__global__ void __launch_bounds__(threads)
    lines_kernel(int points, std::int64_t n, std::int64_t n_cells, double const* __restrict__ load, double* __restrict__ largest) {
  std::int64_t const line = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (line * n >= n_cells)
    return;
  double most = 0;
  for (std::int64_t x = threadIdx.x % 32; x < n; x += 32)
    most = fmax(most, lattice_rows::absolute_of_cell(points, load, n_cells, line * n + x));
  for (int distance = 16; distance > 0; distance /= 2)
    most = fmax(most, cuda::shuffle_down(most, distance));
  if (threadIdx.x % 32 == 0)
    largest[line] = most;
}

/// One thread a node of a cell; those of a warp are the same node of neighbouring cells. The loads are read from memory once, and
/// by the other nodes of a cell from caches.
__global__ void __launch_bounds__(threads)
    element_loads_kernel(__grid_constant__ ElementTables const tables, std::int64_t first_cell, std::int64_t n_cells,
                         double const* __restrict__ load, std::int64_t stride, double* __restrict__ vectors) {
  int const n1 = tables.points(), points = n1 * n1 * n1;
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x, of_batch = std::int64_t{32} * points;
  std::int64_t const cell = t / of_batch * 32 + t % 32;
  int const a = static_cast<int>(t % of_batch / 32);
  if (cell >= n_cells)
    return;
  double sum = 0;
  for (int q = 0; q < points; ++q)
    sum += lattice_rows::value_at(tables, n1, a, q) * load[q * n_cells + cell];
  vectors[a * stride + first_cell + cell] = sum;
}

__global__ void __launch_bounds__(threads)
    rim_loads_kernel(__grid_constant__ LatticeElements const elements, double* __restrict__ rhs) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= elements.lattices.n_rim())
    return;
  double& entry = rhs[elements.lattices.n_inner() + i];
  entry = elements.fixed[i] != 0 ? 0 : entry + elements.rim_load[i];
}

/// One thread a row. Written: 120 bytes a row. Data at the points are read once from memory, and by the rows around a cell from
/// caches.
__global__ void __launch_bounds__(threads_of_rows)
    deep_rows_kernel(__grid_constant__ LatticeElements const elements, __grid_constant__ LatticeTables const tables,
                     CellLayers const layers, std::int64_t first_plane, std::int64_t n_planes, double const* __restrict__ tensor,
                     double const* __restrict__ load, double* __restrict__ values, double* __restrict__ rhs) {
  std::int32_t const m = elements.lattices.m, inner = m - 4;
  std::int64_t const t = std::int64_t{blockIdx.x} * threads_of_rows + threadIdx.x;
  if (t >= n_planes * inner * inner)
    return;
  std::int32_t const in_plane = static_cast<std::int32_t>(t % (std::int64_t{inner} * inner));
  std::int64_t const plane = first_plane + t / (std::int64_t{inner} * inner);
  Place const node{plane / m, {2 + in_plane % inner, 2 + in_plane / inner, static_cast<std::int32_t>(plane % m)}};
  if (!lattice_rows::is_deep(m, node))
    return;
  double entries[14][1], loads[1];
  lattice_rows::deep_rows(elements, tables, layers, node, tensor, load, entries, loads);
  std::int64_t const row = lattice_rows::row_of(elements, node), n_values = elements.n_values();
#pragma unroll
  for (int s = 0; s < 14; ++s)
    cuda::store_streaming(values + s * n_values, row, entries[s][0]);
  rhs[elements.lattices.inner_unknown(node.lattice, node.i[0], node.i[1], node.i[2])] = loads[0];
}

/// Of a plane of nodes those less than two nodes from the rim: all of them where the plane is, else a ring of two lines around.
__global__ void __launch_bounds__(threads_of_rows)
    rim_rows_kernel(__grid_constant__ LatticeElements const elements, __grid_constant__ LatticeTables const tables,
                    CellLayers const layers, std::int64_t first_plane, double const* __restrict__ tensor,
                    double const* __restrict__ load, double* __restrict__ values, double* __restrict__ rhs,
                    double* __restrict__ rim_rhs) {
  std::int32_t const m = elements.lattices.m;
  std::int64_t const plane = first_plane + blockIdx.y;
  auto const k = static_cast<std::int32_t>(plane % m);
  bool const whole = k < 2 || k >= m - 2;
  std::int32_t const t = static_cast<std::int32_t>(blockIdx.x * threads_of_rows + threadIdx.x);
  Place node{plane / m, {0, 0, k}};
  if (whole) {
    if (t >= m * m)
      return;
    node.i[0] = t % m;
    node.i[1] = t / m;
  } else if (t < 4 * m) {  // the lines 0, 1, m - 2, m - 1
    std::int32_t const line = t / m;
    node.i[0] = t % m;
    node.i[1] = line < 2 ? line : m - 4 + line;
  } else {
    std::int32_t const left = t - 4 * m, column = left % 4;
    node.i[0] = column < 2 ? column : m - 4 + column;
    node.i[1] = 2 + left / 4;
    if (node.i[1] >= m - 2)
      return;
  }
  lattice_rows::store_any_row(elements, tables, layers, node, tensor, load, values, rhs, rim_rhs);
}

__global__ void __launch_bounds__(threads) sum_copies_kernel(__grid_constant__ LatticeElements const elements,
                                                             double const* __restrict__ rim_values, double* __restrict__ out) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < elements.lattices.n_rim())
    out[elements.lattices.n_inner() + i] = lattice_rows::sum_of_copies(elements, rim_values, i);
}

__global__ void __launch_bounds__(threads)
    vertices_kernel(LatticeView const lattices, std::int64_t n, double const* __restrict__ nodes, double* __restrict__ vertices) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    vertices[i] = nodes[place_of_vertex(lattices, i)];
}

class CudaLatticeElements final : public LatticeElementKernels {
public:
  void evaluate(Context& context, LatticeElements const& elements, CellLayers const& layers, ListedCells const& listed,
                ExpressionView code, int depth, ValueCheck check, double* values, std::int64_t* failed) const override {
    std::int64_t const n_cells = listed.n_layers * elements.cells_of_layer();
    if (n_cells == 0)
      return;
    MapTables const tables = map_tables(elements.lattices.order, elements.map_order());
    auto const launch = [&](auto kernel) {
      kernel<<<dim3(cuda::n_blocks(n_cells, threads), static_cast<unsigned>(elements.points())), threads, 0,
               cuda::of(context).stream()>>>(elements, tables, layers, listed, code, check, values, failed);
      POISSON_CUDA_CHECK(cudaGetLastError());
    };
    // The stack is in local memory: a small one stays in L1.
    if (depth <= 4)
      launch(evaluate_kernel<4>);
    else if (depth <= 16)
      launch(evaluate_kernel<16>);
    else
      launch(evaluate_kernel<expression_stack_size>);
  }

  void tensors(Context& context, LatticeElements const& elements, CellLayers const& layers, ListedCells const& listed,
               int components, LatticeCoefficient const& k, LatticeField const& f, double shift, LatticeTensors const& tensors,
               double* load, std::int64_t* inverted, std::int64_t* not_definite) const override {
    std::int64_t const n_cells = listed.n_layers * elements.cells_of_layer();
    if (n_cells == 0)
      return;
    dim3 const grid(cuda::n_blocks(n_cells, threads), static_cast<unsigned>(elements.points_of_direction()));
    tensors_kernel<<<grid, threads, 0, cuda::of(context).stream()>>>(
        elements, map_tables(elements.lattices.order, elements.map_order()), layers, listed, components, k, f, shift, tensors, load,
        inverted, not_definite);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void largest_of_lines(Context& context, LatticeElements const& elements, CellLayers const& layers, double const* load,
                        double* largest) const override {
    std::int64_t const n = elements.lattices.cells, lines = layers.count * n;
    lines_kernel<<<cuda::n_blocks(lines, threads / 32), threads, 0, cuda::of(context).stream()>>>(elements.points(), n, lines * n,
                                                                                                  load, largest);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void element_loads(Context& context, LatticeElements const& elements, CellLayers const& layers, double const* load,
                     std::int64_t stride, double* vectors) const override {
    std::int64_t const of_layer = elements.cells_of_layer(), n_cells = layers.count * of_layer;
    element_loads_kernel<<<cuda::n_blocks((n_cells + 31) / 32 * 32 * elements.points(), threads), threads, 0,
                           cuda::of(context).stream()>>>(element_tables(elements.lattices.order), layers.first * of_layer, n_cells,
                                                         load, stride, vectors);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void add_rim_loads(Context& context, LatticeElements const& elements, double* rhs) const override {
    if (elements.lattices.n_rim() == 0)
      return;
    rim_loads_kernel<<<cuda::n_blocks(elements.lattices.n_rim(), threads), threads, 0, cuda::of(context).stream()>>>(elements, rhs);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void rows(Context& context, LatticeElements const& elements, CellLayers const& layers, std::int64_t first_plane,
            std::int64_t end_plane, double const* tensor, double const* load, double* values, double* rhs,
            double* rim_rhs) const override {
    auto const stream = cuda::of(context).stream();
    std::int64_t const m = elements.lattices.m, inner = m - 4, n_planes = end_plane - first_plane;
    LatticeTables const tables = lattice_tables();
    if (inner > 0)
      deep_rows_kernel<<<cuda::n_blocks(n_planes * inner * inner, threads_of_rows), threads_of_rows, 0, stream>>>(
          elements, tables, layers, first_plane, n_planes, tensor, load, values, rhs);
    POISSON_CUDA_CHECK(cudaGetLastError());
    constexpr std::int64_t most_planes = 65535;  // of a grid in y
    for (std::int64_t first = first_plane; first < end_plane; first += most_planes) {
      dim3 const grid(cuda::n_blocks(m * m, threads_of_rows), static_cast<unsigned>(std::min(most_planes, end_plane - first)));
      rim_rows_kernel<<<grid, threads_of_rows, 0, stream>>>(elements, tables, layers, first, tensor, load, values, rhs, rim_rhs);
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
  }

  void sum_copies(Context& context, LatticeElements const& elements, double const* rim_values, double* out) const override {
    sum_copies_kernel<<<cuda::n_blocks(elements.lattices.n_rim(), threads), threads, 0, cuda::of(context).stream()>>>(
        elements, rim_values, out);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void vertices(Context& context, LatticeView const& lattices, double const* nodes, double* vertices) const override {
    std::int64_t const n = n_vertex_coordinates(lattices);
    if (n == 0)
      return;
    vertices_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(lattices, n, nodes, vertices);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

LatticeElementKernels const& LatticeElementKernels::cuda() {
  static CudaLatticeElements const kernels;
  return kernels;
}

}  // namespace poisson
