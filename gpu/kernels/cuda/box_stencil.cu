#include "gpu/kernels/box_stencil.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>

namespace poisson {

namespace {

using box_rows::Node;
using box_rows::Sum;

/// Inner nodes of a plane that a block works on, a thread each, while it walks from plane to plane.
constexpr int tile_x = 32, tile_y = 8, threads = tile_x * tile_y;
constexpr int halo_x = tile_x + 2, halo = halo_x * (tile_y + 2), rounds = (halo + threads - 1) / threads;

struct Tiling {
  std::int64_t planes;  ///< of inner nodes that a block walks through
  dim3 grid;
};

Tiling tiling_of(BoxElements const& box, int multiprocessors) {
  auto const tiles = [](std::int64_t n, int size) { return static_cast<unsigned>((n - 2 + size - 1) / size); };
  unsigned const x = tiles(box.nodes[0], tile_x), y = tiles(box.nodes[1], tile_y);
  std::int64_t const inner = box.nodes[2] - 2, in_plane = std::int64_t{x} * y;
  // Long walks load few planes twice; short ones keep all processors busy on small boxes. Eight blocks a multiprocessor, four
  // times.
  std::int64_t const planes = std::clamp<std::int64_t>(inner * in_plane / (32 * multiprocessors), 4, 64);
  return {planes, dim3(x * y, static_cast<unsigned>((inner + planes - 1) / planes))};
}

/// Calls row(i, (A x)_i, x_i) for the inner rows of this thread. Every x is read from memory once, but for the rims of tiles and
/// walks: a plane's contribution to the rows above and below, and to its own, is kept in registers until these are complete. What
/// row.load asks for, where there is such a thing, travels meanwhile.
template <class T, class S = Sum<T>, class Row>
__device__ __forceinline__ void for_inner_rows(BoxStencilView const& a, std::int64_t planes, ConstPointer<T> x, Row const& row) {
  __shared__ S tile[2][halo];
  BoxElements const& box = a.box;
  std::int64_t const nx = box.nodes[0], ny = box.nodes[1], nz = box.nodes[2];
  unsigned const tiles_x = static_cast<unsigned>((nx - 2 + tile_x - 1) / tile_x);
  std::int64_t const x0 = std::int64_t{blockIdx.x % tiles_x} * tile_x, y0 = std::int64_t{blockIdx.x / tiles_x} * tile_y;
  int const tx = threadIdx.x % tile_x, ty = threadIdx.x / tile_x;
  std::int64_t const first = 1 + blockIdx.y * planes, last = min(first + planes - 1, nz - 2);
  bool const works = x0 + 1 + tx <= nx - 2 && y0 + 1 + ty <= ny - 2;
  // Where this thread's part of the tile and its rim is in a plane; -1 where nothing is, or a Dirichlet node, which counts as 0.
  std::int64_t place[rounds];
#pragma unroll
  for (int r = 0; r < rounds; ++r) {
    int const t = static_cast<int>(threadIdx.x) + r * threads;
    std::int64_t const i = x0 + t % halo_x, j = y0 + t / halo_x;
    bool const exists = t < halo && i < nx && j < ny;
    place[r] = exists && !box_rows::is_dirichlet_plane(box, 0, i) && !box_rows::is_dirichlet_plane(box, 1, j) ? j * nx + i : -1;
  }
  S next[rounds];
  auto const fetch = [&](std::int64_t z) {
    bool const counts = !box_rows::is_dirichlet_plane(box, 2, z);
#pragma unroll
    for (int r = 0; r < rounds; ++r)
      next[r] = counts && place[r] >= 0 ? static_cast<S>(box_rows::wide(cuda::load_constant(x, z * nx * ny + place[r]))) : S(0);
  };
  // In the arithmetic of the sums; those of DoubleDouble have weights in double.
  using Weight = std::conditional_t<std::is_same_v<S, float>, float, double>;
  Weight w[8];
#pragma unroll
  for (int k = 0; k < 8; ++k)
    w[k] = static_cast<Weight>(a.weights[k]);
  int const at = (ty + 1) * halo_x + tx + 1;
  S below(0), own(0), own_to_neighbours(0), x_own(0);
  fetch(first - 1);
  for (std::int64_t z = first - 1; z <= last + 1; ++z) {
    S* const plane = tile[z & 1];
#pragma unroll
    for (int r = 0; r < rounds; ++r)
      if (static_cast<int>(threadIdx.x) + r * threads < halo)
        plane[threadIdx.x + r * threads] = next[r];
    __syncthreads();
    if (z <= last)
      fetch(z + 1);
    bool const completes = z > first && works;
    std::int64_t const i = ((z - 1) * ny + y0 + 1 + ty) * nx + x0 + 1 + tx;
    [[maybe_unused]] auto const terms = [&] {
      if constexpr (cuda::LoadsEarly<Row>)
        return completes ? row.load(i, static_cast<S>(a.weights[0])) : typename Row::Terms{};
      else
        return 0;
    }();
    S const centre = plane[at], in_x = plane[at - 1] + plane[at + 1], in_y = plane[at - halo_x] + plane[at + halo_x],
            corners = (plane[at - halo_x - 1] + plane[at - halo_x + 1]) + (plane[at + halo_x - 1] + plane[at + halo_x + 1]);
    S const to_own = w[0] * centre + w[1] * in_x + w[2] * in_y + w[3] * corners;
    S const to_neighbours = w[4] * centre + w[5] * in_x + w[6] * in_y + w[7] * corners;
    if (completes) {
      if constexpr (cuda::LoadsEarly<Row>)
        row(i, below + own + to_neighbours, x_own, terms);
      else
        row(i, below + own + to_neighbours, x_own);
    }
    below = own_to_neighbours;
    own = to_own;
    own_to_neighbours = to_neighbours;
    x_own = centre;
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    product_kernel(BoxStencilView const a, std::int64_t planes, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
  for_inner_rows<T>(a, planes, x, [&](std::int64_t i, Sum<T> value, Sum<T>) {
    cuda::store_streaming(y, i, cuda::combine(alpha, static_cast<T>(value), beta, y, i));
  });
}

template <class T>
__global__ void __launch_bounds__(threads)
    product_dot_kernel(BoxStencilView const a, std::int64_t planes, ConstPointer<T> x, Pointer<T> y, T* dot, T const* of_faces,
                       std::int32_t const* stop, T* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  DotSum<T> sum{};
  for_inner_rows<T>(a, planes, x, [&](std::int64_t i, Sum<T> value, Sum<T> x_i) {
    T const rounded = static_cast<T>(value);
    cuda::store_streaming(y, i, rounded);
    sum.add(static_cast<T>(x_i), rounded);
  });
  T sums[1] = {sum.value()};
  if (cuda::grid_sum<threads>(sums, partial, counter))
    *dot = sums[0] + *of_faces;
}

template <class T>
__global__ void __launch_bounds__(threads)
    face_product_kernel(BoxStencilView const a, box_rows::Shell const shell, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= a.n_face_rows)
    return;
  std::int64_t const i = box_rows::index_of(a.box, shell(t));
  store(y, i, cuda::combine(alpha, static_cast<T>(box_rows::face_row_product<T>(a, t, shell(t), x)), beta, y, i));
}

template <class T>
__global__ void __launch_bounds__(threads)
    face_product_dot_kernel(BoxStencilView const a, box_rows::Shell const shell, ConstPointer<T> x, Pointer<T> y, T* dot,
                            std::int32_t const* stop, T* partial, unsigned* counter) {
  if (*stop != 0)
    return;
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  DotSum<T> sum{};
  if (t < a.n_face_rows) {
    std::int64_t const i = box_rows::index_of(a.box, shell(t));
    T const value = static_cast<T>(box_rows::face_row_product<T>(a, t, shell(t), x));
    store(y, i, value);
    sum.add(load(x, i), value);
  }
  T sums[1] = {sum.value()};
  if (cuda::grid_sum<threads>(sums, partial, counter))
    *dot = sums[0];
}

/// row(i, (A x)_i, x_i) for all inner rows.
template <class V, class Row>
__global__ void __launch_bounds__(threads) inner_rows_kernel(BoxStencilView const a, std::int64_t planes, V const* __restrict__ x,
                                                             Row const row, std::int32_t const* stop) {
  if (*stop == 0)
    for_inner_rows<V, V>(a, planes, x, row);
}
template <class V, class Row>
__global__ void __launch_bounds__(threads) face_rows_kernel(BoxStencilView const a, box_rows::Shell const shell,
                                                            V const* __restrict__ x, Row const row, std::int32_t const* stop) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= a.n_face_rows || *stop != 0)
    return;
  std::int64_t const i = box_rows::index_of(a.box, shell(t));
  row(i, static_cast<V>(box_rows::face_row_product<V>(a, t, shell(t), x)), x[i]);
}

template <class V>
__global__ void __launch_bounds__(threads) inner_diagonals_kernel(BoxStencilView const a, V* __restrict__ values) {
  std::int64_t const n = a.box.n_rows(), row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= n)
    return;
  std::int64_t const nx = a.box.nodes[0], ny = a.box.nodes[1];
  Node const node{{row % nx, row / nx % ny, row / (nx * ny)}};
  if (!box_rows::on_face(a.box, node))
    for (int k = 0; k < half_stencil::diagonals; ++k)
      values[k * n + row] = static_cast<V>(box_rows::inner_diagonal(a, node, k));
}
template <class V>
__global__ void __launch_bounds__(threads)
    face_diagonals_kernel(BoxStencilView const a, box_rows::Shell const shell, V* __restrict__ values) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t < a.n_face_rows)
    for (int k = 0; k < half_stencil::diagonals; ++k)
      values[k * a.box.n_rows() + box_rows::index_of(a.box, shell(t))] = static_cast<V>(a.face_rows[(13 - k) * a.n_face_rows + t]);
}

