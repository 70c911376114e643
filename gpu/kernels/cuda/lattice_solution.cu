#include "gpu/kernels/lattice_solution.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/expression.cuh"
#include "gpu/kernels/cuda/extremes.cuh"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace poisson {

namespace {

using cuda::Bits;
using lattice_solution::CellNodes;
using lattice_solution::FirstNode;
using lattice_solution::has_place;
using lattice_solution::NodePlace;

constexpr int threads = 256;

/// What kernels write to the device's memory.
struct Found {
  double sums[4];  ///< as LatticeSums has them
  double largest;
  Bits range[2];  ///< in the order of `ordered`
  std::int64_t inverted, not_finite;
};

/// The value of a function. stack_size 0: it is a constant.
template <int stack_size>
__device__ double value_at(PlaceFunction const& function, double const (&x)[3]) {
  if constexpr (stack_size > 0)
    if (!function.is_constant())
      return cuda::value_of<stack_size>(function.code, x[0], x[1], x[2]);
  return function.constant;
}

/// Where a block keeps the tables and what it knows of a batch of `cells` cells: of a point or node the cells lie side by side.
struct Shared {
  double *tables, *u, *map, *v;
  __device__ Shared(double* memory, LatticeQuadrature const& quadrature, int cells) {
    int const n = quadrature.order + 1, g = quadrature.map_order + 1;
    tables = memory;
    u = tables + quadrature.size();
    map = u + n * n * n * cells;
    v = map + 3 * g * g * g * cells;
  }
  static std::size_t bytes(LatticeQuadrature const& quadrature, int cells) {
    auto const cube = [](std::int32_t n) { return static_cast<std::size_t>(n) * n * n; };
    return sizeof(double) * (static_cast<std::size_t>(quadrature.size()) +
                             static_cast<std::size_t>(cells) *
                                 (cube(quadrature.order + 1) + 3 * cube(quadrature.map_order + 1) + cube(quadrature.n)));
  }
};

/// The sum over functions (a, b, c), n a direction, of their values at a point times numbers that lie `step` apart.
__device__ double interpolated(int n, double const* x, double const* y, double const* z, double const* numbers, int step) {
  double sum = 0;
  for (int c = 0; c < n; ++c) {
    double of_plane = 0;
    for (int b = 0; b < n; ++b) {
      double of_line = 0;
      for (int a = 0; a < n; ++a, numbers += step)
        of_line += x[a] * *numbers;
      of_plane += y[b] * of_line;
    }
    sum += z[c] * of_plane;
  }
  return sum;
}

/// The derivatives of such a sum, from the values and derivatives of the functions.
__device__ void differentiated(int n, double const* x, double const* y, double const* z, double const* by_x, double const* by_y,
                               double const* by_z, double const* numbers, int step, double* out) {
  out[0] = out[1] = out[2] = 0;
  for (int c = 0; c < n; ++c) {
    double of_plane = 0, x_of_plane = 0, y_of_plane = 0;
    for (int b = 0; b < n; ++b) {
      double of_line = 0, x_of_line = 0;
      for (int a = 0; a < n; ++a, numbers += step) {
        of_line += x[a] * *numbers;
        x_of_line += by_x[a] * *numbers;
      }
      of_plane += y[b] * of_line;
      x_of_plane += y[b] * x_of_line;
      y_of_plane += by_y[b] * of_line;
    }
    out[0] += z[c] * x_of_plane;
    out[1] += z[c] * y_of_plane;
    out[2] += by_z[c] * of_plane;
  }
}

/// A block takes a batch of cells at once, a power of two of at most 32: it reads their nodes into shared memory, leaves v at the
/// points there, and differentiates it. A thread has always the same cell of a batch, and neighbouring ones neighbouring cells.
/// Bytes of a cell: 8 p^3 of u and 24 g^3 of coordinates from memory, (p + 1)^3 and (g + 1)^3 times as much from caches.
template <int stack_size>
__global__ void __launch_bounds__(threads)
    sums_kernel(__grid_constant__ LatticeElements const elements, LatticeList const lattices, LatticeQuadrature const quadrature,
                __grid_constant__ LatticeIntegrand const integrand, std::int64_t first_cell, std::int64_t end_cell, int cells,
                Found* found, double* partial, unsigned* counter) {
  extern __shared__ double memory[];
  Shared const shared(memory, quadrature, cells);
  int const m = quadrature.n, n = quadrature.order + 1, g = quadrature.map_order + 1,
            step = quadrature.order / quadrature.map_order;
  int const own = static_cast<int>(threadIdx.x) % cells, first_item = static_cast<int>(threadIdx.x) / cells,
            items = threads / cells;
  for (int i = threadIdx.x; i < quadrature.size(); i += threads)
    shared.tables[i] = quadrature.tables[i];
  double const *const weight = shared.tables + quadrature.weight(), *const derivative = shared.tables + quadrature.derivative(),
                      *const value = shared.tables + quadrature.value(), *const map_value = shared.tables + quadrature.map_value(),
                      *const map_slope = shared.tables + quadrature.map_derivative();
  double sums[4] = {0, 0, 0, 0}, largest = 0, low = INFINITY, high = -INFINITY;
  std::int64_t const side = elements.lattices.cells, of_lattice = side * side * side;
  std::int64_t const batches = (end_cell - first_cell + cells - 1) / cells, points = std::int64_t{m} * m * m;
  for (std::int64_t batch = blockIdx.x; batch < batches; batch += gridDim.x) {
    __syncthreads();  // what follows takes the place of the last batch, and needs the tables
    std::int64_t const number = first_cell + batch * cells + own;
    bool const exists = number < end_cell && lattices.has(number, of_lattice);
    CellNodes const cell(elements, lattices, exists ? number : first_cell);
    for (int i = first_item; i < n * n * n && integrand.u != nullptr; i += items) {
      double const at_node = integrand.u[cell.unknown(elements, i % n, i / n % n, i / (n * n))];
      shared.u[i * cells + own] = at_node;
      low = exists ? fmin(low, at_node) : low;
      high = exists ? fmax(high, at_node) : high;
    }
    double origin[3];
    cell.place(elements, 0, 0, 0, origin);
    for (int i = first_item; i < g * g * g; i += items) {
      double x[3];
      cell.place(elements, step * (i % g), step * (i / g % g), step * (i / (g * g)), x);
#pragma unroll
      for (int d = 0; d < 3; ++d)
        shared.map[(d * g * g * g + i) * cells + own] = x[d] - origin[d];
    }
    __syncthreads();
    auto const place_of = [&](int qx, int qy, int qz, double(&x)[3]) {
#pragma unroll
      for (int d = 0; d < 3; ++d)
        x[d] = origin[d] + interpolated(g, map_value + qx * g, map_value + qy * g, map_value + qz * g,
                                        shared.map + d * g * g * g * cells + own, cells);
    };
    for (int q = first_item; q < points; q += items) {
      int const qx = q % m, qy = q / m % m, qz = q / (m * m);
      double v = 0, x[3] = {0, 0, 0};
      if (integrand.u != nullptr)
        v = interpolated(n, value + qx * n, value + qy * n, value + qz * n, shared.u + own, cells);
      if (stack_size > 0 && !integrand.exact.is_constant())
        place_of(qx, qy, qz, x);
      double const exact = value_at<stack_size>(integrand.exact, x);
      if (exists && !passes(ValueCheck::finite, exact))
        cuda::keep_lowest(&found->not_finite, number * points + q);
      shared.v[q * cells + own] = v - (exact - integrand.shift);
    }
    __syncthreads();
    for (int q = first_item; q < points && exists; q += items) {
      int const qx = q % m, qy = q / m % m, qz = q / (m * m);
      double by[3] = {0, 0, 0};
      for (int i = 0; i < m; ++i) {
        by[0] += derivative[qx * m + i] * shared.v[((qz * m + qy) * m + i) * cells + own];
        by[1] += derivative[qy * m + i] * shared.v[((qz * m + i) * m + qx) * cells + own];
        by[2] += derivative[qz * m + i] * shared.v[((i * m + qy) * m + qx) * cells + own];
      }
      double j[9], c[9];
#pragma unroll
      for (int d = 0; d < 3; ++d)
        differentiated(g, map_value + qx * g, map_value + qy * g, map_value + qz * g, map_slope + qx * g, map_slope + qy * g,
                       map_slope + qz * g, shared.map + d * g * g * g * cells + own, cells, j + 3 * d);
      double const determinant = cofactors_of(j, c);
      if (!(determinant > 0))
        cuda::keep_lowest(&found->inverted, number * points + q);
      double x[3] = {0, 0, 0}, k[tensor_entries];
      bool varies = false;
      for (int d = 0; d < integrand.components; ++d)
        varies = varies || !integrand.k[d].is_constant();
      if (stack_size > 0 && varies)
        place_of(qx, qy, qz, x);
      k[0] = value_at<stack_size>(integrand.k[0], x);
      k[1] = integrand.components == 1 ? k[0] : value_at<stack_size>(integrand.k[1], x);
      k[2] = integrand.components == 1 ? k[0] : value_at<stack_size>(integrand.k[2], x);
      double const v = shared.v[q * cells + own], of_point = weight[qx] * weight[qy] * weight[qz];
      double gradients = 0, along[3];
#pragma unroll
      for (int d = 0; d < 3; ++d) {
        along[d] = c[3 * d] * by[0] + c[3 * d + 1] * by[1] + c[3 * d + 2] * by[2];
        gradients += k[d] * (along[d] * along[d]);
      }
      if (integrand.components == tensor_entries)
#pragma unroll
        for (int e = 3; e < tensor_entries; ++e)
          gradients += 2 * value_at<stack_size>(integrand.k[e], x) * (along[tensor_row(e)] * along[tensor_column(e)]);
      double const volume = of_point * determinant;
      sums[0] += volume;
      sums[1] += volume * v;
      sums[2] += volume * (v * v);
      sums[3] += of_point / determinant * gradients;
      largest = fmax(largest, fabs(v));
    }
  }
  cuda::keep_range_of_warp(found->range, low, high);
  cuda::keep_largest_of_warp(&found->largest, largest);
  if (cuda::grid_sum<threads>(sums, partial, counter))
#pragma unroll
    for (int s = 0; s < 4; ++s)
      found->sums[s] = sums[s];
}

template <int stack_size>
__global__ void __launch_bounds__(threads) nodes_kernel(__grid_constant__ LatticeElements const elements, PlaceFunction const exact,
                                                        double shift, double const* __restrict__ u, Found* found) {
  double largest = 0;
  std::int64_t const stride = std::int64_t{gridDim.x} * threads, n = elements.lattices.n_unknowns;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    if (!has_place(elements, i))
      continue;
    NodePlace const at(elements, i);
    double const value = value_at<stack_size>(exact, at.x);
    if (!passes(ValueCheck::finite, value))
      cuda::keep_lowest(&found->not_finite, i);
    largest = fmax(largest, fabs(u[i] - (value - shift)));
  }
  cuda::keep_largest_of_warp(&found->largest, largest);
}

