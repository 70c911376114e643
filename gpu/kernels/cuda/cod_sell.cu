#include "gpu/kernels/cod_sell.hpp"

#include "gpu/kernels/cuda/rows.cuh"
#include "gpu/kernels/cuda/slices.cuh"

namespace poisson {

namespace {

constexpr int threads = 128;

/// How a kernel is made. Where columns are irregular a warp should wait for memory as seldom as can be: for where the slice begins;
/// then for its distances and the columns outside its pattern, all at once into shared memory; then for each batch of terms. Blocks
/// of two warps make room as soon as these are done. Nothing is asked of L2 ahead: entries would cross the link between its two
/// halves twice, and that link is what bounds the product (busy for 90 to 94 per cent of the time; docs/performance.md).
struct CodSellTuning {
  int threads, minimum_blocks;
  int batch;             ///< terms of a row that a thread loads together, of those whose indices are in shared memory
  int staged_distances;  ///< the distances of a slice that are there
  int staged_columns;    ///< the columns of a row that are there, the base included; 0: none, all are read through the cache
  int batch_beyond;      ///< terms whose columns are read through the cache
  bool values_first;     ///< the first batch's values are asked for before the indices; only with staged columns
  bool splits;           ///< wide slices between the threads of the block
};

/// Rows have fewer terms than this, or are long.
constexpr std::int64_t long_row = 48, very_long_row = 96;

/// Threads that share a slice, or 32 neighbouring rows of a higher one. (The more, the fewer terms each has to wait for; the fewer,
/// the fewer instructions for a slice.)
constexpr int threads_of_slice(int c, std::int64_t mean_row) {
  if (mean_row < long_row)
    return 8;
  return c <= 4 && mean_row < very_long_row ? 16 : 32;
}

/// Measured on an H200: refined balls of order 1, 2, 3 (27, 64, 124 terms a row), microseconds for C = 4, 8, 16, 32: 131, 126, 125,
/// 133; 346, 345, 365, 370; 270, 268, 274, 283. `values_first` where compilers would otherwise give the read of an index from
/// shared memory the scoreboard of a value from DRAM, which makes a batch wait twice (C = 16: 132 in place of 125; by the machine
/// code, dots with C = 32 too); with C = 8, and above 32, it costs 3 per cent and that does not happen.
constexpr CodSellTuning tuning_for(int c, bool rows_are_long) {
  if (!rows_are_long)
    return {64, 16, 7, 32, 28, 4, c == 4 || c == 16 || c == 32, false};
  if (0 < c && c <= 8)  // a thread has few terms of a row, and all indices of a slice fit
    return {64, 16, 4, 128, 64, 3, false, false};
  return c == 16 ? CodSellTuning{64, 16, 5, 128, 0, 5, false, false} : CodSellTuning{64, 16, 7, 64, 0, 7, false, false};
}

/// Where the device would be idle, or wide slices are split.
constexpr CodSellTuning few_threads{128, 8, 7, 64, 0, 7, false, true};

/// Murakami 2024, Algorithm 3 (with x[base] in line 9, and the values walked in lines 17 to 20).
template <int fixed_c, class T, class Values, CodSellTuning tuning>
struct CodSellSource : CodSellView {
  using Number = T;
  static constexpr int threads = tuning.threads, unit = cuda::unit_of<fixed_c>;
  static constexpr bool is_wide = std::is_same_v<T, DoubleDouble>;  // takes more registers for each term
  static constexpr int minimum_blocks = is_wide ? 1536 / threads : tuning.minimum_blocks;
  static constexpr int batch = is_wide ? std::min(4, tuning.batch) : tuning.batch;
  static constexpr int batch_beyond = is_wide ? std::min(4, tuning.batch_beyond) : tuning.batch_beyond;
  static constexpr bool splits = tuning.splits;
  Values entries;
  int log2_c;

  CodSellSource(CodSellView const& view, Values values_of_view)
      : CodSellView(view), entries(values_of_view), log2_c(cuda::log2_of(view.slice_size)) {}
  [[nodiscard]] __host__ __device__ std::int64_t n_units() const { return (n_rows + unit - 1) / unit; }
  [[nodiscard]] __device__ std::int64_t row(std::int64_t place) const { return __ldg(rows + place); }
  [[nodiscard]] __device__ int log2_height() const { return fixed_c == 0 ? log2_c : std::countr_zero(unsigned{fixed_c}); }
  [[nodiscard]] __device__ std::int64_t slice_of(std::int64_t u) const { return u * unit >> log2_height(); }
  [[nodiscard]] __device__ std::int32_t width(std::int64_t u) const {
    std::int64_t const slice = slice_of(u);
    return static_cast<std::int32_t>((__ldg(value_ptr + slice + 1) - __ldg(value_ptr + slice)) >> log2_height());
  }

