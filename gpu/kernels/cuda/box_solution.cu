#include "gpu/kernels/box_solution.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/expression.cuh"
#include "gpu/kernels/cuda/extremes.cuh"

#include <algorithm>
#include <cmath>
#include <span>

namespace poisson {

namespace {

constexpr int threads = 256;

using cuda::Bits;
using cuda::keep_largest_of_warp;
using cuda::keep_lowest;

/// found: the least and the largest number in the order of `ordered`, and how many threads found a number that is not finite.
__global__ void __launch_bounds__(threads) range_kernel(std::int64_t n, double const* __restrict__ u, Bits* found) {
  double low = INFINITY, high = -INFINITY;
  bool finite = true;
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    double const v = u[i];
    low = fmin(low, v);
    high = fmax(high, v);
    finite = finite && v - v == 0;
  }
  cuda::keep_range_of_warp(found, low, high);
  if (!finite)
    atomicAdd(found + 2, 1);
}

__global__ void __launch_bounds__(threads)
    places_kernel(std::int64_t n, double const* __restrict__ u, double low, double high, std::int64_t* found) {
  std::int64_t first_low = n, first_high = n;
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    double const v = u[i];
    if (v <= low && i < first_low)
      first_low = i;
    if (v >= high && i < first_high)
      first_high = i;
  }
  if (first_low < n)
    keep_lowest(found, first_low);
  if (first_high < n)
    keep_lowest(found + 1, first_high);
}

/// The value of a function at places (i, j, k). stack_size 0: it is a constant.
template <int stack_size>
__device__ double value_at(BoxFunction const& function, std::int64_t i, std::int64_t j, std::int64_t k) {
  if constexpr (stack_size > 0)
    if (!function.is_constant())
      return cuda::value_of<stack_size>(function.code, function.at[0][i], function.at[1][j], function.at[2][k]);
  return function.constant;
}

/// found: as of range_kernel, without the count.
__global__ void __launch_bounds__(threads) range_of_material_kernel(BoxCells const box, double const* __restrict__ u, Bits* found) {
  double low = INFINITY, high = -INFINITY;
  std::int64_t const nx = box.cells[0], ny = box.cells[1], n = nx * ny * box.cells[2], stride = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    std::int64_t const x = i % nx, y = i / nx % ny, z = i / (nx * ny);
    if (!box.counts(x, y, z))
      continue;
    double const* const p = u + z * box.step_z() + y * box.step_y() + x;
#pragma unroll
    for (int corner = 0; corner < 8; ++corner) {
      double const v = p[(corner >> 2) * box.step_z() + (corner >> 1 & 1) * box.step_y() + (corner & 1)];
      low = fmin(low, v);
      high = fmax(high, v);
    }
  }
  cuda::keep_range_of_warp(found, low, high);
}

/// v and w at 0 and 1, taken to `at`.
__device__ double mix(double at, double v, double w) {
  return v + at * (w - v);
}

constexpr int tile_x = 32, tile_y = threads / tile_x;

/// u at the four nodes of a cell in a plane of nodes.
struct Face {
  double a, b, c, d;  ///< at (0, 0), (1, 0), (0, 1), (1, 1)
};

