#pragma once

#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace poisson::cuda {

// Products of matrices that are stored by rows: CSR, and slices of rows. A Source is a view of the matrix, known to the kernel by
//   Number          what it computes in, float, double or DoubleDouble
//   threads         of a block
//   minimum_blocks  on a multiprocessor, which bounds the registers; half of that in DoubleDouble
//   unit            rows that lie side by side in memory, a power of two up to 32: a slice of that many rows, 32 neighbouring rows
//                   of a higher slice, 1 for CSR
//   n_rows, n_units(), longest_row
//   splits          whether wide units are left to the whole block
//   width(u)        entries of the longest row of unit u
//   partial<phases>(u, live, lane, phase, x)   the part of row `lane` of unit u, a DotSum, that thread `phase` of the row's
//                   `phases` threads adds up; 0 unless `live`; called by all threads of a warp
//   row(place)      which row stands at place u * unit + lane
// The threads of a row are `unit` apart, so that neighbouring threads read neighbouring entries whatever the height of slices. A
// row's terms are added in an order that depends on the matrix and the device alone.

/// Units wider than this times the phases are left to the whole block, so that one long row does not hold up a product.
constexpr int widest_per_phase = 128;

#ifdef __CUDACC__

/// Adds the parts of every row; the sum is valid in phase 0. Called by the whole block.
template <int threads, int unit, int phases, class T>
__device__ __forceinline__ DotSum<T> add_phases(DotSum<T> sum) {
  constexpr int size = unit * phases;
#pragma unroll
  for (int distance = (size < 32 ? size : 32) / 2; distance >= unit; distance /= 2)
    sum.add(shuffle_down(sum, distance));
  if constexpr (size > 32) {
    __shared__ DotSum<T> of_warp[threads];
    constexpr int warps = size / 32;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads();  // the array may still be read by the sum before
    if (lane < unit)
      of_warp[warp * 32 + lane] = sum;
    __syncthreads();
    if (warp % warps == 0 && lane < unit)
#pragma unroll
      for (int w = 1; w < warps; ++w)
        sum.add(of_warp[(warp + w) * 32 + lane]);
  }
  return sum;
}

/// Whether terms beyond the end of a batch are not loaded, or loaded once more from the last place and not added. The former costs
/// a predicate for each term; there are seven, and with longer batches compilers wait for memory after every few terms.
enum class Beyond { skipped, loaded_again };

/// Adds value(j) * x[index(j)] for j = first, first + step, ... < end to `sum`, in that order. `batch` terms are loaded together,
/// the last ones too: terms one after another would wait for memory each. With `gaps` a negative index stands for no term. Where
/// `begun` is given, it holds the values of the first batch, loaded when indices were not known yet, and is written.
template <int batch, bool gaps, Beyond beyond, class T, class Value, class Index, class Begun = std::nullptr_t>
__device__ __forceinline__ DotSum<T> add_terms(DotSum<T> sum, std::int32_t first, std::int32_t end, std::int32_t step,
                                               Value const& value, Index const& index, ConstPointer<T> x, Begun begun = nullptr) {
  using Entry = std::invoke_result_t<Value const&, std::int32_t>;
  constexpr bool again = beyond == Beyond::loaded_again, has_begun = !std::is_same_v<Begun, std::nullptr_t>;
#pragma unroll 1
  for (std::int32_t j = first; j < end; j += batch * step) {
    auto const place = [&](int b) { return again ? min(j + b * step, end - 1) : j + b * step; };
    std::int32_t at[batch];
    Entry v[batch];
    T loaded[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b)
      at[b] = again || place(b) < end ? index(place(b)) : gaps ? -1 : 0;
#pragma unroll
    for (int b = 0; b < batch; ++b)
      if constexpr (has_begun)
        v[b] = begun[b];
      else
        v[b] = again || place(b) < end ? value(place(b)) : Entry(0.0);
#pragma unroll
    for (int b = 0; b < batch; ++b)
      if constexpr (again)
        loaded[b] = load_constant(x, gaps ? max(at[b], 0) : at[b]);
      else
        loaded[b] = (gaps ? at[b] >= 0 : place(b) < end) ? load_constant(x, at[b]) : T(0.0);
#pragma unroll
    for (int b = 0; b < batch; ++b)
      if (!again || (j + b * step < end && (!gaps || at[b] >= 0)))
        sum.add(v[b], loaded[b]);
    if constexpr (has_begun)
      if (j + batch * step < end)
#pragma unroll
        for (int b = 0; b < batch; ++b)
          begun[b] = value(min(j + (batch + b) * step, end - 1));
  }
  return sum;
}

