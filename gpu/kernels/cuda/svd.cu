#include "gpu/kernels/svd.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/safe_point.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <cuda/atomic>

#include <algorithm>
#include <cassert>
#include <span>

namespace poisson {

namespace {

using Index = std::int64_t;

constexpr int most_width = 128;

struct Reflector {
  double tau, beta, scale;
};

/// x = (alpha, rest) becomes (beta, 0) under I - tau v v^T with v = (1, scale * rest).
__device__ Reflector reflector(double alpha, double squares_of_rest) {
  double const squares = fma(alpha, alpha, squares_of_rest);
  if (squares_of_rest == 0 || squares < reflector_underflow)
    return {0, alpha, 0};
  double const beta = alpha > 0 ? -sqrt(squares) : sqrt(squares);
  return {(beta - alpha) / beta, beta, 1 / (alpha - beta)};
}

/// The sum of v over the warp, in every lane.
__device__ double warp_sum(double v) {
  for (int distance = 16; distance > 0; distance /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, distance);
  return v;
}

__device__ unsigned load_acquire(unsigned& counter) {
  return ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device>(counter).load(::cuda::memory_order_acquire);
}

// --- QR of a panel: one kernel, whose blocks hold the rows in shared memory and meet once a column ---

constexpr int panel_threads = 256, panel_warps = panel_threads / 32;

struct Panel {
  Index m;
  int w;
  double* a;
  Index lda;
  double* t;
  Index ldt;
  double* r;
  Index row_stride, column_stride;
  int rows_of_block;
  double* exchange;   ///< twice, in turns: w sums of every block, then the pivot row
  unsigned* arrived;  ///< 0 between kernels
};

/// Householder with one meeting of the blocks a column: the products of column j with all columns below row j, which every block
/// adds up for itself, give the norm, the factors of the update, and for the columns left of j the Gram entries that T needs. Each
/// block then updates its rows and makes its part of the next products in the same pass. lane_rows: rows of a block in units of 32
/// that registers are held for; 0: any number.
template <int lane_rows, bool in_shared>
__global__ void __launch_bounds__(panel_threads, 1) panel_kernel(Panel const p) {
  extern __shared__ double tile_memory[];
  __shared__ double pivot[most_width], factor[most_width], gram[most_width], total[most_width], part[panel_threads];
  int const thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32, w = p.w;
  int const blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
  Index const first = Index{block} * p.rows_of_block;
  int const rows = static_cast<int>(min(Index{p.rows_of_block}, p.m - first)), q = static_cast<int>(min(p.m, Index{w}));
  double* const tile = in_shared ? tile_memory : p.a + first;
  Index const ld = in_shared ? p.rows_of_block : p.lda;
  Index const exchange_size = Index{blocks + 1} * w;
  if (in_shared)
    for (int k = warp; k < w; k += panel_warps)
      for (int r = lane; r < rows; r += 32)
        tile[r + k * ld] = p.a[first + r + k * p.lda];
  __syncthreads();

  // Subtracts factor * column (next - 1) from the columns after `next` and leaves the products with column `next`.
  auto const pass = [&](int next) {
    double* const to = p.exchange + next % 2 * exchange_size;
    int const pivot_at = next - first >= 0 && next - first < rows ? static_cast<int>(next - first) : -1;
    double v[lane_rows > 0 ? lane_rows : 1], x[lane_rows > 0 ? lane_rows : 1];
    auto const load = [&](int r, double& v_r, double& x_r) {
      v_r = next > 0 && r < rows && first + r > next - 1 ? tile[r + (next - 1) * ld] : 0.0;
      x_r = r < rows && first + r > next ? tile[r + next * ld] : 0.0;
    };
    if (lane_rows > 0)
#pragma unroll
      for (int i = 0; i < lane_rows; ++i)
        load(lane + 32 * i, v[i], x[i]);
    for (int k = warp; k < w; k += panel_warps) {
      double* const column = tile + k * ld;
      bool const update = k > next && next > 0;
      double const f = update ? factor[k] : 0;
      double sum = 0;
      auto const row = [&](int r, double v_r, double x_r) {
        double value = column[r];
        if (update) {
          value = fma(-f, v_r, value);
          column[r] = value;
        }
        sum = fma(value, x_r, sum);
        if (r == pivot_at)
          __stcg(to + Index{blocks} * w + k, value);
      };
      if (lane_rows > 0) {
#pragma unroll
        for (int i = 0; i < lane_rows; ++i)
          if (lane + 32 * i < rows)
            row(lane + 32 * i, v[i], x[i]);
      } else
        for (int r = lane; r < rows; r += 32) {
          load(r, v[0], x[0]);
          row(r, v[0], x[0]);
        }
      sum = warp_sum(sum);
      if (lane == 0)
        __stcg(to + Index{block} * w + k, sum);
    }
  };
  // Column j of T from the Gram entries; a thread's row needs only what the thread wrote. Only in block 0.
  double tau = 0;
  auto const column_of_t = [&](int j) {
    if (thread < q) {
      double sum = 0;
      for (int l = thread; l < j; ++l)
        sum = fma(p.t[thread + l * p.ldt], gram[l], sum);
      p.t[thread + j * p.ldt] = thread < j ? -tau * sum : thread == j ? tau : 0.0;
    }
  };

  pass(0);
  unsigned target = 0;
  for (int j = 0; j < q; ++j) {
    target += static_cast<unsigned>(blocks);
    __syncthreads();
    if (thread == 0 && blocks > 1) {
      __threadfence();
      atomicAdd(p.arrived, 1u);
    }
    if (block == 0 && j > 0)
      column_of_t(j - 1);
    if (thread == 0 && blocks > 1)
      while (load_acquire(*p.arrived) < target) {
      }
    __syncthreads();
    double const* const from = p.exchange + j % 2 * exchange_size;
    int const stripe = (w + 31) / 32 * 32, stripes = panel_threads / stripe;
    int const k = thread % stripe;
    if (k < w && thread / stripe < stripes) {
      double sum = 0;
#pragma unroll 4
      for (int b = thread / stripe; b < blocks; b += stripes)
        sum += __ldcg(from + Index{b} * w + k);
      part[thread] = sum;
    }
    if (thread < w)
      pivot[thread] = __ldcg(from + Index{blocks} * w + thread);
    __syncthreads();
    if (thread < w) {
      double sum = part[thread];
      for (int s = 1; s < stripes; ++s)
        sum += part[thread + s * stripe];
      total[thread] = sum;
    }
    __syncthreads();
    Reflector const h = reflector(pivot[j], total[j]);
    tau = h.tau;
    if (thread < w) {
      double const product = fma(total[thread], h.scale, pivot[thread]);  // of v with this column
      if (thread > j)
        factor[thread] = tau * product;
      else if (thread < j)
        gram[thread] = product;
      if (block == 0 && thread >= j)
        p.r[j * p.row_stride + thread * p.column_stride] = thread == j ? h.beta : fma(-tau, product, pivot[thread]);
    }
    __syncthreads();
    if (j + 1 == w)
      for (int r = thread; r < rows; r += panel_threads) {
        if (first + r > j)
          tile[r + j * ld] *= h.scale;
      }
    else
      for (int r = thread; r < rows; r += panel_threads)
        if (first + r > j) {
          double const v = tile[r + j * ld] * h.scale;
          tile[r + j * ld] = v;
          tile[r + (j + 1) * ld] = fma(-factor[j + 1], v, tile[r + (j + 1) * ld]);
        }
    __syncthreads();
    if (j + 1 < q)
      pass(j + 1);
  }
  if (block == 0)
    column_of_t(q - 1);
  for (int k = warp; k < q; k += panel_warps)
    for (int r = lane; r < rows; r += 32)
      p.a[first + r + k * p.lda] = first + r > k ? tile[r + k * ld] : first + r == k ? 1.0 : 0.0;
  if (thread == 0 && blocks > 1 && atomicAdd(p.arrived, 1u) == target + static_cast<unsigned>(blocks) - 1)
    *p.arrived = 0;  // all others are past their last look at it
}

// --- Copies ---

constexpr int tile_size = 32, tile_rows = 8;

__global__ void __launch_bounds__(tile_size* tile_rows)
    transpose_kernel(Index m, Index n, double const* __restrict__ a, Index lda, double* __restrict__ b, Index ldb) {
  __shared__ double tile[tile_size][tile_size + 1];
  Index const i0 = Index{blockIdx.x} * tile_size, j0 = Index{blockIdx.y} * tile_size;
  int const x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (int j = y; j < tile_size; j += tile_rows)
    if (i0 + x < m && j0 + j < n)
      tile[j][x] = a[i0 + x + (j0 + j) * lda];
  __syncthreads();
  for (int i = y; i < tile_size; i += tile_rows)
    if (i0 + i < m && j0 + x < n)
      b[j0 + x + (i0 + i) * ldb] = tile[x][i];
}

__global__ void diagonals_kernel(BandView band, double* d, double* e) {
  Index const i = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < band.n)
    d[i] = band.entries[i + i * band.leading()];
  if (i + 1 < band.n)
    e[i] = band.entries[i + (i + 1) * band.leading()];
}

// --- The chase: one kernel; a block takes a sweep, block after block along the band, right behind the sweep before ---

struct Chase {
  Index n;
  int width;
  Index sweeps, groups;
  double* entries;
  Index leading;
  double *left, *right;
  Index const* slot_of_wave;
  unsigned* done;  ///< half steps of every sweep that are finished