/// A thread is a column of cells in z, and a block a tile of 32 x 8 columns: it keeps what it has read of the plane below. Bytes of
/// a cell: 9.3 from L2 and 8 from memory; and those of k at the points.
template <int stack_size>
__global__ void __launch_bounds__(threads)
    integrals_kernel(BoxCells const box, __grid_constant__ BoxCoefficient const k, std::int64_t first_plane, std::int64_t end_plane,
                     std::int64_t planes, double const* __restrict__ u, double* result, double* partial, unsigned* counter) {
  std::int64_t const nx = box.cells[0], ny = box.cells[1];
  auto const tiles_x = static_cast<unsigned>((nx + tile_x - 1) / tile_x),
             tiles_y = static_cast<unsigned>((ny + tile_y - 1) / tile_y);
  std::int64_t const x = std::int64_t{blockIdx.x % tiles_x} * tile_x + threadIdx.x % tile_x,
                     y = std::int64_t{blockIdx.x / tiles_x % tiles_y} * tile_y + threadIdx.x / tile_x,
                     first = first_plane + std::int64_t{blockIdx.x / (tiles_x * tiles_y)} * planes,
                     end = min(end_plane, first + planes);
  double sums[3] = {0, 0, 0};
  if (x < nx && y < ny) {
    double const near = 0.5 + 0.5 / sqrt(3.), far = 0.5 - 0.5 / sqrt(3.);
    double const wx = box.edges[0][x], wy = box.edges[1][y], hx = 1 / (wx * wx), hy = 1 / (wy * wy);
    auto const face_at = [&](std::int64_t z) {
      double const* const p = u + z * box.step_z() + y * box.step_y() + x;
      return Face{p[0], p[1], p[box.step_y()], p[box.step_y() + 1]};
    };
    auto const k_at = [&](int c, int qx, int qy, int qz, std::int64_t z) {
      if (k.values[c] != nullptr)
        return k.values[c][(2 * (z - first_plane) + qz) * k.step_z + (2 * y + qy) * k.step_y + 2 * x + qx];
      return value_at<stack_size>(k.functions[c], 2 * x + qx, 2 * y + qy, 2 * z + qz);
    };
    Face lower = face_at(first);
    for (std::int64_t z = first; z < end; ++z) {
      Face const upper = face_at(z + 1);
      double const wz = box.edges[2][z], hz = 1 / (wz * wz);
      double sum = 0, gradients = 0;
      bool const counts = box.counts(x, y, z);
#pragma unroll(stack_size > 0 ? 1 : 8)
      for (int q = 0; q < 8 && counts; ++q) {
        int const qx = q & 1, qy = q >> 1 & 1, qz = q >> 2;
        double const r = qx == 0 ? far : near, s = qy == 0 ? far : near, t = qz == 0 ? far : near;
        // along x at the four edges, then along y
        double const low_0 = mix(r, lower.a, lower.b), low_1 = mix(r, lower.c, lower.d), high_0 = mix(r, upper.a, upper.b),
                     high_1 = mix(r, upper.c, upper.d);
        double const low = mix(s, low_0, low_1), high = mix(s, high_0, high_1);
        double const dx = mix(t, mix(s, lower.b - lower.a, lower.d - lower.c), mix(s, upper.b - upper.a, upper.d - upper.c)),
                     dy = mix(t, low_1 - low_0, high_1 - high_0), dz = high - low;
        sum += mix(t, low, high);
        double const kx = k_at(0, qx, qy, qz, z), ky = k.components == 1 ? kx : k_at(1, qx, qy, qz, z),
                     kz = k.components == 1 ? kx : k_at(2, qx, qy, qz, z);
        gradients += kx * (hx * dx * dx) + ky * (hy * dy * dy) + kz * (hz * dz * dz);
      }
      double const weight = wx * wy * wz / 8;
      sums[0] += weight * sum;
      sums[1] += weight * gradients;
      sums[2] += counts ? 8 * weight : 0;
      lower = upper;
    }
  }
  if (cuda::grid_sum<threads>(sums, partial, counter))
#pragma unroll
    for (int s = 0; s < 3; ++s)
      result[s] += sums[s];
}

/// Points of a row of cells that a block has in shared memory at once; of a single cell there may be more.
constexpr int points_at_once = 2048;

/// A Gauss point of a cell, by its number.
struct PointOfCell {
  int x, y, z;
  __device__ PointOfCell(int i, int m) : x(i % m), y(i / m % m), z(i / (m * m)) {}
};

