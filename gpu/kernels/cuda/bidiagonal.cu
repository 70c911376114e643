#include "gpu/kernels/bidiagonal.hpp"

#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <utility>

namespace poisson {

namespace {

constexpr unsigned whole_warp = 0xffffffffu;

/// The same bits in all lanes: at every step both lanes of a pair add the same two numbers.
__device__ double warp_sum(double v) {
  for (int distance = 16; distance > 0; distance /= 2)
    v += __shfl_xor_sync(whole_warp, v, distance);
  return v;
}
__device__ double warp_product(double v) {
  for (int distance = 16; distance > 0; distance /= 2)
    v *= __shfl_xor_sync(whole_warp, v, distance);
  return v;
}

// ---- bisection ----

constexpr int bisect_threads = 64;

/// a / b to about two units in the last place, by a chain of four instructions where the exact division takes over thirty. b is
/// normal.
__device__ double quick_quotient(double a, double b) {
  double reciprocal;  // of 20 bits or more
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(reciprocal) : "d"(b));
  double const error = fma(-b, reciprocal, 1.0), quotient = a * reciprocal;
  return fma(quotient, fma(error, error, error), quotient);
}

/// `sections` neighbouring threads share a value, each with a shift of its own: they leave one of sections + 1 intervals a pass. A
/// pass is a chain of n dependent divisions, so fewer passes beat less work until the device is full.
template <int sections>
__global__ void __launch_bounds__(bisect_threads, 8) bisect_kernel(std::int64_t n, double2 const* __restrict__ squares, double low,
                                                                   double high, std::int64_t count, double* values) {
  std::int64_t const thread = std::int64_t{blockIdx.x} * bisect_threads + threadIdx.x;
  int const member = static_cast<int>(threadIdx.x) % sections, first_of_group = static_cast<int>(threadIdx.x) % 32 - member;
  std::int64_t const i = thread / sections, value = i < count ? i : count - 1;
  // Positive numbers are ordered as the integers of the same bits: sections of those find exponents first.
  long long below = __double_as_longlong(low), above = __double_as_longlong(high);
  while (__any_sync(whole_warp, above - below > 1)) {
    long long const width = above - below;
    auto const shift_of = [&](int of) {
      return width > sections + 1 ? below + width / (sections + 1) * (of + 1)
                                  : below + (of + 1 < width ? of + 1 : (width > 1 ? width - 1 : 0));
    };
    double const x = __longlong_as_double(shift_of(member)), x_squared = x * x;
    double s = -x_squared;
    int smaller = 0;
#pragma unroll 8
    for (std::int64_t row = 0; row < n; ++row) {
      double2 const square = __ldg(squares + row);
      smaller += sturm_row(square.x, square.y, x_squared, s, quick_quotient) ? 1 : 0;
    }
    unsigned const beyond = __ballot_sync(whole_warp, smaller >= n - value) >> first_of_group & (0xffffffffu >> (32 - sections));
    int const first_beyond = beyond != 0 ? __ffs(static_cast<int>(beyond)) - 1 : sections;
    if (width > 1) {
      long long const new_above = first_beyond < sections ? shift_of(first_beyond) : above;
      below = first_beyond > 0 ? shift_of(first_beyond - 1) : below;
      above = new_above;
    }
  }
  if (member == 0 && i < count)
    values[i] = __longlong_as_double(below);
}

// ---- divide and conquer ----

__global__ void scatter_leaves_kernel(std::int64_t n, LeafColumn const* __restrict__ columns, double const* __restrict__ leaves,
                                      std::int64_t leading, double* __restrict__ x) {
  std::int64_t const j = blockIdx.x;
  LeafColumn const column = columns[j];
  for (std::int64_t i = threadIdx.x; i < column.rows; i += blockDim.x)
    x[column.first + i + j * n] = leaves[i + j * leading];
}

__global__ void coupling_kernel(BidiagonalLevel level, double const* __restrict__ v, double* __restrict__ z) {
  BidiagonalMerge const merge = level.merges[blockIdx.y];
  std::int64_t const p = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (p < merge.n() + merge.extra)
    z[merge.first + p] = v[merge.first + merge.n_left + (p > merge.n_left ? 1 : 0) + (merge.first + p) * level.order];
}

/// A thread keeps a row: rotations follow one another, rows do not meet.
__global__ void rotate_kernel(BidiagonalLevel level, bool right, double* __restrict__ x) {
  BidiagonalMerge const merge = level.merges[blockIdx.y];
  std::int64_t const i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= merge.n() + (right ? merge.extra : 0))
    return;
  double* const row = x + merge.first + i + merge.first * level.order;
  std::int32_t last = -1;  // column that the rotation before wrote second: the next one often begins with it
  double of_last = 0;
  for (std::int32_t r = merge.first_rotation + (right ? 0 : merge.extra); r < merge.end_rotation; ++r) {
    ColumnRotation const rotation = level.rotations[r];
    double const a = rotation.a == last ? of_last : row[rotation.a * level.order], b = row[rotation.b * level.order];
    row[rotation.a * level.order] = rotation.c * a + rotation.s * b;
    last = rotation.b;
    of_last = rotation.c * b - rotation.s * a;
    row[rotation.b * level.order] = of_last;
  }
}