  template <int phases>
  [[nodiscard]] __device__ __forceinline__ DotSum<T> partial(std::int64_t u, bool live, int lane, int phase,
                                                             ConstPointer<T> x) const {
    static_assert(!tuning.values_first || tuning.staged_columns > 0);
    constexpr int lanes = unit * phases < 32 ? unit * phases : 32;  // of a warp that work on one slice
    using Columns = std::conditional_t<unit == 2, int2, int4>;      // what a thread stages at once
    constexpr int in_vector = sizeof(Columns) / 4, vectors_of_column = unit / in_vector;
    constexpr int column_rounds = (tuning.staged_columns * vectors_of_column + lanes - 1) / lanes;
    constexpr int distance_rounds = (tuning.staged_distances + lanes - 1) / lanes;
    constexpr int staged_columns = column_rounds * lanes / vectors_of_column, staged_distances = distance_rounds * lanes;
    __shared__ std::int32_t shared_distances[threads / lanes][1 + staged_distances];  // of the pattern; the first is the base's, 0
    __shared__ Columns shared_columns[threads / lanes][std::max(1, column_rounds * lanes)];
    std::int32_t* const distances = shared_distances[threadIdx.x / lanes];
    Columns* const staged_vectors = shared_columns[threadIdx.x / lanes];
    int const of_slice = static_cast<int>(threadIdx.x % lanes);

    std::int64_t const c = std::int64_t{1} << log2_height(), slice = live ? slice_of(u) : 0;
    std::int64_t const values_begin = __ldg(value_ptr + slice), values_end = __ldg(value_ptr + slice + 1);
    std::int64_t const dictionary_begin = __ldg(dictionary_ptr + slice), dictionary_end = __ldg(dictionary_ptr + slice + 1);
    std::int32_t const width = live ? static_cast<std::int32_t>((values_end - values_begin) >> log2_height()) : 0;
    std::int32_t const shared = static_cast<std::int32_t>(dictionary_end - dictionary_begin), own = width - shared;  // D - 1
    std::int64_t const first_row = u * unit & (c - 1);
    Values const value_of = cuda::opaque(entries + (values_begin + first_row + lane));
    std::int32_t const* const columns_begin = columns + (values_begin - c * dictionary_begin + first_row);
    std::int32_t const* const distance_of = cuda::opaque(dictionary + (dictionary_begin + of_slice));
    std::int32_t const n_distances = width > 0 ? min(shared, staged_distances) : 0;

    std::int32_t base = -1;  // in empty rows, and beyond the last row
    if (column_rounds == 0 && width > 0)
      base = __ldg(columns_begin + lane);
    std::int32_t n_staged = 1 + n_distances;  // terms: those of the pattern, and outside it if all of the pattern are staged
    if (column_rounds > 0 && n_distances == shared)
      n_staged = shared + min(own, staged_columns);
    auto const value = [&](std::int32_t j) { return cuda::load_constant(value_of, j * c); };
    std::invoke_result_t<decltype(value), std::int32_t> first_values[batch];
    if (tuning.values_first && width > 0)
#pragma unroll
      for (int b = 0; b < batch; ++b)
        first_values[b] = value(min(phase + b * phases, n_staged - 1));

    cuda::StagedCopies<Columns, column_rounds, lanes> own_columns;
    cuda::StagedCopies<std::int32_t, distance_rounds, lanes> own_distances;
    auto const* const vector_of = cuda::opaque(reinterpret_cast<Columns const*>(columns_begin + of_slice / vectors_of_column * c) +
                                               of_slice % vectors_of_column);
    std::int32_t const n_vectors = min(own, staged_columns) * vectors_of_column;
    own_columns.load(n_vectors - of_slice, vector_of, lanes / vectors_of_column * (c / in_vector));
    own_distances.load(n_distances - of_slice, distance_of, lanes);
    __syncwarp();  // what is staged of the slice before may still be read
    if (of_slice == 0)
      distances[0] = 0;
    own_columns.store(n_vectors - of_slice, staged_vectors + of_slice);
    own_distances.store(n_distances - of_slice, distances + (1 + of_slice));
    __syncwarp();

    DotSum<T> sum{};
    auto const* const staged_column = reinterpret_cast<std::int32_t const*>(staged_vectors);
    if (column_rounds > 0 && width > 0)
      base = staged_column[lane];
    if (base < 0)
      return sum;
    if constexpr (column_rounds > 0) {
      // wraps around in wide slices, of which no column is staged
      auto const place_0 = static_cast<std::int32_t>(lane - static_cast<std::uint32_t>(shared) * unit);
      auto const index = [&](std::int32_t j) {
        bool const in_pattern = j <= shared;
        std::int32_t const i = *(in_pattern ? distances + j : staged_column + (place_0 + j * unit));
        return in_pattern ? base + i : i;
      };
      auto const add = [&](auto begun) {
        return cuda::add_terms<batch, true, cuda::Beyond::loaded_again>(sum, phase, n_staged, phases, value, index, x, begun);
      };
      if constexpr (tuning.values_first)
        sum = add(&first_values[0]);
      else
        sum = add(nullptr);
    } else {
      auto const index = [&](std::int32_t j) { return base + distances[j]; };
      sum = cuda::add_terms<batch, false, cuda::Beyond::loaded_again>(sum, phase, n_staged, phases, value, index, x);
    }
    if (n_staged == width)
      return sum;
#pragma unroll 1
    for (std::int32_t j = n_staged + phase; j <= shared; j += phases)
      sum.add(value(j), cuda::load_constant(x, base + __ldg(dictionary + (dictionary_begin + (j - 1)))));
    std::int32_t const first = max(n_staged, shared + 1);
    Values const value_beyond = cuda::opaque(value_of + first * c);
    std::int32_t const* const column_beyond = cuda::opaque(columns_begin + ((first - shared) * c + lane));
    return cuda::add_terms<batch_beyond, true, cuda::Beyond::loaded_again>(
        sum, phase, width - first, phases, [&](std::int32_t j) { return cuda::load_constant(value_beyond, j * c); },
        [&](std::int32_t j) { return __ldg(column_beyond + j * c); }, x);
  }
};

/// Calls launch with the source and the threads a row.
template <class T, class Values, class Launch>
void with_source(Context& context, CodSellView const& a, Values values, Launch const& launch) {
  cuda::with_slice_size(a.slice_size, [&](auto c) {
    if constexpr (c() != 1) {  // slices of CoD-SELL have two rows or more
      constexpr int unit = cuda::unit_of<c()>, usual = cuda::phases_of<c()>;
      auto const launch_with = [&](auto mean_row) {
        constexpr int phases = std::max(1, threads_of_slice(c(), mean_row()) / unit);
        launch(CodSellSource<c(), T, Values, tuning_for(c(), mean_row() >= long_row)>(a, values),
               std::integral_constant<int, phases>{});
      };
      CodSellSource<c(), T, Values, few_threads> const for_few(a, values);
      if constexpr (!std::is_same_v<T, DoubleDouble>)
        if (cuda::leaves_device_idle(context, usual * a.n_rows))
          return launch(for_few, std::integral_constant<int, few_threads.threads / unit>{});
      // Rows of four times the mean are no reason to split: the longest come first.
      std::int64_t const mean = a.n_rows > 0 ? a.n_values / a.n_rows : 0;
      if (a.longest_row > std::max<std::int64_t>(cuda::widest_per_phase, 4 * mean))
        return launch(for_few, std::integral_constant<int, std::max(1, usual / 2)>{});
      if (mean < long_row)
        return launch_with(std::integral_constant<std::int64_t, 0>{});
      if (mean < very_long_row)
        return launch_with(std::integral_constant<std::int64_t, long_row>{});
      launch_with(std::integral_constant<std::int64_t, very_long_row>{});
    }
  });
}

template <class V>
__global__ void diagonal_kernel(CodSellView a, V const* values, V* d) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= a.n_rows)
    return;
  std::int64_t const c = a.slice_size, slice = place / c, lane = place % c, row = a.rows[place];
  std::int64_t const dictionary_begin = a.dictionary_ptr[slice], shared = a.dictionary_ptr[slice + 1] - dictionary_begin;
  std::int64_t const width = (a.value_ptr[slice + 1] - a.value_ptr[slice]) / c;
  V const* const value_of = values + a.value_ptr[slice] + lane;
  std::int32_t const* const column_of = a.columns + a.value_ptr[slice] - c * dictionary_begin + lane;
  V value = 0;
  if (width > 0) {
    std::int64_t const base = column_of[0];
    if (base == row)
      value = value_of[0];
    for (std::int64_t j = 0; j < shared; ++j)
      if (base + a.dictionary[dictionary_begin + j] == row)
        value = value_of[(j + 1) * c];
    for (std::int64_t j = 1; j < width - shared; ++j)
      if (column_of[j * c] == row)
        value = value_of[(shared + j) * c];
  }
  d[row] = value;
}