/// Numbers the points for `failed`: see BoxSolutionKernels::errors.
__device__ std::int64_t number_of(BoxCells const& box, int m, PointOfCell const& q, std::int64_t x, std::int64_t y,
                                  std::int64_t z) {
  return ((((z * box.cells[1] + y) * m + q.z) * m + q.y) * m + q.x) * box.cells[0] + x;
}

/// A block takes some neighbours in a row of cells at once. It evaluates `exact` at their points, each once, and leaves the errors
/// in shared memory, from which it differentiates them. Bytes of a cell: 32 from L2, since rows share lines of nodes, and 8 from
/// memory. The time goes to `exact`, and to 3 m + 30 products and sums of each of m^3 points. m is `fixed`, or where that is 0,
/// quadrature.n.
template <int stack_size, int fixed>
__global__ void __launch_bounds__(threads)
    errors_kernel(BoxCells const box, __grid_constant__ BoxQuadrature const quadrature, BoxFunction const exact, double shift,
                  std::int64_t first_plane, std::int64_t rows, int cells_at_once, double const* __restrict__ u, double* result,
                  std::int64_t* failed, double* partial, unsigned* counter) {
  // Where a thread has the same point of every cell that it comes to, its tables are in registers.
  constexpr bool one_point = fixed > 0 && threads % (fixed * fixed * fixed) == 0;
  constexpr int in_registers = one_point ? fixed : 1;
  extern __shared__ double memory[];
  int const m = fixed > 0 ? fixed : quadrature.n, of_cell = m * m * m;
  double *const derivative = memory, *const point = derivative + m * m, *const weight = point + m, *const inverse_x = weight + m,
                *const errors = inverse_x + cells_at_once;
  for (int i = threadIdx.x; i < m * m; i += threads)
    derivative[i] = quadrature.derivative[i / m][i % m];
  for (int i = threadIdx.x; i < m; i += threads) {
    point[i] = quadrature.point[i];
    weight[i] = quadrature.weight[i];
  }
  __syncthreads();
  PointOfCell const first_point(static_cast<int>(threadIdx.x) % of_cell, m);
  double in_x[in_registers], in_y[in_registers], in_z[in_registers];
  if constexpr (one_point)
#pragma unroll
    for (int j = 0; j < fixed; ++j) {
      in_x[j] = derivative[first_point.x * m + j];
      in_y[j] = derivative[first_point.y * m + j];
      in_z[j] = derivative[first_point.z * m + j];
    }
  std::int64_t const nx = box.cells[0], ny = box.cells[1], nz = box.cells[2], of_row = (nx + cells_at_once - 1) / cells_at_once;
  double sums[2] = {0, 0}, largest = 0;
  for (std::int64_t batch = blockIdx.x; batch < of_row * rows; batch += gridDim.x) {
    std::int64_t const row = batch / of_row, first = batch % of_row * cells_at_once, y = row % ny, z = first_plane + row / ny;
    int const cells = static_cast<int>(min(std::int64_t{cells_at_once}, nx - first)), points = cells * of_cell;
    for (int cell = threadIdx.x; cell < cells; cell += threads)
      inverse_x[cell] = 1 / box.edges[0][first + cell];
    double const* const of_nodes = u + z * box.step_z() + y * box.step_y() + first;
#pragma unroll 1
    for (int i = threadIdx.x; i < points; i += threads) {
      int const cell = i / of_cell;
      PointOfCell const q = one_point ? first_point : PointOfCell(i % of_cell, m);
      double const value = value_at<stack_size>(exact, q.x * nx + first + cell, q.y * ny + y, q.z * nz + z);
      if (!passes(ValueCheck::finite, value))
        keep_lowest(failed, number_of(box, m, q, first + cell, y, z));
      double const *const a = of_nodes + cell, *const b = a + box.step_y(), *const c = a + box.step_z(),
                          *const d = b + box.step_z();
      double const r = point[q.x], s = point[q.y], t = point[q.z];
      errors[i] =
          mix(t, mix(s, mix(r, a[0], a[1]), mix(r, b[0], b[1])), mix(s, mix(r, c[0], c[1]), mix(r, d[0], d[1]))) - (value - shift);
    }
    __syncthreads();
    double const wy = box.edges[1][y], wz = box.edges[2][z], inverse_y = 1 / wy, inverse_z = 1 / wz;
    for (int i = threadIdx.x; i < points; i += threads) {
      PointOfCell const q = one_point ? first_point : PointOfCell(i % of_cell, m);
      double const *const along_x = errors + i - q.x, *const along_y = errors + i - q.y * m,
                          *const along_z = errors + i - q.z * m * m;
      double ex = 0, ey = 0, ez = 0;
#pragma unroll
      for (int j = 0; j < m; ++j) {
        ex += (one_point ? in_x[j % in_registers] : derivative[q.x * m + j]) * along_x[j];
        ey += (one_point ? in_y[j % in_registers] : derivative[q.y * m + j]) * along_y[j * m];
        ez += (one_point ? in_z[j % in_registers] : derivative[q.z * m + j]) * along_z[j * m * m];
      }
      int const cell = i / of_cell;
      double const e = errors[i], wx = box.edges[0][first + cell];
      double const volume = weight[q.x] * weight[q.y] * weight[q.z] * (wx * wy * wz);
      ex *= inverse_x[cell];
      ey *= inverse_y;
      ez *= inverse_z;
      sums[0] += volume * (e * e);
      sums[1] += volume * (ex * ex + ey * ey + ez * ez);
      largest = fmax(largest, fabs(e));
    }
    __syncthreads();  // the next errors take the place of these
  }
  keep_largest_of_warp(result + 2, largest);
  if (cuda::grid_sum<threads>(sums, partial, counter)) {
    result[0] += sums[0];
    result[1] += sums[1];
  }
}