/// The first of the nodes that the threads of a block have found; the result is valid in thread 0.
__device__ FirstNode first_of_block(FirstNode node) {
  __shared__ FirstNode of_thread[threads];
  __syncthreads();
  of_thread[threadIdx.x] = node;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half)
      of_thread[threadIdx.x].add(of_thread[threadIdx.x + half]);
  }
  return threadIdx.x == 0 ? of_thread[0] : node;
}

/// of_block: two nodes of every block, the first with a low value and the first with a high one.
__global__ void __launch_bounds__(threads)
    places_kernel(__grid_constant__ LatticeElements const elements, double const* __restrict__ u, double low, double high,
                  FirstNode* of_block) {
  FirstNode first_low{{0, 0, 0}, -1}, first_high{{0, 0, 0}, -1};
  std::int64_t const stride = std::int64_t{gridDim.x} * threads, n = elements.lattices.n_unknowns;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    double const v = u[i];
    if (v <= low)
      first_low.add(elements, i);
    if (v >= high)
      first_high.add(elements, i);
  }
  first_low = first_of_block(first_low);
  first_high = first_of_block(first_high);
  if (threadIdx.x == 0) {
    of_block[2 * blockIdx.x] = first_low;
    of_block[2 * blockIdx.x + 1] = first_high;
  }
}