/// Calls finish(row, (A x)_row, early(row)) for the rows of block `group`, once for each row, in one thread; `early` is what to
/// load before the sum is formed, since a load at the end has nothing to hide behind. Without `split` there are no wide units;
/// unless more than a warp shares a unit, warps then run freely, without a barrier.
template <int phases, bool split, class Source, class Early, class Finish>
__device__ __forceinline__ void for_rows(Source const& a, ConstPointer<typename Source::Number> x, std::int64_t group,
                                         Early const& early, Finish const& finish) {
  using T = typename Source::Number;
  constexpr int unit = Source::unit, threads = Source::threads, size = unit * phases, units = threads / size;
  std::int64_t const u = group * units + threadIdx.x / size;
  int const lane = threadIdx.x % unit, phase = threadIdx.x / unit % phases;
  bool const exists = u < a.n_units();
  bool const wide = split && exists && a.width(u) > widest_per_phase * phases;
  std::int64_t const place = u * unit + lane;
  bool const has_row = exists && !wide && phase == 0 && place < a.n_rows;
  auto const row = has_row ? static_cast<std::int32_t>(a.row(place)) : 0;  // 32 bits: registers are scarce
  using Loaded = decltype(early(row));
  Loaded const loaded = has_row ? early(row) : Loaded{};
  DotSum<T> const sum = add_phases<threads, unit, phases>(a.template partial<phases>(u, exists && !wide, lane, phase, x));
  if (has_row)
    finish(row, sum.value(), loaded);
  if constexpr (split)
    if (__syncthreads_or(wide)) {
      constexpr int all = threads / unit;
      for (std::int64_t w = group * units; w < min((group + 1) * units, a.n_units()); ++w)
        if (a.width(w) > widest_per_phase * phases) {
          int const its_lane = threadIdx.x % unit;
          DotSum<T> const its_sum =
              add_phases<threads, unit, all>(a.template partial<all>(w, true, its_lane, threadIdx.x / unit, x));
          std::int64_t const its_place = w * unit + its_lane;
          if (threadIdx.x < unit && its_place < a.n_rows)
            finish(a.row(its_place), its_sum.value(), early(a.row(its_place)));
        }
    }
}

template <class Source>
inline constexpr int minimum_blocks =
    std::is_same_v<typename Source::Number, DoubleDouble> ? Source::minimum_blocks / 2 : Source::minimum_blocks;

/// `plain`: alpha = 1 and beta = 0, in fewer registers.
template <int phases, bool split, bool plain, class Source, class T>
__global__ void __launch_bounds__(Source::threads, minimum_blocks<Source>)
    rows_product_kernel(Source const a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
  auto const nothing = [](std::int64_t) { return T(0); };
  if constexpr (plain)
    for_rows<phases, split>(a, x, blockIdx.x, nothing, [&](std::int64_t row, T sum, T) { store(y, row, sum); });
  else
    for_rows<phases, split>(a, x, blockIdx.x, nothing,
                            [&](std::int64_t row, T sum, T) { store(y, row, combine(alpha, sum, beta, y, row)); });
}

/// Dots want more registers than plain products: no more than 1536 threads on a multiprocessor.
template <class Source>
inline constexpr int minimum_blocks_of_dot = std::min(minimum_blocks<Source>, 1536 / Source::threads);

/// Calls finish(i, (A x)_i, x_i, finish.load(i)) for every row: see SmoothingRow.
template <int phases, bool split, class Source, class Finish, class V>
__global__ void __launch_bounds__(Source::threads, minimum_blocks<Source>)
    rows_finish_kernel(Source const a, V const* x, Finish const finish, std::int32_t const* stop) {
  if (*stop != 0)
    return;
  struct Own {
    V x;
    typename Finish::Terms terms;
  };
  for_rows<phases, split>(
      a, x, blockIdx.x,
      [&](std::int64_t row) {
        return Own{load_constant(x, row), finish.load(row)};
      },
      [&](std::int64_t row, V sum, Own const& own) { finish(row, sum, own.x, own.terms); });
}

/// For a grid that the device holds at once: *dot is complete when the kernel ends.
template <int phases, bool split, class Source, class T>
__global__ void __launch_bounds__(Source::threads, minimum_blocks_of_dot<Source>)
    rows_product_dot_kernel(Source const a, ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop, T* partial,
                            unsigned* counter) {
  if (*stop != 0)
    return;
  DotSum<T> of_thread{};
  for_rows<phases, split>(
      a, x, blockIdx.x, [&](std::int64_t row) { return load_constant(x, row); },
      [&](std::int64_t row, T sum, T x_row) {
        store(y, row, sum);
        of_thread.add(x_row, sum);
      });
  T sums[1] = {of_thread.value()};
  if (grid_sum<Source::threads, 8>(sums, partial, counter))
    *dot = sums[0];
}