template <int stack_size>
__global__ void __launch_bounds__(threads)
    nodes_kernel(BoxCells const box, BoxFunction const exact, double shift, std::int64_t first_plane, std::int64_t n,
                 double const* __restrict__ u, double* most, std::int64_t* failed) {
  std::int64_t const nx = box.cells[0] + 1, ny = box.cells[1] + 1;
  double largest = 0;
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    std::int64_t const x = i % nx, y = i / nx % ny, z = first_plane + i / (nx * ny);
    double const value = value_at<stack_size>(exact, x, y, z);
    if (!passes(ValueCheck::finite, value))
      keep_lowest(failed, (z * ny + y) * nx + x);
    largest = fmax(largest, fabs(u[z * box.step_z() + y * box.step_y() + x] - (value - shift)));
  }
  keep_largest_of_warp(most, largest);
}

template <int stack_size>
__global__ void __launch_bounds__(threads)
    integral_kernel(BoxCells const box, __grid_constant__ BoxQuadrature const quadrature, BoxFunction const exact,
                    std::int64_t first_plane, std::int64_t n, double* result, std::int64_t* failed, double* partial,
                    unsigned* counter) {
  int const m = quadrature.n;
  std::int64_t const nx = box.cells[0], ny = box.cells[1], nz = box.cells[2];
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
  double sums[1] = {0};
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    // Points of a row of cells as number_of counts them: neighbours are those of neighbouring cells.
    std::int64_t const x = i % nx, of_row = i / nx, row = of_row / (m * m * m), y = row % ny, z = first_plane + row / ny;
    PointOfCell const q(static_cast<int>(of_row % (m * m * m)), m);
    double const value = value_at<stack_size>(exact, q.x * nx + x, q.y * ny + y, q.z * nz + z);
    if (!passes(ValueCheck::finite, value))
      keep_lowest(failed, number_of(box, m, q, x, y, z));
    sums[0] += quadrature.weight[q.x] * quadrature.weight[q.y] * quadrature.weight[q.z] *
               (box.edges[0][x] * box.edges[1][y] * box.edges[2][z]) * value;
  }
  if (cuda::grid_sum<threads>(sums, partial, counter))
    *result += sums[0];
}