__global__ void place_kernel(__grid_constant__ LatticeElements const elements, std::int64_t unknown, double* x) {
  NodePlace const at(elements, unknown);
  for (int d = 0; d < 3; ++d)
    x[d] = at.x[d];
}

__global__ void nodes_of_cell_kernel(__grid_constant__ LatticeElements const elements, LatticeList const lattices,
                                     std::int64_t number, double* nodes) {
  CellNodes const cell(elements, lattices, number);
  int const n = elements.lattices.order + 1;
  for (int i = static_cast<int>(threadIdx.x); i < n * n * n; i += static_cast<int>(blockDim.x)) {
    double x[3];
    cell.place(elements, i % n, i / n % n, i / (n * n), x);
    for (int d = 0; d < 3; ++d)
      nodes[3 * i + d] = x[d];
  }
}

/// Blocks for n items that threads take in turns.
unsigned blocks_for(cuda::CudaContext const& device, std::int64_t n) {
  return std::max(1U, std::min(cuda::n_blocks(n, threads), 8U * static_cast<unsigned>(device.multiprocessors())));
}

/// Runs launch(found) on what it may write to, and gives that back.
template <class Launch>
Found found_by(Context& context, Launch const& launch) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  Found found{{0, 0, 0, 0}, 0, {~Bits{0}, 0}, none, none};
  Array<Found> on_device(context, std::span<Found const>(&found, 1));
  launch(on_device.data());
  POISSON_CUDA_CHECK(cudaGetLastError());
  on_device.download(std::span<Found>(&found, 1));
  for (std::int64_t* const number : {&found.inverted, &found.not_finite})
    if (*number == none)
      *number = -1;
  return found;
}