__global__ void pack_kernel(BidiagonalLevel level, bool right, double const* __restrict__ x, double* __restrict__ packed) {
  BidiagonalMerge const merge = level.merges[blockIdx.y];
  std::int64_t const p = blockIdx.x, n = merge.n() + (right ? merge.extra : 0);
  if (p >= n)
    return;
  std::int64_t const corner = merge.first + merge.first * level.order;
  double const* const from = x + corner + level.source[merge.first + p] * level.order;
  double* const to = packed + corner + p * level.order;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
    to[i] = from[i];
}

/// Deflated columns go back unchanged.
__global__ void restore_kernel(BidiagonalLevel level, bool right, double const* __restrict__ packed, double* __restrict__ x) {
  BidiagonalMerge const merge = level.merges[blockIdx.y];
  std::int64_t const p = blockIdx.x, n = merge.n() + (right ? merge.extra : 0);
  if (p >= n || p < merge.k())
    return;
  std::int64_t const column = merge.first + (merge.first + p) * level.order;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
    x[column + i] = packed[column + i];
}

__device__ SecularSums sums_at(double const* __restrict__ d, double const* __restrict__ z, int k, int n_left, double origin,
                               double offset) {
  SecularSums sums;
  double psi[2] = {0, 0}, phi[2] = {0, 0};
#pragma unroll 4
  for (int j = static_cast<int>(threadIdx.x) % 32; j < k; j += 32) {
    double const dj = __ldg(d + j), zj = __ldg(z + j), t = zj / (((dj - origin) - offset) * ((dj + origin) + offset));
    double const value = zj * t, slope = t * t;
    bool const left = j < n_left;
    psi[0] += left ? value : 0;
    psi[1] += left ? slope : 0;
    phi[0] += left ? 0 : value;
    phi[1] += left ? 0 : slope;
  }
  sums.psi = warp_sum(psi[0]);
  sums.psi_prime = warp_sum(psi[1]);
  sums.phi = warp_sum(phi[0]);
  sums.phi_prime = warp_sum(phi[1]);
  return sums;
}

constexpr int root_threads = 128, roots_a_block = root_threads / 32;