  __device__ unsigned half_steps(Index sweep) const { return static_cast<unsigned>(2 * ((n - 2 - sweep) / width + 1) - 1); }
  /// Where the reflector of a sweep and step begins in `left` and `right`.
  __device__ Index place(Index sweep, Index step) const {
    Index const group = sweep / width, k = sweep % width, slot = slot_of_wave[step + groups - 1 - group] + group;
    return slot * 2 * width * width + k * (2 * Index{width} + 1) + 1;
  }
};

/// Width up to 32 * lane_rows. A block of the band is held in registers: a lane has the rows lane + 32 i, a warp every (4
/// lane_rows)-th column, 8 of them. What a half step reads of the band has been written by the sweep before, in its half steps up
/// to two further.
template <int lane_rows>
__global__ void __launch_bounds__(128 * lane_rows) chase_kernel(Chase const c) {
  constexpr int rows = 32 * lane_rows, warps = 4 * lane_rows, columns = 8;
  __shared__ double u[rows], first_row[rows], product[rows], part[warps][rows];
  __shared__ double shared_tau_u;
  int const thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  double v[columns];  // of this warp's columns
  double tau_u = 0, tau_v = 0;
  double x[lane_rows][columns];

  auto const load = [&](double const* block, int n_rows, int n_columns) {
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int i = 0; i < lane_rows; ++i) {
        int const row = lane + 32 * i, column = warp + warps * j;
        x[i][j] = row < n_rows && column < n_columns ? __ldcg(block + row + column * c.leading) : 0.0;
      }
  };
  auto const store = [&](double* block, int n_rows, int n_columns) {
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int i = 0; i < lane_rows; ++i) {
        int const row = lane + 32 * i, column = warp + warps * j;
        if (row < n_rows && column < n_columns)
          __stcg(block + row + column * c.leading, x[i][j]);
      }
  };
  // v, tau_v and the new first entry of the row in first_row, which is complete; keeps v. Every warp for itself.
  auto const make_v = [&](Index sweep, Index step, int length) {
    double squares = 0;
#pragma unroll
    for (int i = 0; i < lane_rows; ++i) {
      double const value = lane + 32 * i > 0 ? first_row[lane + 32 * i] : 0.0;
      squares = fma(value, value, squares);
    }
    Reflector const h = reflector(first_row[0], warp_sum(squares));
    tau_v = h.tau;
    double const one = h.tau == 0 ? 0.0 : 1.0;
#pragma unroll
    for (int j = 0; j < columns; ++j)
      v[j] = warp + warps * j == 0 ? one : first_row[warp + warps * j] * h.scale;
    if (c.right != nullptr && thread < length)
      c.right[c.place(sweep, step) + thread] = thread == 0 ? one : first_row[thread] * h.scale;
    return h.beta;
  };
  // x -= tau_v (x v) v^T
  auto const apply_right = [&] {
#pragma unroll
    for (int i = 0; i < lane_rows; ++i) {
      double sum = 0;
#pragma unroll
      for (int j = 0; j < columns; ++j)
        sum = fma(x[i][j], v[j], sum);
      part[warp][lane + 32 * i] = sum;
    }
    __syncthreads();
    if (thread < rows) {
      double sum = part[0][thread];
#pragma unroll
      for (int k = 1; k < warps; ++k)
        sum += part[k][thread];
      product[thread] = tau_v * sum;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < lane_rows; ++i) {
      double const factor = product[lane + 32 * i];
#pragma unroll
      for (int j = 0; j < columns; ++j)
        x[i][j] = fma(-factor, v[j], x[i][j]);
    }
  };
  // x -= tau_u u (u^T x), in the columns from `from` of this warp's on
  auto const apply_left = [&](int from) {
    double of_u[lane_rows];
#pragma unroll
    for (int i = 0; i < lane_rows; ++i)
      of_u[i] = u[lane + 32 * i];
    double sum[columns];
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      sum[j] = 0;
#pragma unroll
      for (int i = 0; i < lane_rows; ++i)
        sum[j] = fma(of_u[i], x[i][j], sum[j]);
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
#pragma unroll
      for (int j = 0; j < columns; ++j)
        sum[j] += __shfl_xor_sync(0xffffffffu, sum[j], distance);
#pragma unroll
    for (int j = 0; j < columns; ++j)
      if (j >= from) {
        double const factor = tau_u * sum[j];
#pragma unroll
        for (int i = 0; i < lane_rows; ++i)
          x[i][j] = fma(-factor, of_u[i], x[i][j]);
      }
  };

  for (Index sweep = blockIdx.x; sweep < c.sweeps; sweep += gridDim.x) {
    unsigned const halves = c.half_steps(sweep), halves_before = sweep > 0 ? c.half_steps(sweep - 1) : 0;
    unsigned known = 0;
    for (unsigned half = 0; half < halves; ++half) {
      Index const step = half / 2, first = sweep + 1 + step * c.width;
      int const length = static_cast<int>(min(Index{c.width}, c.n - first));
      if (thread == 0 && sweep > 0) {
        unsigned const wanted = min(half + 3, halves_before);
        while (known < wanted)
          known = load_acquire(c.done[sweep - 1]);
      }
      __syncthreads();
      if (half % 2 == 0) {
        double* const block = c.entries + first + first * c.leading;
        load(block, length, length);
        if (half == 0) {
          double* const row = c.entries + sweep + first * c.leading;
          if (thread < rows)
            first_row[thread] = thread < length ? __ldcg(row + thread * c.leading) : 0.0;
          __syncthreads();
          double const beta = make_v(sweep, 0, length);
          if (thread < length)
            __stcg(row + thread * c.leading, thread == 0 ? beta : 0.0);
        }
        apply_right();
        if (warp == 0) {
          double squares = 0;
#pragma unroll
          for (int i = 0; i < lane_rows; ++i)
            if (lane + 32 * i > 0)
              squares = fma(x[i][0], x[i][0], squares);
          Reflector const h = reflector(__shfl_sync(0xffffffffu, x[0][0], 0), warp_sum(squares));
          double* const kept = c.left == nullptr ? nullptr : c.left + c.place(sweep, step);
#pragma unroll
          for (int i = 0; i < lane_rows; ++i) {
            int const row = lane + 32 * i;
            double const value = row > 0 ? x[i][0] * h.scale : h.tau == 0 ? 0.0 : 1.0;
            u[row] = value;
            x[i][0] = row > 0 ? 0.0 : h.beta;
            if (kept != nullptr && row < length)
              kept[row] = value;
          }
          if (lane == 0)
            shared_tau_u = h.tau;
        }
        __syncthreads();
        tau_u = shared_tau_u;
        apply_left(warp == 0 ? 1 : 0);
        store(block, length, length);
      } else {
        Index const next = first + c.width;
        int const n_columns = static_cast<int>(min(Index{c.width}, c.n - next));
        double* const block = c.entries + first + next * c.leading;
        load(block, length, n_columns);
        apply_left(0);
        if (lane == 0)
#pragma unroll
          for (int j = 0; j < columns; ++j)
            first_row[warp + warps * j] = x[0][j];
        __syncthreads();
        double const beta = make_v(sweep, step + 1, n_columns);
        apply_right();
        if (lane == 0)
#pragma unroll
          for (int j = 0; j < columns; ++j)
            x[0][j] = warp + warps * j == 0 ? beta : 0.0;
        store(block, length, n_columns);
      }
      __syncthreads();
      if (thread == 0) {
        __threadfence();
        ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device>(c.done[sweep]).store(half + 1, ::cuda::memory_order_release);
      }
    }
  }
}

