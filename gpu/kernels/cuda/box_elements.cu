#include "gpu/kernels/box_elements.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/box_element_rows.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

using box_rows::Node;

constexpr int threads = 256, threads_of_rows = 128;

template <int stack_size>
__global__ void __launch_bounds__(threads) evaluate_kernel(ExpressionView const code, TensorGrid const grid, ValueCheck const check,
                                                           double* __restrict__ values, std::int64_t* failed) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= grid.size())
    return;
  std::int64_t const nx = grid.n[0], ny = grid.n[1];
  double const value =
      evaluate<stack_size>(code, grid.coordinates[0][i % nx], grid.coordinates[1][i / nx % ny], grid.coordinates[2][i / (nx * ny)]);
  values[i] = value;
  if (!passes(check, value))
    atomicMin(reinterpret_cast<unsigned long long*>(failed), static_cast<unsigned long long>(i));
}

__global__ void __launch_bounds__(threads)
    sums_kernel(std::int64_t n, double const* __restrict__ values, double* result, double* partial, unsigned* counter) {
  double sums[2] = {0, 0};
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    double const value = values[i];
    sums[0] += value;
    sums[1] += fabs(value);
  }
  if (cuda::grid_sum<threads>(sums, partial, counter)) {
    result[0] = sums[0];
    result[1] = sums[1];
  }
}

__global__ void __launch_bounds__(threads)
    spread_kernel(std::int64_t cells_x, std::int64_t cells_y, std::int64_t n, std::uint8_t const* __restrict__ labels,
                  double const* __restrict__ table, double* __restrict__ values) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= n)
    return;
  std::int64_t const x = i % (2 * cells_x) / 2, y = i / (2 * cells_x) % (2 * cells_y) / 2, z = i / (4 * cells_x * cells_y) / 2;
  values[i] = table[labels[(z * cells_y + y) * cells_x + x]];
}

__global__ void __launch_bounds__(threads)
    weigh_kernel(TensorGrid const weights, double const* __restrict__ values, double* __restrict__ weighted) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= weights.size())
    return;
  std::int64_t const nx = weights.n[0], ny = weights.n[1];
  weighted[i] =
      values[i] * (weights.coordinates[0][i % nx] * (weights.coordinates[1][i / nx % ny] * weights.coordinates[2][i / (nx * ny)]));
}

__global__ void __launch_bounds__(threads) add_products_kernel(TensorGrid const numbers, double factor, double* values) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= numbers.size())
    return;
  std::int64_t const nx = numbers.n[0], ny = numbers.n[1];
  values[i] +=
      numbers.coordinates[0][i % nx] * (factor * (numbers.coordinates[1][i / nx % ny] * numbers.coordinates[2][i / (nx * ny)]));
}

/// One warp a line.
__global__ void __launch_bounds__(threads) lines_kernel(std::int64_t nx, std::int64_t ny, std::int64_t nz,
                                                        double const* __restrict__ values, double* __restrict__ largest) {
  std::int64_t const line = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (line >= ny * nz)
    return;
  double most = 0;
  for (std::int64_t x = threadIdx.x % 32; x < nx; x += 32)
    most = fmax(most, box_rows::absolute_of_cell(values, 2 * nx, 2 * ny, x, line % ny, line / ny));
  for (int distance = 16; distance > 0; distance /= 2)
    most = fmax(most, cuda::shuffle_down(most, distance));
  if (threadIdx.x % 32 == 0)
    largest[line] = most;
}

/// One warp a line. Read: 8 bytes a point, which the lines around it find in L2.
__global__ void __launch_bounds__(threads)
    lattice_kernel(std::int64_t cells_x, std::int64_t cells_y, std::int64_t cells_z, int steps, double const* __restrict__ values,
                   double* __restrict__ largest) {
  std::int64_t const line = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (line >= cells_y * cells_z)
    return;
  std::int64_t const nx = steps * cells_x + 1, ny = steps * cells_y + 1;
  double most = 0;
  for (std::int64_t z = line / cells_y * steps, end_z = z + steps; z <= end_z; ++z)
    for (std::int64_t y = line % cells_y * steps, end_y = y + steps; y <= end_y; ++y)
      most = fmax(most, box_rows::largest_finite(values + (z * ny + y) * nx, nx, threadIdx.x % 32, 32));
  for (int distance = 16; distance > 0; distance /= 2)
    most = fmax(most, cuda::shuffle_down(most, distance));
  if (threadIdx.x % 32 == 0)
    largest[line] = most;
}