/// A warp finds a root: all lanes take the same steps.
__global__ void __launch_bounds__(root_threads) secular_kernel(BidiagonalLevel level) {
  BidiagonalMerge const merge = level.merges[blockIdx.y];
  int const k = merge.k(), i = static_cast<int>(blockIdx.x) * roots_a_block + static_cast<int>(threadIdx.x) / 32;
  if (i >= k)
    return;
  double const *const d = level.d + merge.first, *const z = level.z + merge.first;
  SecularRoot root;
  if (k == 1)
    root.offset = fabs(z[0]);
  else {
    bool const last = i == k - 1;
    int const n_left = last ? i : i + 1;  // the last pole's own function is the last root's right part
    if (last) {
      double z_squared = 0;
      for (int j = static_cast<int>(threadIdx.x) % 32; j < k; j += 32)
        z_squared += z[j] * z[j];
      root = SecularRoot::beyond(d[i - 1], d[i], warp_sum(z_squared));
    } else {
      root = SecularRoot::between(d[i], d[i + 1]);
      root.begin(sums_at(d, z, k, n_left, root.origin, root.offset), z[i], z[i + 1]);
    }
    while (!root.advance(sums_at(d, z, k, n_left, root.origin, root.offset))) {
    }
  }
  if (threadIdx.x % 32 == 0) {
    level.origin[merge.first + i] = root.origin;
    level.offset[merge.first + i] = root.offset;
  }
}

/// A warp makes an entry.
__global__ void __launch_bounds__(root_threads) recompute_kernel(BidiagonalLevel level) {
  BidiagonalMerge const merge = level.merges[blockIdx.y];
  int const k = merge.k(), j = static_cast<int>(blockIdx.x) * roots_a_block + static_cast<int>(threadIdx.x) / 32;
  if (j >= k)
    return;
  double const* __restrict__ const d = level.d + merge.first;
  double const *const origin = level.origin + merge.first, *const offset = level.offset + merge.first;
  double const dj = d[j];
  double product = 1;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x) % 32; i < k; i += 32) {
    // Every quotient of sigma_i^2 - d_j^2 and the pole next to sigma_i on the side away from d_j is at most 1.
    double const difference = ((origin[i] - dj) + offset[i]) * ((origin[i] + dj) + offset[i]);
    int const pole = i < j ? i : i + 1;
    product *= pole < k ? difference / ((d[pole] - dj) * (d[pole] + dj)) : difference;
  }
  product = warp_product(product);
  if (threadIdx.x % 32 == 0)
    level.z_hat[merge.first + j] = copysign(sqrt(fabs(product)), level.z[merge.first + j]);
}

constexpr int vector_threads = 128;

/// A block makes a column. The entries are computed twice: once for the norm, once to be written.
__global__ void __launch_bounds__(vector_threads) vectors_kernel(BidiagonalLevel level, bool right, double* __restrict__ s) {
  BidiagonalMerge const merge = level.merges[blockIdx.y];
  int const column = static_cast<int>(blockIdx.x), k = merge.k();
  if (column >= merge.n_wanted)
    return;
  std::int64_t const root = merge.first + (level.wanted != nullptr ? level.wanted[column] : column);
  double const* __restrict__ const d = level.d + merge.first;
  double const* __restrict__ const z = level.z_hat + merge.first;
  std::int32_t const* __restrict__ const select = level.select + merge.first;
  double const origin = level.origin[root], offset = level.offset[root];
  double* const to = s + merge.first + (merge.first + column) * level.order;
  if (k == 1) {
    if (threadIdx.x == 0)
      to[0] = right || z[0] >= 0 ? 1 : -1;
    return;
  }
  auto const entry = [&](int t) {
    int const j = __ldg(select + t);
    double const dj = __ldg(d + j), of_right = z[j] / (((dj - origin) - offset) * ((dj + origin) + offset));
    return right ? of_right : (j == 0 ? -1.0 : dj * of_right);
  };
  double squared = 0;
  for (int t = static_cast<int>(threadIdx.x); t < k; t += vector_threads) {
    double const value = entry(t);
    squared = fma(value, value, squared);
  }
  __shared__ double norm;
  squared = cuda::block_sum<vector_threads>(squared);
  if (threadIdx.x == 0)
    norm = sqrt(squared);
  __syncthreads();
  for (int t = static_cast<int>(threadIdx.x); t < k; t += vector_threads)
    to[t] = entry(t) / norm;
}