// --- T of many block reflectors ---

constexpr int gram_threads = 256;

/// The upper triangles of Y^T Y, width x width each, of the blocks of the chase; column j of Y has `width` entries from row j + 1
/// on. Sums are made in twice the precision and then rounded (Ogita, Rump, Oishi 2005, Dot2): their rounding errors would make up a
/// third of what the back-transformation loses in orthogonality.
__global__ void __launch_bounds__(gram_threads) gram_kernel(int width, double const* __restrict__ y, double* __restrict__ gram) {
  extern __shared__ double tile[];  // entry q of column k at q (width + 1) + k
  int const thread = static_cast<int>(threadIdx.x), ld = width + 1;
  double const* const of_block = y + Index{blockIdx.x} * 2 * width * width + 1;
  for (int e = thread; e < width * width; e += gram_threads) {
    int const q = e % width, k = e / width;
    tile[q * ld + k] = of_block[q + k * (2 * Index{width} + 1)];
  }
  __syncthreads();
  for (int e = thread; e < width * width; e += gram_threads) {
    int const i = e / width, j = e % width;
    if (i > j)
      continue;
    double sum = 0, error = 0;
    for (int q = 0; q < width - (j - i); ++q) {
      double const a = tile[(q + j - i) * ld + i], b = tile[q * ld + j];
      double const product = __dmul_rn(a, b), rest = fma(a, b, -product), t = sum + product, back = t - sum;
      error += ((sum - (t - back)) + (product - back)) + rest;
      sum = t;
    }
    gram[Index{blockIdx.x} * width * width + i + Index{j} * width] = sum + error;
  }
}