class CudaCodSell final : public SmoothingByTemplates<ProductsByTemplates<CodSellKernels, CudaCodSell>, CudaCodSell> {
public:
  template <class T, class Values>
  static void multiply(Context& context, CodSellView const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    with_source<T>(context, a, values,
                   [&](auto const& source, auto phases) { cuda::rows_product<phases()>(context, source, alpha, x, beta, y); });
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, CodSellView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    with_source<T>(context, a, values,
                   [&](auto const& source, auto phases) { cuda::rows_product_dot<phases()>(context, source, x, y, dot, stop); });
  }

  template <class V, class Finish>
  static void finish_rows(Context& context, CodSellView const& a, V const* x, Finish const& finish, std::int32_t const* stop) {
    with_stored_values<V>(
        a,
        [&](auto values) {
          with_source<V>(context, a, values,
                         [&](auto const& source, auto phases) { cuda::rows_finish<phases()>(context, source, x, finish, stop); });
        },
        ValuePairs());
  }

  void diagonal(Context& context, CodSellView const& a, double const* values, double* d) const override {
    find_diagonal(context, a, values, d);
  }
  void diagonal(Context& context, CodSellView const& a, float const* values, float* d) const override {
    find_diagonal(context, a, values, d);
  }

private:
  template <class V>
  static void find_diagonal(Context& context, CodSellView const& a, V const* values, V* d) {
    if (a.n_rows == 0)
      return;
    diagonal_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, values, d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

CodSellKernels const& CodSellKernels::cuda() {
  static CudaCodSell const kernels;
  return kernels;
}

}  // namespace poisson