template <int components>
__global__ void __launch_bounds__(threads)
    fill_kernel(BoxElements const box, __grid_constant__ BoxTables<components> const tables, BoxField const k,
                box_rows::Shell const shell, std::int64_t n, double* __restrict__ rows) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= n)
    return;
  double entries[27], load = 0;
  box_rows::any_row(box, tables, k, BoxField{}, shell(t), entries, load);
  for (int s = 0; s < 27; ++s)
    rows[s * n + t] = entries[s];
}

template <class V>
__global__ void __launch_bounds__(threads) inner_diagonal_kernel(std::int64_t n, double value, V* __restrict__ d) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    d[i] = static_cast<V>(value);
}
template <class V>
__global__ void __launch_bounds__(threads)
    face_diagonal_kernel(BoxStencilView const a, box_rows::Shell const shell, V* __restrict__ d) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t < a.n_face_rows)
    d[box_rows::index_of(a.box, shell(t))] = static_cast<V>(a.face_rows[13 * a.n_face_rows + t]);
}

__global__ void __launch_bounds__(threads)
    inner_residual_kernel(BoxStencilView const a, double const* x, double const* x_low, double const* b, double* r) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= a.box.n_rows())
    return;
  std::int64_t const nx = a.box.nodes[0], ny = a.box.nodes[1];
  Node const node{{row % nx, row / nx % ny, row / (nx * ny)}};
  if (!box_rows::on_face(a.box, node))
    r[row] = box_rows::inner_residual(a, node, x, x_low, b[row]);
}
__global__ void __launch_bounds__(threads) face_residual_kernel(BoxStencilView const a, box_rows::Shell const shell,
                                                                double const* x, double const* x_low, double const* b, double* r) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= a.n_face_rows)
    return;
  std::int64_t const row = box_rows::index_of(a.box, shell(t));
  r[row] = box_rows::face_residual(a, t, row, x, x_low, b[row]);
}