/// A thread is a cell of the layer. 64 bytes a cell; the time goes to f.
template <int stack_size>
__global__ void __launch_bounds__(threads) side_kernel(__grid_constant__ BoxSide const side, double const* __restrict__ u,
                                                       double* result, Bits* range, double* partial, unsigned* counter) {
  std::int64_t const number = std::int64_t{blockIdx.x} * threads + threadIdx.x, i = number % side.cells[0],
                     j = number / side.cells[0];
  double sums[2] = {0, 0}, low = INFINITY, high = -INFINITY;
  if (j < side.cells[1]) {
    SideCell const cell(side, i, j, u);
    bool const counts = side.faces.holds(i, j);
    if (counts) {
      sums[0] = cell.integral();
      for (int c = 0; c < 4; ++c) {
        low = fmin(low, cell.u[c]);
        high = fmax(high, cell.u[c]);
      }
    }
    if (side.fixed) {
      double const* const table = side.of_label(i, j);
#pragma unroll(stack_size > 0 ? 1 : 8)
      for (int q = 0; q < 8; ++q) {
        int const qa = q & 1, qb = q >> 1 & 1, qn = q >> 2;
        auto const at_point = [&](BoxFunction const& function) {
          return value_at<stack_size>(function, 2 * i + qa, 2 * j + qb, qn);
        };
        double k[3] = {table != nullptr ? table[0] : at_point(side.k[0]), 0, 0};
        for (int c = 1; c < 3; ++c)
          k[c] = table != nullptr ? table[c] : side.components == 1 ? k[0] : at_point(side.k[c]);
        sums[1] -= cell.residual(qa, qb, qn, k, at_point(side.f));
      }
    } else if (counts) {
#pragma unroll(stack_size > 0 ? 1 : 4)
      for (int q = 0; q < 4; ++q) {
        int const qa = q & 1, qb = q >> 1;
        sums[1] -= cell.load(qa, qb, value_at<stack_size>(side.value, 2 * i + qa, 2 * j + qb, 0),
                             value_at<stack_size>(side.alpha, 2 * i + qa, 2 * j + qb, 0));
      }
    }
  }
  cuda::keep_range_of_warp(range, low, high);
  if (cuda::grid_sum<threads>(sums, partial, counter)) {
    result[0] = sums[0];
    result[1] = sums[1];
  }
}

/// A thread is a node in the planes first_plane to end_plane, and gathers from the cells around it that count. u is read 27 times,
/// mostly from L1.
template <bool at_points>
__global__ void __launch_bounds__(threads)
    product_kernel(BoxCells const box, __grid_constant__ BoxCellCoefficient const k, std::int64_t first_plane,
                   std::int64_t end_plane, double const* __restrict__ u, double const* __restrict__ u_low, double* r) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x, nx = box.nodes[0], ny = box.nodes[1];
  if (i >= nx * ny * (end_plane - first_plane + 1))
    return;
  std::int64_t const x = i % nx, y = i / nx % ny, z = first_plane + i / (nx * ny), row = z * box.step_z() + y * box.step_y() + x;
  double const middle = u[row], middle_low = u_low != nullptr ? u_low[row] : 0;
  double around[27];  // less u at the node
#pragma unroll
  for (int s = 0; s < 27; ++s) {
    std::int64_t const at[3] = {x + s % 3 - 1, y + s / 3 % 3 - 1, z + s / 9 - 1};
    bool const inside = at[0] >= 0 && at[0] < nx && at[1] >= 0 && at[1] < ny && at[2] >= first_plane && at[2] <= end_plane;
    std::int64_t const other = row + (s % 3 - 1) + (s / 3 % 3 - 1) * box.step_y() + (s / 9 - 1) * box.step_z();
    around[s] = inside ? u[other] - middle : 0;
    if (inside && u_low != nullptr)
      around[s] += u_low[other] - middle_low;
  }
  double const near = 0.5 + 0.5 / sqrt(3.), far = 0.5 - 0.5 / sqrt(3.);
  double sum = 0;