/// Each block: the upper triangle of gram = Y^T Y, width x width, becomes T of I - Y T Y^T, the inverse of its upper triangle with
/// half the diagonal. Zero columns of Y stand for identities and get zeros. A thread solves for a column.
__global__ void __launch_bounds__(most_width) form_t_kernel(int width, double* gram) {
  extern __shared__ double t[];  // by rows
  double* const g = gram + Index{blockIdx.x} * width * width;
  int const j = static_cast<int>(threadIdx.x);
  if (j < width) {
    for (int i = width - 1; i >= 0; --i) {
      double const squares = g[i + i * width], tau = squares > 0 ? 2 / squares : 0.0;
      double sum = 0;
      for (int l = i + 1; l < width; ++l)
        sum = fma(g[i + l * width], t[l * width + j], sum);  // t is zero below the diagonal
      t[i * width + j] = i > j ? 0.0 : i == j ? tau : -tau * sum;
    }
  }
  __syncthreads();
  if (j < width)
    for (int i = 0; i < width; ++i)
      g[j + i * width] = t[j * width + i];
}

// --- The chase's back-transformation: both products of a block in one kernel ---

constexpr int apply_threads = 256, columns_of_warp = 16, columns_of_strip = apply_threads / 32 * columns_of_warp;

/// C += A B by a warp, C and A of 16 rows and 8 columns, B of 8 x 8. With g = lane / 4 and l = 2 (lane % 4) a thread has of C the
/// entries (g, l), (g, l + 1), (g + 8, l), (g + 8, l + 1), the same of A, and of B (l, g), (l + 1, g): a result can be the next
/// product's factor. The instruction sums over its k in another order, which is the same for A and B.
__device__ void multiply_add(double (&c)[4], double const (&a)[4], double2 b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[2]), "d"(a[1]), "d"(a[3]), "d"(b.x), "d"(b.y));
#elif __CUDA_ARCH__ >= 800
  auto const part = [](double& c0, double& c1, double of_a, double of_b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c0), "+d"(c1)
        : "d"(of_a), "d"(of_b));
  };
  part(c[0], c[1], a[0], b.x);
  part(c[2], c[3], a[2], b.x);
  part(c[0], c[1], a[1], b.y);
  part(c[2], c[3], a[3], b.y);