__global__ void __launch_bounds__(threads) definite_kernel(std::int64_t n, BoxField const k, std::int64_t* failed) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n && !box_rows::is_definite(k, i))
    atomicMin(reinterpret_cast<unsigned long long*>(failed), static_cast<unsigned long long>(i));
}

/// One thread a row. Written: 120 bytes a row. k and f at the points are read once from memory and often from L1.
template <int components, bool graded>
__global__ void __launch_bounds__(threads_of_rows)
    deep_rows_kernel(BoxElements const box, __grid_constant__ BoxTables<components> const tables, BoxField const k,
                     BoxField const f, std::int64_t first_plane, double* __restrict__ values, double* __restrict__ rhs) {
  unsigned const of_line = static_cast<unsigned>((box.nodes[0] + threads_of_rows - 1) / threads_of_rows),
                 line = blockIdx.x / of_line;
  unsigned const ny = static_cast<unsigned>(box.nodes[1]);
  Node const node{{std::int64_t{blockIdx.x % of_line} * threads_of_rows + threadIdx.x, line % ny, first_plane + line / ny}};
  if (!box_rows::is_deep(box, node))
    return;
  double entries[14], load = 0;
  box_rows::deep_row<components, graded>(box, tables, k, f, node, entries, load);
  std::int64_t const row = box_rows::index_of(box, node), n = box.n_rows();
  if (values != nullptr)
#pragma unroll
    for (int s = 0; s < 14; ++s)
      cuda::store_streaming(values + s * n, row, entries[s]);
  rhs[row] = load;
}

template <int components, bool graded>
__global__ void __launch_bounds__(threads_of_rows)
    shell_rows_kernel(BoxElements const box, __grid_constant__ BoxTables<components> const tables, BoxField const k,
                      BoxField const f, box_rows::Shell const shell, double* __restrict__ values, double* __restrict__ rhs) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads_of_rows + threadIdx.x;
  if (t >= shell.size())
    return;
  Node const node = shell(t);
  double entries[27], load = 0;
  box_rows::any_row<components, graded>(box, tables, k, f, node, entries, load);
  std::int64_t const row = box_rows::index_of(box, node);
  if (values != nullptr)
    box_rows::store_row(box.n_rows(), row, entries, values);
  rhs[row] = load;
}

__global__ void __launch_bounds__(threads)
    dirichlet_kernel(BoxElements const box, box_rows::Shell const shell, double* __restrict__ x) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= shell.size())
    return;
  Node const node = shell(t);
  if (double value = 0; box_rows::dirichlet_value(box, node, value))
    x[box_rows::index_of(box, node)] = value;
}