#pragma unroll
  for (int cell = 0; cell < 8; ++cell) {
    std::int64_t const cx = x - 1 + (cell & 1), cy = y - 1 + (cell >> 1 & 1), cz = z - 1 + (cell >> 2);
    if (cx < 0 || cx >= box.cells[0] || cy < 0 || cy >= box.cells[1] || cz < first_plane || cz >= end_plane)
      continue;
    double const edge[3] = {box.edges[0][cx], box.edges[1][cy], box.edges[2][cz]};
    int const own = 7 - cell;
    auto const at_corner = [&](int b) {
      return around[13 + 9 * ((b >> 2) - (own >> 2)) + 3 * ((b >> 1 & 1) - (own >> 1 & 1)) + (b & 1) - (own & 1)];
    };
    std::int64_t const label = k.labels != nullptr ? k.labels[(cz * box.cells[1] + cy) * box.cells[0] + cx] : -1;
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      int const e = d == 0 ? 1 : 0, g = d == 2 ? 1 : 2, bit = 1 << d, bit_e = 1 << e, bit_g = 1 << g, c = k.components == 1 ? 0 : d;
      auto const along = [&](int b) { return at_corner(b) - at_corner(b ^ bit); };
      double const of_own = along(own), of_e = along(own ^ bit_e), of_g = along(own ^ bit_g), of_both = along(own ^ bit_e ^ bit_g);
      double const scale = edge[e] * edge[g] / edge[d];
      if constexpr (at_points) {
        double found = 0;
#pragma unroll
        for (int q = 0; q < 4; ++q) {  // bit 0: the point is farther away in e, bit 1: in g
          double const p = (q & 1) == 0 ? near : far, s = (q >> 1) == 0 ? near : far;
          double const value = s * (p * of_own + (1 - p) * of_e) + (1 - s) * (p * of_g + (1 - p) * of_both);
          int const point = ((own >> e & 1) ^ (q & 1)) << e | ((own >> g & 1) ^ (q >> 1)) << g;
          auto const k_at = [&](int number) {
            return k.points[c][((2 * (cz - first_plane) + (number >> 2)) * 2 * box.cells[1] + 2 * cy + (number >> 1 & 1)) * 2 *
                                   box.cells[0] +
                               2 * cx + (number & 1)];
          };
          found += p * s * (k_at(point) + k_at(point | bit)) * value;
        }
        sum += scale / 8 * found;
      } else {
        double const of_cell = label >= 0 ? k.table[c][label] : k.constant[c];
        sum += scale / 36 * of_cell * (4 * of_own + 2 * (of_e + of_g) + of_both);
      }
    }
  }
  r[row] -= sum;
}

__global__ void __launch_bounds__(threads)
    pack_kernel(std::int64_t nx, std::int64_t ny, std::int64_t n, std::int64_t step_y, std::int64_t step_z,
                double const* __restrict__ u, double* __restrict__ values) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    values[i] = u[i / (nx * ny) * step_z + i / nx % ny * step_y + i % nx];
}

/// Blocks for n items that threads take in turns.
unsigned blocks_for(cuda::CudaContext const& device, std::int64_t n, int of_thread) {
  return std::max(1U, std::min(cuda::n_blocks(n, of_thread * threads), 8U * static_cast<unsigned>(device.multiprocessors())));
}