#endif
}

/// X = X - (Y T) (Y^T X) for every block of a wave, blockIdx.y, on its 2 width rows of X; `ty` has T^T Y^T, width x 2 width. A warp
/// holds 16 columns of these rows in registers, X^T as multiply_add has C, so that X is read and written once, 32 width bytes a
/// column for 8 width^2 operations counted with zeros; Y and T^T Y^T stay in shared memory for one strip of columns after
/// the other. 8 x 8 tiles that are zero are left out: 7/16 of Y, 7/32 of Y T for a width of 64. n_rows: of X from its first row
/// here on; that number, ldx and x are even.
template <int width>
__global__ void __launch_bounds__(apply_threads, width <= 32 ? 2 : 1)
    apply_kernel(double const* __restrict__ y, double const* __restrict__ ty, Index n_rows, Index n_columns, double* x, Index ldx) {
  constexpr int rows = 2 * width, size = rows * width, tiles = width / 8;
  constexpr int ldy = rows + 8, ldt = width + 8;  // no two of the threads that load at once from the same bank
  extern __shared__ double2 reflectors[];
  double* const y_tile = reinterpret_cast<double*>(reflectors);
  double* const t_tile = y_tile + ldy * width;
  int const thread = static_cast<int>(threadIdx.x), warp = thread / 32, g = thread % 32 / 4, l = 2 * (thread % 4);
  auto const two = [](double const* p) { return *reinterpret_cast<double2 const*>(p); };
  for (int e = 2 * thread; e < size; e += 2 * apply_threads) {
    *reinterpret_cast<double2*>(y_tile + e % rows + e / rows * ldy) = two(y + Index{blockIdx.y} * size + e);
    *reinterpret_cast<double2*>(t_tile + e % width + e / width * ldt) = two(ty + Index{blockIdx.y} * size + e);
  }
  __syncthreads();
  Index const first = Index{blockIdx.y} * rows;
  int const rows_left = static_cast<int>(min(Index{rows}, n_rows - first));
  for (Index strip = blockIdx.x; strip * columns_of_strip < n_columns; strip += gridDim.x) {
    Index const column = strip * columns_of_strip + warp * columns_of_warp + g;
    if (column - g >= n_columns)
      continue;  // the whole warp
    bool const has[] = {column < n_columns, column + 8 < n_columns};
    double* const of_x = x + first + l + column * ldx;
    double a[2 * tiles][4], p[tiles][4] = {};
#pragma unroll
    for (int i = 0; i < 2 * tiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        double2 const v = 8 * i + l < rows_left && has[half] ? two(of_x + 8 * i + half * 8 * ldx) : double2{0, 0};
        a[i][2 * half] = v.x;
        a[i][2 * half + 1] = v.y;
      }
#pragma unroll
    for (int i = 0; i < 2 * tiles; ++i)
#pragma unroll
      for (int k = 0; k < tiles; ++k)
        if (k <= i && i <= k + tiles)
          multiply_add(p[k], a[i], two(y_tile + 8 * i + l + (8 * k + g) * ldy));
#pragma unroll
    for (int k = 0; k < tiles; ++k) {
      double const minus[4] = {-p[k][0], -p[k][1], -p[k][2], -p[k][3]};
#pragma unroll
      for (int i = 0; i < 2 * tiles; ++i)
        if (i <= k + tiles)
          multiply_add(a[i], minus, two(t_tile + 8 * k + l + (8 * i + g) * ldt));
    }
#pragma unroll
    for (int i = 0; i < 2 * tiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (8 * i + l < rows_left && has[half])
          *reinterpret_cast<double2*>(of_x + 8 * i + half * 8 * ldx) = {a[i][2 * half], a[i][2 * half + 1]};
  }
}

template <int width>
constexpr std::size_t apply_shared_bytes = sizeof(double) * ((2 * width + 8) * width + (width + 8) * 2 * width);

template <class Kernel>
void allow_shared(Kernel* kernel, std::size_t bytes) {
  POISSON_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

/// Whether multiply_add does something in the code that was built for the device.
template <class Kernel>
bool has_double_mma(Kernel* kernel) {
  cudaFuncAttributes attributes{};
  POISSON_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  return attributes.ptxVersion >= 80;
}

class CudaSvd final : public SvdKernels {
public:
  int max_width() const override { return most_width; }

  void panel_qr(Context& context, Index m, int w, double* a, Index lda, double* t, Index ldt, double* r, Index row_stride,
                Index column_stride) const override {
    auto& device = cuda::of(context);
    // Few blocks meet faster; many have less to do each. 8 KiB are for the arrays of fixed size.
    int const blocks = static_cast<int>(std::min<Index>(device.multiprocessors(), (m + 127) / 128));
    int const rows = static_cast<int>((m + blocks - 1) / blocks), used = static_cast<int>((m + rows - 1) / rows);
    std::size_t const shared = sizeof(double) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(w);
    bool const in_shared = shared + 8192 <= static_cast<std::size_t>(device.shared_memory_per_block());
    Panel panel{m,
                w,
                a,
                lda,
                t,
                ldt,
                r,
                row_stride,
                column_stride,
                rows,
                device.partial_sums(2 * (Index{used} + 1) * w),
                device.block_counter()};
    auto* const kernel = !in_shared    ? &panel_kernel<0, false>
                         : rows <= 128 ? &panel_kernel<4, true>
                         : rows <= 256 ? &panel_kernel<8, true>
                                       : &panel_kernel<0, true>;
    std::size_t const bytes = in_shared ? shared : 0;
    allow_shared(kernel, bytes);
    void* arguments[] = {&panel};
    POISSON_CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void const*>(kernel), dim3(static_cast<unsigned>(used)),
                                                   dim3(panel_threads), arguments, bytes, device.stream()));
  }

  void copy(Context& context, Index m, Index n, double const* a, Index lda, double* b, Index ldb) const override {
    if (m == 0 || n == 0)
      return;
    auto const bytes = [](Index count) { return sizeof(double) * static_cast<std::size_t>(count); };
    POISSON_CUDA_CHECK(cudaMemcpy2DAsync(b, bytes(ldb), a, bytes(lda), bytes(m), static_cast<std::size_t>(n),
                                         cudaMemcpyDeviceToDevice, cuda::of(context).stream()));
  }

  void transpose(Context& context, Index m, Index n, double const* a, Index lda, double* b, Index ldb) const override {
    if (m == 0 || n == 0)
      return;
    dim3 const grid(cuda::n_blocks(m, tile_size), cuda::n_blocks(n, tile_size));
    transpose_kernel<<<grid, dim3(tile_size, tile_rows), 0, cuda::of(context).stream()>>>(m, n, a, lda, b, ldb);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void chase(Context& context, ChasePlan const& plan, BandView const& band, double* left, double* right) const override {
    if (plan.sweeps == 0)
      return;
    auto& device = cuda::of(context);
    Array<std::int64_t> const table(context, std::span<std::int64_t const>(plan.slot_of_wave));
    Array<unsigned> done(context, plan.sweeps);
    done.set_zero();
    Chase chase{plan.n, plan.width, plan.sweeps, plan.groups, band.entries, band.leading(), left, right, table.data(), done.data()};
    int const lane_rows = (plan.width + 31) / 32;
    auto* const kernel = lane_rows == 1   ? &chase_kernel<1>
                         : lane_rows == 2 ? &chase_kernel<2>
                         : lane_rows == 3 ? &chase_kernel<3>
                                          : &chase_kernel<4>;
    // A sweep is three half steps behind the one before: more blocks than fit into the first sweep that way would only wait.
    auto const useful = static_cast<unsigned>(std::min(plan.sweeps, 2 * plan.steps / 3 + 2));
    unsigned const blocks = std::min(useful, cuda::resident_blocks(device, kernel, 128 * lane_rows));
    void* arguments[] = {&chase};
    POISSON_CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void const*>(kernel), dim3(blocks),
                                                   dim3(static_cast<unsigned>(128 * lane_rows)), arguments, 0, device.stream()));
    device.synchronize();  // before the counters are freed
  }

  void diagonals(Context& context, BandView const& band, double* d, double* e) const override {
    diagonals_kernel<<<cuda::n_blocks(band.n, 256), 256, 0, cuda::of(context).stream()>>>(band, d, e);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void apply_chase(Context& context, ChasePlan const& plan, double const* y, Index n_columns, double* x, Index ldx) const override {
    if (plan.sweeps == 0 || n_columns == 0)
      return;
    auto& device = cuda::of(context);
    Index const width = plan.width, ldy = 2 * width, slot_size = plan.slot_size(), t_size = width * width;
    std::size_t const shared = sizeof(double) * static_cast<std::size_t>(t_size),
                      shared_for_gram = sizeof(double) * static_cast<std::size_t>(width * (width + 1));
    allow_shared(&form_t_kernel, shared);
    allow_shared(&gram_kernel, shared_for_gram);
    // T and T^T Y^T of the blocks of several waves are made together, since that takes a while however few they are.
    Index most_blocks = 0, most_of_wave = 0;
    auto const blocks_from = [&](Index begin, Index end) {
      Index blocks = 0;
      for (Index wave = begin; wave < end; ++wave)
        blocks += plan.blocks_of(wave);
      return blocks;
    };
    for (Index wave = 0; wave < plan.waves; ++wave)
      most_of_wave = std::max(most_of_wave, plan.blocks_of(wave));
    for (Index begin = 0, end = 0; begin < plan.waves; begin = end) {
      end = plan.end_of_waves(begin);
      most_blocks = std::max(most_blocks, blocks_from(begin, end));
    }
    auto* const own = width == 64 ? &apply_kernel<64> : &apply_kernel<32>;
    std::size_t const own_shared = width == 64 ? apply_shared_bytes<64> : apply_shared_bytes<32>;
    bool const use_own = plan.skip_zeros && (width == 32 || width == 64) && has_double_mma(own) &&
                         own_shared <= static_cast<std::size_t>(device.shared_memory_per_block()) && plan.n % 2 == 0 &&
                         ldx % 2 == 0 && reinterpret_cast<std::uintptr_t>(x) % sizeof(double2) == 0;
    if (use_own)
      allow_shared(own, own_shared);
    Array<double> t(context, most_blocks * t_size), ty(context, most_blocks * slot_size),
        product(context, use_own ? 0 : most_of_wave * width * n_columns);
    assert(t.bytes() + ty.bytes() + product.bytes() <= plan.apply_bytes(n_columns));
    SafePoint safe_point(context);
    for (Index begin = 0, end = 0, slot = 0; begin < plan.waves; begin = end) {
      end = plan.end_of_waves(begin);
      Index const blocks = blocks_from(begin, end);
      double const* of_wave = y + slot * slot_size;
      double const* ty_of_wave = ty.data();
      slot += blocks;
      gram_kernel<<<static_cast<unsigned>(blocks), gram_threads, shared_for_gram, device.stream()>>>(plan.width, of_wave, t.data());
      POISSON_CUDA_CHECK(cudaGetLastError());
      form_t_kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>((width + 31) / 32 * 32), shared, device.stream()>>>(
          plan.width, t.data());
      POISSON_CUDA_CHECK(cudaGetLastError());
      gemm_batched(context, true, true, width, ldy, width, 1, t.data(), width, t_size, of_wave, ldy, slot_size, 0, ty.data(), width,
                   slot_size, blocks);
      for (Index wave = begin; wave < end; ++wave) {
        // Blocks of a wave have every second group of `width` rows; the matrix may end within the last block.
        Index const group = plan.first_group(wave), count = plan.blocks_of(wave);
        Index const first = (2 * group + wave - (plan.groups - 1)) * width, last = first + (count - 1) * ldy;
        Index const rows_of_last = std::min(ldy, plan.n - last), whole = rows_of_last == ldy ? count : count - 1;
        auto const apply = [&](Index from, Index rows, Index blocks_here) {
          double const *const y_here = of_wave + from * slot_size, *const ty_here = ty_of_wave + from * slot_size;
          double* const x_here = x + first + from * ldy;
          if (use_own) {
            // More than fill the device, so that it does not wait long for the last ones; each keeps Y for several strips.
            Index const strips = (n_columns + columns_of_strip - 1) / columns_of_strip,
                        in_a_row = std::min(strips, 8 * device.multiprocessors() / blocks_here + 1);
            own<<<dim3(static_cast<unsigned>(in_a_row), static_cast<unsigned>(blocks_here)), apply_threads, own_shared,
                  device.stream()>>>(y_here, ty_here, plan.n - first - from * ldy, n_columns, x_here, ldx);
            POISSON_CUDA_CHECK(cudaGetLastError());
            return;
          }
          gemm_batched(context, true, false, width, n_columns, rows, 1, y_here, ldy, slot_size, x_here, ldx, ldy, 0, product.data(),
                       width, width * n_columns, blocks_here);
          gemm_batched(context, true, false, rows, n_columns, width, -1, ty_here, width, slot_size, product.data(), width,
                       width * n_columns, 1, x_here, ldx, ldy, blocks_here);
        };
        // Our kernel minds the end of the matrix.
        Index const at_once = use_own ? count : whole;
        for (Index from = 0; from < at_once; from += plan.blocks_of_launch)
          apply(from, ldy, std::min(plan.blocks_of_launch, at_once - from));
        if (at_once < count)
          apply(whole, rows_of_last, 1);
        safe_point(8 * static_cast<double>(width * width) * static_cast<double>(count * n_columns));
        of_wave += count * slot_size;
        ty_of_wave += count * slot_size;
      }
    }
    context.synchronize();  // before the workspace is freed
  }
};

}  // namespace

SvdKernels const& SvdKernels::cuda() {
  static CudaSvd const kernels;
  return kernels;
}

}  // namespace poisson