constexpr int tile = 64, tile_depth = 16, tile_threads = 256;

/// The two products of small merges, all in one launch: 64 x 64 results a block, 4 x 4 a thread.
__global__ void __launch_bounds__(tile_threads)
    multiply_kernel(BidiagonalLevel level, bool right, double const* __restrict__ packed, double const* __restrict__ s,
                    double* __restrict__ x) {
  BidiagonalMerge const merge = level.merges[blockIdx.z];
  bool const is_lower = blockIdx.y != 0;
  int const upper = merge.n_left + 1, lower = merge.n_right + (right ? merge.extra : 0);
  int const rows = is_lower ? lower : upper, columns = merge.n_wanted,
            depth = merge.k_both + (is_lower ? merge.k_right : merge.k_left);
  int const tiles = (level.largest + tile - 1) / tile;
  int const row = static_cast<int>(blockIdx.x) % tiles * tile, column = static_cast<int>(blockIdx.x) / tiles * tile;
  if (row >= rows || column >= columns)
    return;
  std::int64_t const n = level.order, corner = merge.first + merge.first * n;
  double const* const a = packed + corner + (is_lower ? upper + merge.k_left * n : 0);
  double const* const b = s + corner + (is_lower ? merge.k_left : 0);
  double* const c = x + corner + (is_lower ? upper : 0);
  __shared__ double a_tile[tile_depth][tile], b_tile[tile_depth][tile + 1];
  int const thread = static_cast<int>(threadIdx.x), i = thread % 16, j = thread / 16;
  double sums[4][4] = {};
  for (int begin = 0; begin < depth; begin += tile_depth) {
    for (int at = thread; at < tile * tile_depth; at += tile_threads) {
      int const r = at % tile, l = at / tile;
      a_tile[l][r] = row + r < rows && begin + l < depth ? a[row + r + (begin + l) * n] : 0;
    }
    for (int at = thread; at < tile * tile_depth; at += tile_threads) {
      int const l = at % tile_depth, r = at / tile_depth;
      b_tile[l][r] = column + r < columns && begin + l < depth ? b[begin + l + (column + r) * n] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < tile_depth; ++l) {
      double left[4], above[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        left[q] = a_tile[l][i + 16 * q];
        above[q] = b_tile[l][j + 16 * q];
      }
#pragma unroll
      for (int p = 0; p < 4; ++p)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          sums[p][q] = fma(left[p], above[q], sums[p][q]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int q = 0; q < 4; ++q)
#pragma unroll
    for (int p = 0; p < 4; ++p)
      if (row + i + 16 * p < rows && column + j + 16 * q < columns)
        c[row + i + 16 * p + (column + j + 16 * q) * n] = sums[p][q];
}

__global__ void gather_columns_kernel(std::int64_t n, std::int32_t const* __restrict__ columns, double const* __restrict__ x,
                                      double* __restrict__ y) {
  std::int64_t const j = blockIdx.x, from = columns[j] * n;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
    y[i + j * n] = x[i + from];
}

class CudaBidiagonal final : public BidiagonalKernels {
public:
  void bisect(Context& context, std::int64_t n, double const* squares, double low, double high, std::int64_t count,
              double* values) const override {
    auto& device = cuda::of(context);
    std::int64_t const threads = std::int64_t{512} * device.multiprocessors();  // more share the arithmetic units without gain
    auto const [kernel, sections] = 32 * count <= threads   ? std::pair(&bisect_kernel<32>, 32)
                                    : 16 * count <= threads ? std::pair(&bisect_kernel<16>, 16)
                                    : 8 * count <= threads  ? std::pair(&bisect_kernel<8>, 8)
                                                            : std::pair(&bisect_kernel<4>, 4);
    kernel<<<cuda::n_blocks(count * sections, bisect_threads), bisect_threads, 0, device.stream()>>>(
        n, reinterpret_cast<double2 const*>(squares), low, high, count, values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void scatter_leaves(Context& context, std::int64_t n, LeafColumn const* columns, double const* leaves, std::int64_t leading,
                      double* x) const override {
    scatter_leaves_kernel<<<static_cast<unsigned>(n), 64, 0, cuda::of(context).stream()>>>(n, columns, leaves, leading, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void coupling_rows(Context& context, BidiagonalLevel const& level, double const* v, double* z) const override {
    coupling_kernel<<<by_merge(level, 128), 128, 0, cuda::of(context).stream()>>>(level, v, z);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void rotate(Context& context, BidiagonalLevel const& level, bool right, double* x) const override {
    rotate_kernel<<<by_merge(level, 64), 64, 0, cuda::of(context).stream()>>>(level, right, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void pack(Context& context, BidiagonalLevel const& level, bool right, double const* x, double* packed) const override {
    pack_kernel<<<by_merge(level, 1), copy_threads(level), 0, cuda::of(context).stream()>>>(level, right, x, packed);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void solve_secular(Context& context, BidiagonalLevel const& level) const override {
    secular_kernel<<<by_merge(level, roots_a_block), root_threads, 0, cuda::of(context).stream()>>>(level);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void recompute_row(Context& context, BidiagonalLevel const& level) const override {
    recompute_kernel<<<by_merge(level, roots_a_block), root_threads, 0, cuda::of(context).stream()>>>(level);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void vectors(Context& context, BidiagonalLevel const& level, bool right, double* s) const override {
    vectors_kernel<<<by_merge(level, 1), vector_threads, 0, cuda::of(context).stream()>>>(level, right, s);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void multiply(Context& context, BidiagonalLevel const& level, bool right, double const* packed, double const* s,
                double* x) const override {
    cudaStream_t const stream = cuda::of(context).stream();
    if (level.largest <= largest_small) {
      unsigned const tiles = cuda::n_blocks(level.largest, tile);
      dim3 const grid(tiles * tiles, 2, static_cast<unsigned>(level.on_host.size()));
      multiply_kernel<<<grid, tile_threads, 0, stream>>>(level, right, packed, s, x);
      POISSON_CUDA_CHECK(cudaGetLastError());
    } else
      for (BidiagonalMerge const& merge : level.on_host) {
        std::int64_t const n = level.order, corner = merge.first + merge.first * n, upper = merge.n_left + 1,
                           lower = merge.n_right + (right ? merge.extra : 0);
        gemm(context, false, false, upper, merge.n_wanted, merge.k_left + merge.k_both, 1, packed + corner, n, s + corner, n, 0,
             x + corner, n);
        gemm(context, false, false, lower, merge.n_wanted, merge.k_both + merge.k_right, 1,
             packed + corner + upper + merge.k_left * n, n, s + corner + merge.k_left, n, 0, x + corner + upper, n);
      }
    restore_kernel<<<by_merge(level, 1), copy_threads(level), 0, stream>>>(level, right, packed, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void gather_columns(Context& context, std::int64_t n, std::int64_t count, std::int32_t const* columns, double const* x,
                      double* y) const override {
    gather_columns_kernel<<<static_cast<unsigned>(count), 256, 0, cuda::of(context).stream()>>>(n, columns, x, y);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  /// Up to here one launch for all merges of a level beats a library call for each.
  static constexpr std::int32_t largest_small = 256;

  static dim3 by_merge(BidiagonalLevel const& level, int a_block) {
    return {cuda::n_blocks(level.largest, a_block), static_cast<unsigned>(level.on_host.size())};
  }
  static int copy_threads(BidiagonalLevel const& level) { return level.largest <= 128 ? 64 : 256; }
};

}  // namespace

BidiagonalKernels const& BidiagonalKernels::cuda() {
  static CudaBidiagonal const kernels;
  return kernels;
}

}  // namespace poisson