class CudaBoxSolution final : public BoxSolutionKernels {
public:
  ValueRange range(Context& context, std::int64_t n, double const* u) const override {
    auto& device = cuda::of(context);
    Bits found[3] = {~Bits{0}, 0, 0};
    Array<Bits> on_device(context, std::span<Bits const>(found));
    range_kernel<<<blocks_for(device, n, 4), threads, 0, device.stream()>>>(n, u, on_device.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    on_device.download(found);
    return {cuda::from_ordered(found[0]), cuda::from_ordered(found[1]), found[2] == 0};
  }

  ExtremeNodes first_places(Context& context, std::int64_t n, double const* u, double low, double high) const override {
    auto& device = cuda::of(context);
    std::int64_t found[2] = {n, n};
    Array<std::int64_t> on_device(context, std::span<std::int64_t const>(found));
    places_kernel<<<blocks_for(device, n, 4), threads, 0, device.stream()>>>(n, u, low, high, on_device.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    on_device.download(found);
    return {found[0] == n ? -1 : found[0], found[1] == n ? -1 : found[1]};
  }

  ValueRange range_of_material(Context& context, BoxCells const& box, double const* u) const override {
    auto& device = cuda::of(context);
    Bits found[2] = {~Bits{0}, 0};
    Array<Bits> on_device(context, std::span<Bits const>(found));
    std::int64_t const n = box.cells[0] * box.cells[1] * box.cells[2];
    range_of_material_kernel<<<blocks_for(device, n, 1), threads, 0, device.stream()>>>(box, u, on_device.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    on_device.download(found);
    return {cuda::from_ordered(found[0]), cuda::from_ordered(found[1]), true};
  }

  void integrals(Context& context, BoxCells const& box, BoxCoefficient const& k, std::int64_t first_plane, std::int64_t end_plane,
                 double const* u, double* sums) const override {
    auto& device = cuda::of(context);
    std::int32_t depth = 0;
    for (std::int32_t c = 0; c < k.components; ++c)
      depth = k.values[c] != nullptr ? depth : std::max(depth, k.functions[c].depth);
    std::int64_t const tiles = ((box.cells[0] + tile_x - 1) / tile_x) * ((box.cells[1] + tile_y - 1) / tile_y);
    // Long columns read the least; eight blocks a multiprocessor hide the time that reading takes.
    std::int64_t const columns = std::max<std::int64_t>(1, 8 * device.multiprocessors() / tiles);
    std::int64_t const planes = std::max<std::int64_t>(4, (end_plane - first_plane + columns - 1) / columns);
    auto const blocks = static_cast<unsigned>(tiles * ((end_plane - first_plane + planes - 1) / planes));
    auto const launch = [&](auto stack) {
      integrals_kernel<decltype(stack)::value>
          <<<blocks, threads, 0, device.stream()>>>(box, k, first_plane, end_plane, planes, u, sums,
                                                    device.partial_sums<double>(3 * std::int64_t{blocks}), device.block_counter());
    };
    cuda::with_stack(depth, launch);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void errors(Context& context, BoxCells const& box, BoxQuadrature const& quadrature, BoxFunction const& exact, double shift,
              std::int64_t first_plane, std::int64_t end_plane, double const* u, double* sums,
              std::int64_t* failed) const override {
    auto& device = cuda::of(context);
    int const m = quadrature.n, of_cell = m * m * m, cells_at_once = std::max(1, points_at_once / of_cell);
    std::int64_t const rows = box.cells[1] * (end_plane - first_plane),
                       batches = rows * ((box.cells[0] + cells_at_once - 1) / cells_at_once);
    auto const bytes = static_cast<std::size_t>(m * m + 2 * m + cells_at_once * (1 + of_cell)) * sizeof(double);
    auto const blocks = static_cast<unsigned>(std::min<std::int64_t>(batches, std::int64_t{8} * device.multiprocessors()));
    auto const launch = [&](auto stack) {
      auto const kernel = m == 4 ? errors_kernel<decltype(stack)::value, 4> : errors_kernel<decltype(stack)::value, 0>;
      kernel<<<blocks, threads, bytes, device.stream()>>>(box, quadrature, exact, shift, first_plane, rows, cells_at_once, u, sums,
                                                          failed, device.partial_sums<double>(2 * std::int64_t{blocks}),
                                                          device.block_counter());
    };
    cuda::with_stack(exact.depth, launch);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void errors_at_nodes(Context& context, BoxCells const& box, BoxFunction const& exact, double shift, std::int64_t first_plane,
                       std::int64_t end_plane, double const* u, double* largest, std::int64_t* failed) const override {
    auto& device = cuda::of(context);
    std::int64_t const n = (box.cells[0] + 1) * (box.cells[1] + 1) * (end_plane - first_plane);
    auto const launch = [&](auto stack) {
      nodes_kernel<decltype(stack)::value>
          <<<blocks_for(device, n, 1), threads, 0, device.stream()>>>(box, exact, shift, first_plane, n, u, largest, failed);
    };
    cuda::with_stack(exact.depth, launch);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void integral_of_exact(Context& context, BoxCells const& box, BoxQuadrature const& quadrature, BoxFunction const& exact,
                         std::int64_t first_plane, std::int64_t end_plane, double* sum, std::int64_t* failed) const override {
    auto& device = cuda::of(context);
    std::int64_t const m = quadrature.n, n = m * m * m * box.cells[0] * box.cells[1] * (end_plane - first_plane);
    unsigned const blocks =
        static_cast<unsigned>(std::min<std::int64_t>((n + threads - 1) / threads, 8 * device.multiprocessors()));
    auto const launch = [&](auto stack) {
      integral_kernel<decltype(stack)::value><<<blocks, threads, 0, device.stream()>>>(
          box, quadrature, exact, first_plane, n, sum, failed, device.partial_sums<double>(blocks), device.block_counter());
    };
    cuda::with_stack(exact.depth, launch);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  SideSums of_side(Context& context, BoxSide const& side, double const* u) const override {
    auto& device = cuda::of(context);
    std::int32_t depth = 0;
    for (BoxFunction const* const function : {&side.k[0], &side.k[1], &side.k[2], &side.f, &side.value, &side.alpha})
      depth = std::max(depth, function->depth);
    Bits range[2] = {~Bits{0}, 0};
    Array<Bits> range_on_device(context, std::span<Bits const>(range));
    Array<double> sums_on_device(context, 2);
    unsigned const blocks = cuda::n_blocks(side.cells[0] * side.cells[1], threads);
    auto const launch = [&](auto stack) {
      side_kernel<decltype(stack)::value>
          <<<blocks, threads, 0, device.stream()>>>(side, u, sums_on_device.data(), range_on_device.data(),
                                                    device.partial_sums<double>(2 * std::int64_t{blocks}), device.block_counter());
    };
    cuda::with_stack(depth, launch);
    POISSON_CUDA_CHECK(cudaGetLastError());
    double sums[2] = {};
    sums_on_device.download(sums);
    range_on_device.download(range);
    return {sums[0], sums[1], cuda::from_ordered(range[0]), cuda::from_ordered(range[1])};
  }

  void subtract_product(Context& context, BoxCells const& box, BoxCellCoefficient const& k, std::int64_t first_plane,
                        std::int64_t end_plane, double const* u, double const* u_low, double* r) const override {
    std::int64_t const n = box.nodes[0] * box.nodes[1] * (end_plane - first_plane + 1);
    auto const kernel = k.points[0] != nullptr ? product_kernel<true> : product_kernel<false>;
    kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(box, k, first_plane, end_plane, u, u_low, r);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void pack(Context& context, std::array<std::int64_t, 3> const& count, std::int64_t step_y, std::int64_t step_z, double const* u,
            double* values) const override {
    std::int64_t const n = count[0] * count[1] * count[2];
    if (n == 0)
      return;
    pack_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(count[0], count[1], n, step_y, step_z, u,
                                                                                        values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

BoxSolutionKernels const& BoxSolutionKernels::cuda() {
  static CudaBoxSolution const kernels;
  return kernels;
}

}  // namespace poisson