class CudaBoxStencil final : public BoxStencilKernels {
public:
  void product(Context& context, BoxStencilView const& a, float alpha, float const* x, float beta, float* y) const override {
    multiply<float>(context, a, alpha, x, beta, y);
  }
  void product(Context& context, BoxStencilView const& a, double alpha, double const* x, double beta, double* y) const override {
    multiply<double>(context, a, alpha, x, beta, y);
  }
  void product(Context& context, BoxStencilView const& a, DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta,
               Pointer<DoubleDouble> y) const override {
    multiply<DoubleDouble>(context, a, alpha, x, beta, y);
  }
  void product_dot(Context& context, BoxStencilView const& a, float const* x, float* y, float* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<float>(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, BoxStencilView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<double>(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, BoxStencilView const& a, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y,
                   DoubleDouble* dot, std::int32_t const* stop) const override {
    multiply_dot<DoubleDouble>(context, a, x, y, dot, stop);
  }

  void fill_face_rows(Context& context, BoxElements const& box, int components, BoxField const& k, double* rows) const override {
    box_rows::Shell const shell(box, 0, box.nodes[2], 1);
    std::int64_t const n = shell.size();
    cudaStream_t const stream = cuda::of(context).stream();
    if (components == 1)
      fill_kernel<1><<<cuda::n_blocks(n, threads), threads, 0, stream>>>(box, box_tables<1>(box.cell), k, shell, n, rows);
    else
      fill_kernel<3><<<cuda::n_blocks(n, threads), threads, 0, stream>>>(box, box_tables<3>(box.cell), k, shell, n, rows);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void smooth(Context& context, BoxStencilView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    for_rows(context, a, x, SmoothingRow<float>{step}, stop);
  }
  void smooth(Context& context, BoxStencilView const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const override {
    for_rows(context, a, x, SmoothingRow<double>{step}, stop);
  }
  void subtract_product(Context& context, BoxStencilView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    for_rows(context, a, x, ResidualRow<float>{b, r}, stop);
  }
  void subtract_product(Context& context, BoxStencilView const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const override {
    for_rows(context, a, x, ResidualRow<double>{b, r}, stop);
  }
  void fill_diagonals(Context& context, BoxStencilView const& a, float* values) const override { fill(context, a, values); }
  void fill_diagonals(Context& context, BoxStencilView const& a, double* values) const override { fill(context, a, values); }

  void diagonal(Context& context, BoxStencilView const& a, float* d) const override { fill_diagonal(context, a, d); }
  void diagonal(Context& context, BoxStencilView const& a, double* d) const override { fill_diagonal(context, a, d); }

  void residual(Context& context, BoxStencilView const& a, double const* x, double const* x_low, double const* b,
                double* r) const override {
    cudaStream_t const stream = cuda::of(context).stream();
    inner_residual_kernel<<<cuda::n_blocks(a.box.n_rows(), threads), threads, 0, stream>>>(a, x, x_low, b, r);
    face_residual_kernel<<<cuda::n_blocks(a.n_face_rows, threads), threads, 0, stream>>>(a, shell_of(a), x, x_low, b, r);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  static box_rows::Shell shell_of(BoxStencilView const& a) { return {a.box, 0, a.box.nodes[2], 1}; }

  template <class V, class Row>
  static void for_rows(Context& context, BoxStencilView const& a, V const* x, Row const& row, std::int32_t const* stop) {
    auto& device = cuda::of(context);
    Tiling const tiling = tiling_of(a.box, device.multiprocessors());
    face_rows_kernel<<<cuda::n_blocks(a.n_face_rows, threads), threads, 0, device.stream()>>>(a, shell_of(a), x, row, stop);
    inner_rows_kernel<<<tiling.grid, threads, 0, device.stream()>>>(a, tiling.planes, x, row, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  template <class V>
  static void fill_diagonal(Context& context, BoxStencilView const& a, V* d) {
    cudaStream_t const stream = cuda::of(context).stream();
    inner_diagonal_kernel<<<cuda::n_blocks(a.box.n_rows(), threads), threads, 0, stream>>>(a.box.n_rows(), a.weights[0], d);
    face_diagonal_kernel<<<cuda::n_blocks(a.n_face_rows, threads), threads, 0, stream>>>(a, shell_of(a), d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  template <class V>
  static void fill(Context& context, BoxStencilView const& a, V* values) {
    cudaStream_t const stream = cuda::of(context).stream();
    inner_diagonals_kernel<<<cuda::n_blocks(a.box.n_rows(), threads), threads, 0, stream>>>(a, values);
    face_diagonals_kernel<<<cuda::n_blocks(a.n_face_rows, threads), threads, 0, stream>>>(a, shell_of(a), values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  template <class T>
  static void multiply(Context& context, BoxStencilView const& a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    auto& device = cuda::of(context);
    Tiling const tiling = tiling_of(a.box, device.multiprocessors());
    face_product_kernel<T>
        <<<cuda::n_blocks(a.n_face_rows, threads), threads, 0, device.stream()>>>(a, shell_of(a), alpha, x, beta, y);
    product_kernel<T><<<tiling.grid, threads, 0, device.stream()>>>(a, tiling.planes, alpha, x, beta, y);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  /// The sum over rows on faces comes first. Both kernels use the same partial sums, one after the other; it waits behind them.
  template <class T>
  static void multiply_dot(Context& context, BoxStencilView const& a, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    auto& device = cuda::of(context);
    Tiling const tiling = tiling_of(a.box, device.multiprocessors());
    unsigned const of_faces = cuda::n_blocks(a.n_face_rows, threads);
    std::int64_t const blocks = std::max<std::int64_t>(std::int64_t{tiling.grid.x} * tiling.grid.y, of_faces);
    T* const partial = device.partial_sums<T>(blocks + 1);
    face_product_dot_kernel<T>
        <<<of_faces, threads, 0, device.stream()>>>(a, shell_of(a), x, y, partial + blocks, stop, partial, device.block_counter());
    product_dot_kernel<T><<<tiling.grid, threads, 0, device.stream()>>>(a, tiling.planes, x, y, dot, partial + blocks, stop,
                                                                        partial, device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

BoxStencilKernels const& BoxStencilKernels::cuda() {
  static CudaBoxStencil const kernels;
  return kernels;
}

}  // namespace poisson