template <int components, bool graded>
void make_rows(cuda::CudaContext& device, BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane,
               BoxField const& k, BoxField const& f, double* values, double* rhs) {
  auto const tables = box_tables<components>(box.cell);
  auto const lines = static_cast<unsigned>(box.nodes[1] * (end_plane - first_plane));
  deep_rows_kernel<components, graded>
      <<<cuda::n_blocks(box.nodes[0], threads_of_rows) * lines, threads_of_rows, 0, device.stream()>>>(box, tables, k, f,
                                                                                                       first_plane, values, rhs);
  POISSON_CUDA_CHECK(cudaGetLastError());
  box_rows::Shell const shell(box, first_plane, end_plane);
  if (shell.size() > 0)
    shell_rows_kernel<components, graded><<<cuda::n_blocks(shell.size(), threads_of_rows), threads_of_rows, 0, device.stream()>>>(
        box, tables, k, f, shell, values, rhs);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

class CudaBoxElements final : public BoxElementKernels {
public:
  void evaluate(Context& context, ExpressionView code, int depth, TensorGrid const& grid, ValueCheck check, double* values,
                std::int64_t* failed) const override {
    if (grid.size() == 0)
      return;
    auto const launch = [&](auto kernel) {
      kernel<<<cuda::n_blocks(grid.size(), threads), threads, 0, cuda::of(context).stream()>>>(code, grid, check, values, failed);
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

  FieldSums sums(Context& context, std::int64_t n, double const* values) const override {
    auto& device = cuda::of(context);
    Array<double> result(context, 2);
    unsigned const blocks = std::max(1U, std::min(cuda::n_blocks(n, threads), static_cast<unsigned>(8 * device.multiprocessors())));
    sums_kernel<<<blocks, threads, 0, device.stream()>>>(n, values, result.data(), device.partial_sums<double>(2 * blocks),
                                                         device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
    double host[2];
    result.download(host);
    return {host[0], host[1]};
  }

  void check_definite(Context& context, std::int64_t n, BoxField const& k, std::int64_t* failed) const override {
    if (n == 0)
      return;
    definite_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(n, k, failed);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void spread(Context& context, std::array<std::int64_t, 3> const& cells, std::uint8_t const* labels, double const* table,
              double* values) const override {
    std::int64_t const n = 8 * cells[0] * cells[1] * cells[2];
    spread_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(cells[0], cells[1], n, labels, table,
                                                                                          values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void weigh(Context& context, TensorGrid const& weights, double const* values, double* weighted) const override {
    if (weights.size() == 0)
      return;
    weigh_kernel<<<cuda::n_blocks(weights.size(), threads), threads, 0, cuda::of(context).stream()>>>(weights, values, weighted);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void add_products(Context& context, TensorGrid const& numbers, double factor, double* values) const override {
    add_products_kernel<<<cuda::n_blocks(numbers.size(), threads), threads, 0, cuda::of(context).stream()>>>(numbers, factor,
                                                                                                             values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void largest_of_lines(Context& context, std::array<std::int64_t, 3> const& cells, double const* values,
                        double* largest) const override {
    lines_kernel<<<cuda::n_blocks(cells[1] * cells[2], threads / 32), threads, 0, cuda::of(context).stream()>>>(
        cells[0], cells[1], cells[2], values, largest);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void largest_of_lattice(Context& context, std::array<std::int64_t, 3> const& cells, int steps, double const* values,
                          double* largest) const override {
    lattice_kernel<<<cuda::n_blocks(cells[1] * cells[2], threads / 32), threads, 0, cuda::of(context).stream()>>>(
        cells[0], cells[1], cells[2], steps, values, largest);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void rows(Context& context, BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane, int components,
            BoxField const& k, BoxField const& f, double* values, double* rhs) const override {
    if (box.is_graded() && components == tensor_entries)
      make_rows<tensor_entries, true>(cuda::of(context), box, first_plane, end_plane, k, f, values, rhs);
    else if (box.is_graded())
      make_rows<3, true>(cuda::of(context), box, first_plane, end_plane, k, f, values, rhs);
    else if (components == 1)
      make_rows<1, false>(cuda::of(context), box, first_plane, end_plane, k, f, values, rhs);
    else if (components == tensor_entries)
      make_rows<tensor_entries, false>(cuda::of(context), box, first_plane, end_plane, k, f, values, rhs);
    else
      make_rows<3, false>(cuda::of(context), box, first_plane, end_plane, k, f, values, rhs);
  }

  void set_dirichlet(Context& context, BoxElements const& box, double* x) const override {
    box_rows::Shell const shell(box, 0, box.nodes[2]);
    dirichlet_kernel<<<cuda::n_blocks(shell.size(), threads), threads, 0, cuda::of(context).stream()>>>(box, shell, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

BoxElementKernels const& BoxElementKernels::cuda() {
  static CudaBoxElements const kernels;
  return kernels;
}

}  // namespace poisson