/// For larger grids: every warp leaves its part of the dot in `partial`, and waits for nobody; sum_partials adds them up. (Blocks
/// that live long and take their rows in turns drift apart, and lose 10 to 30 per cent.)
template <int phases, bool split, class Source, class T>
__global__ void __launch_bounds__(Source::threads, minimum_blocks_of_dot<Source>)
    rows_product_partial_dot_kernel(Source const a, ConstPointer<T> x, Pointer<T> y, std::int32_t const* stop, T* partial) {
  if (*stop != 0)
    return;
  DotSum<T> dot{};
  for_rows<phases, split>(
      a, x, blockIdx.x, [&](std::int64_t row) { return load_constant(x, row); },
      [&](std::int64_t row, T sum, T x_row) {
        store(y, row, sum);
        dot.add(x_row, sum);
      });
  store_warp_sum<Source::unit, Source::unit * phases>(dot.value(), partial);
}

#endif

/// Calls launch with whether units must be split.
template <int phases, class Source, class Launch>
void with_split(Source const& a, Launch const& launch) {
  if constexpr (Source::splits && Source::unit * phases < Source::threads)
    if (a.longest_row > widest_per_phase * phases)
      return launch(std::true_type{});
  launch(std::false_type{});
}

/// y = alpha A x + beta y with `phases` threads for each row.
template <int phases, class Source, class T = typename Source::Number>
void rows_product(Context& context, Source const& a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
  if (a.n_rows == 0)
    return;
  constexpr int units = Source::threads / (Source::unit * phases);
  with_split<phases>(a, [&](auto split) {
    auto const kernel = alpha == 1 && beta == 0 ? rows_product_kernel<phases, split(), true, Source, T>
                                                : rows_product_kernel<phases, split(), false, Source, T>;
    kernel<<<n_blocks(a.n_units(), units), Source::threads, 0, of(context).stream()>>>(a, alpha, x, beta, y);
  });
  POISSON_CUDA_CHECK(cudaGetLastError());
}

/// What `finish` makes of A x, unless *stop is set.
template <int phases, class Source, class Finish, class V>
void rows_finish(Context& context, Source const& a, V const* x, Finish const& finish, std::int32_t const* stop) {
  if (a.n_rows == 0)
    return;
  constexpr int units = Source::threads / (Source::unit * phases);
  with_split<phases>(a, [&](auto split) {
    rows_finish_kernel<phases, split(), Source, Finish, V>
        <<<n_blocks(a.n_units(), units), Source::threads, 0, of(context).stream()>>>(a, x, finish, stop);
  });
  POISSON_CUDA_CHECK(cudaGetLastError());
}

/// y = A x and *dot = x . y unless *stop is set. Precondition: n_rows > 0, square.
template <int phases, class Source, class T = typename Source::Number>
void rows_product_dot(Context& context, Source const& a, ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) {
  if (a.n_rows == 0)
    return;
  auto& device = of(context);
  constexpr int units = Source::threads / (Source::unit * phases);
  unsigned const blocks = n_blocks(a.n_units(), units);
  with_split<phases>(a, [&](auto split) {
    auto const at_once = rows_product_dot_kernel<phases, split(), Source, T>;
    if (blocks <= resident_blocks(device, at_once, Source::threads)) {
      at_once<<<blocks, Source::threads, 0, device.stream()>>>(a, x, y, dot, stop, device.partial_sums<T>(blocks),
                                                               device.block_counter());
    } else {
      T* const partial = device.partial_sums<T>(partials_of_warps(blocks, Source::threads));
      rows_product_partial_dot_kernel<phases, split(), Source, T>
          <<<blocks, Source::threads, 0, device.stream()>>>(a, x, y, stop, partial);
      sum_partials(device, partial, blocks, Source::threads, dot, stop);
    }
  });
  POISSON_CUDA_CHECK(cudaGetLastError());
}

/// Whether a matrix is so small that a device is not filled by `threads` of them; more threads for each row then help.
[[nodiscard]] inline bool leaves_device_idle(Context& context, std::int64_t threads) {
  return threads < std::int64_t{1024} * of(context).multiprocessors();
}

}  // namespace poisson::cuda