class CudaLatticeSolution final : public LatticeSolutionKernels {
public:
  LatticeSums sums(Context& context, LatticeElements const& elements, LatticeList const& lattices,
                   LatticeQuadrature const& quadrature, LatticeIntegrand const& integrand, std::int64_t first,
                   std::int64_t end) const override {
    if (first >= end)
      return {};
    auto& device = cuda::of(context);
    constexpr std::size_t without_asking = std::size_t{48} << 10;  // bytes of shared memory
    int cells = 32;
    while (cells > 1 && Shared::bytes(quadrature, cells) > without_asking)
      cells /= 2;
    std::size_t const bytes = Shared::bytes(quadrature, cells);
    std::int64_t const batches = (end - first + cells - 1) / cells;
    auto const blocks = static_cast<unsigned>(std::min<std::int64_t>(batches, std::int64_t{8} * device.multiprocessors()));
    std::int32_t depth = integrand.exact.depth;
    for (std::int32_t c = 0; c < integrand.components; ++c)
      depth = std::max(depth, integrand.k[static_cast<std::size_t>(c)].depth);
    Found const found = found_by(context, [&](Found* on_device) {
      cuda::with_stack(depth, [&](auto stack) {
        auto const kernel = sums_kernel<decltype(stack)::value>;
        if (bytes > without_asking)
          POISSON_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
        kernel<<<blocks, threads, bytes, device.stream()>>>(elements, lattices, quadrature, integrand, first, end, cells, on_device,
                                                            device.partial_sums<double>(4 * std::int64_t{blocks}),
                                                            device.block_counter());
      });
    });
    LatticeSums result{found.sums[0], found.sums[1], found.sums[2], found.sums[3], found.largest};
    if (integrand.u != nullptr) {
      result.low = cuda::from_ordered(found.range[0]);
      result.high = cuda::from_ordered(found.range[1]);
    }
    result.inverted = found.inverted;
    result.not_finite = found.not_finite;
    return result;
  }

  NodeErrors errors_at_nodes(Context& context, LatticeElements const& elements, PlaceFunction const& exact, double shift,
                             double const* u) const override {
    auto& device = cuda::of(context);
    Found const found = found_by(context, [&](Found* on_device) {
      cuda::with_stack(exact.depth, [&](auto stack) {
        nodes_kernel<decltype(stack)::value><<<blocks_for(device, elements.lattices.n_unknowns), threads, 0, device.stream()>>>(
            elements, exact, shift, u, on_device);
      });
    });
    return {found.largest, found.not_finite};
  }

  ExtremeNodes first_places(Context& context, LatticeElements const& elements, double const* u, double low,
                            double high) const override {
    auto& device = cuda::of(context);
    unsigned const blocks = blocks_for(device, elements.lattices.n_unknowns);
    Array<FirstNode> of_block(context, 2 * std::int64_t{blocks});
    places_kernel<<<blocks, threads, 0, device.stream()>>>(elements, u, low, high, of_block.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    HostVector<FirstNode> found(2 * static_cast<std::size_t>(blocks));
    of_block.download(std::span<FirstNode>(found));
    for (std::size_t i = 2; i < found.size(); ++i)
      found[i % 2].add(found[i]);
    return {found[0].unknown, found[1].unknown};
  }

  std::array<double, 3> place(Context& context, LatticeElements const& elements, std::int64_t unknown) const override {
    Array<double> x(context, 3);
    place_kernel<<<1, 1, 0, cuda::of(context).stream()>>>(elements, unknown, x.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    std::array<double, 3> result{};
    x.download(result);
    return result;
  }

  std::vector<double> nodes_of_cell(Context& context, LatticeElements const& elements, LatticeList const& lattices,
                                    std::int64_t cell) const override {
    std::int64_t const n = elements.lattices.order + 1;
    Array<double> nodes(context, 3 * n * n * n);
    nodes_of_cell_kernel<<<1, threads, 0, cuda::of(context).stream()>>>(elements, lattices, cell, nodes.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    std::vector<double> result(static_cast<std::size_t>(nodes.size()));
    nodes.download(std::span<double>(result));
    return result;
  }
};

}  // namespace

LatticeSolutionKernels const& LatticeSolutionKernels::cuda() {
  static CudaLatticeSolution const kernels;
  return kernels;
}

}  // namespace poisson
