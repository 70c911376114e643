#include "gpu/kernels/cod_sell.hpp"

#include "gpu/kernels/cuda/rows.cuh"
#include "gpu/kernels/cuda/slices.cuh"

namespace poisson {

namespace {

constexpr int threads = 128;

/// Distances of a slice that a warp keeps in shared memory; further ones are read through the cache.
constexpr int staged = 64;

/// How a kernel is made. What bounds it where columns are irregular is how often a warp waits for memory before it is done with its
/// rows: two loads must come first (where the slice begins; its bases and distances), then one wait for each batch of terms. Blocks
/// of two warps make room as soon as these are done.
struct CodSellTuning {
  int threads, minimum_blocks;
  int batch_in_pattern, batch_outside;  ///< terms of a row that a thread loads together
  bool fetches_ahead;                   ///< asks L2 for the begin of the slice's entries as soon as it is known where they are
  bool splits;                          ///< wide slices between the threads of the block
};

/// Measured on an H200, refined balls of order 1, 2, 3 (27, 64, 124 terms a row), microseconds for C = 4, 8, 16, 32: 158, 138, 138,
/// 137; 397, 368, 366, 370; 296, 298, 276, 283. With conditional loads in batches of 7, which compilers made wait after every
/// second term, by blocks of 128: 181, 166, 146, 140; 446, 390, 390, 372; 401, 340, 324, 316.
constexpr CodSellTuning tuning_for(int c, int phases) {
  bool const is_short = c <= 8;
  switch (phases) {
  case 1:
    return {64, 16, 7, 7, false, false};
  case 2:
    return {64, 16, 6, 4, is_short, false};
  case 4:
    return {64, 24, 3, 2, is_short, false};
  default:
    return {64, 16, 4, 2, is_short, false};
  }
}

/// Where patterns hold nearly all terms, 27 of a row of a box.
constexpr CodSellTuning for_boxes{64, 16, 9, 7, false, false};

/// Where the device would be idle, or wide slices are split.
constexpr CodSellTuning few_threads{128, 8, 7, 7, false, true};

/// Murakami 2024, Algorithm 3 (with x[base] in line 9, and the values walked in lines 17 to 20).
template <int fixed_c, class T, class Values, CodSellTuning tuning>
struct CodSellSource : CodSellView {
  using Number = T;
  static constexpr int threads = tuning.threads, unit = cuda::unit_of<fixed_c>;
  static constexpr bool is_double = std::is_same_v<T, double>;  // DoubleDouble takes more registers for each term
  static constexpr int minimum_blocks = is_double ? tuning.minimum_blocks : 1536 / threads;
  static constexpr int batch_in_pattern = is_double ? tuning.batch_in_pattern : std::min(4, tuning.batch_in_pattern);
  static constexpr int batch_outside = is_double ? tuning.batch_outside : std::min(4, tuning.batch_outside);
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
    constexpr int lanes = unit * phases < 32 ? unit * phases : 32;   // of a warp that work on one slice
    __shared__ std::int32_t distances[threads / lanes][1 + staged];  // of the pattern's terms; the first is the base's, 0
    std::int32_t* const its_distances = distances[threadIdx.x / lanes];
    int const of_slice = static_cast<int>(threadIdx.x % lanes);
    std::int64_t const c = std::int64_t{1} << log2_height(), slice = live ? slice_of(u) : 0;
    std::int64_t const values_begin = __ldg(value_ptr + slice), values_end = __ldg(value_ptr + slice + 1);
    std::int64_t const dictionary_begin = __ldg(dictionary_ptr + slice), dictionary_end = __ldg(dictionary_ptr + slice + 1);
    std::int32_t const width = live ? static_cast<std::int32_t>((values_end - values_begin) >> log2_height()) : 0;
    std::int32_t const shared = static_cast<std::int32_t>(dictionary_end - dictionary_begin);  // D - 1
    std::int32_t const outside = width - shared - 1;
    std::int64_t const in_slice = (u * unit & (c - 1)) + lane;
    Values const value_of = entries + (values_begin + in_slice);
    std::int32_t const* const column_of = columns + (values_begin - c * dictionary_begin + in_slice);
    std::int32_t const base = width > 0 ? __ldg(column_of) : -1;  // -1 in empty rows, and beyond the last row
    if (tuning.fetches_ahead && width > 0)
      fetch_ahead<lanes>(values_begin, width * c, values_begin - c * dictionary_begin, (outside + 1) * c);
    std::int32_t const n_staged = width > 0 ? min(shared, staged) : 0;
    __syncwarp();  // the distances of the slice before may still be read
    if (of_slice == 0)
      its_distances[0] = 0;
#pragma unroll
    for (int first = 0; first < staged; first += lanes)
      if (int const d = first + of_slice; d < n_staged)
        its_distances[1 + d] = __ldg(dictionary + dictionary_begin + d);
    __syncwarp();
    DotSum<T> sum{};
    if (base < 0)
      return sum;
    auto const value = [&](std::int32_t j) { return cuda::load_constant(value_of, j * c); };
    sum = cuda::add_terms<batch_in_pattern, false, cuda::Beyond::loaded_again>(
        sum, phase, 1 + n_staged, phases, value, [&](std::int32_t j) { return base + its_distances[j]; }, x);
#pragma unroll 1
    for (std::int32_t j = 1 + staged + phase; j <= shared; j += phases)
      sum.add(value(j), cuda::load_constant(x, base + __ldg(dictionary + dictionary_begin + (j - 1))));
    return cuda::add_terms<batch_outside, true, cuda::Beyond::loaded_again>(
        sum, phase, outside, phases, [&](std::int32_t j) { return value(1 + shared + j); },
        [&](std::int32_t j) { return __ldg(column_of + (1 + j) * c); }, x);
  }

private:
  /// Every thread asks for one line of 128 bytes, of the columns first.
  template <int lanes>
  __device__ __forceinline__ void fetch_ahead(std::int64_t first_value, std::int64_t n_values, std::int64_t first_column,
                                              std::int64_t n_columns) const {
    int const of_slice = static_cast<int>(threadIdx.x % lanes), lines = static_cast<int>((n_columns + 31) / 32);
    if (of_slice < lines)
      cuda::fetch_ahead(columns + (first_column + of_slice * 32));
    else if ((of_slice - lines) * 16 < n_values)
      cuda::fetch_ahead(entries + (first_value + (of_slice - lines) * 16));
  }
};

/// Calls launch with the source and the threads a row: 16 for a slice, 32 where rows have 48 terms and more, but one where patterns
/// hold nearly all terms (boxes).
template <class T, class Values, class Launch>
void with_source(Context& context, CodSellView const& a, Values values, Launch const& launch) {
  cuda::with_slice_size(a.slice_size, [&](auto c) {
    if constexpr (c() != 1) {  // slices of CoD-SELL have two rows or more
      constexpr int unit = cuda::unit_of<c()>, few = std::max(1, 16 / unit), many = std::max(1, 32 / unit);
      constexpr int usual = cuda::phases_of<c()>;
      auto const launch_with = [&](auto phases) {
        launch(CodSellSource<c(), T, Values, tuning_for(c(), phases())>(a, values), phases);
      };
      CodSellSource<c(), T, Values, few_threads> const for_few(a, values);
      if constexpr (std::is_same_v<T, double>)
        if (cuda::leaves_device_idle(context, usual * a.n_rows))
          return launch(for_few, std::integral_constant<int, few_threads.threads / unit>{});
      // Rows of four times the mean are no reason to split: the longest come first.
      std::int64_t const mean = a.n_rows > 0 ? a.n_values / a.n_rows : 0;
      if (a.longest_row > std::max<std::int64_t>(cuda::widest_per_phase, 4 * mean))
        return launch(for_few, std::integral_constant<int, std::max(1, usual / 2)>{});
      if (a.n_stored_columns < 2 * a.n_rows)
        return launch(CodSellSource<c(), T, Values, for_boxes>(a, values), std::integral_constant<int, 1>{});
      if (mean < 48)
        return launch_with(std::integral_constant<int, few>{});
      launch_with(std::integral_constant<int, many>{});
    }
  });
}

__global__ void diagonal_kernel(CodSellView a, double* d) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= a.n_rows)
    return;
  std::int64_t const c = a.slice_size, slice = place / c, lane = place % c, row = a.rows[place];
  std::int64_t const dictionary_begin = a.dictionary_ptr[slice], shared = a.dictionary_ptr[slice + 1] - dictionary_begin;
  std::int64_t const width = (a.value_ptr[slice + 1] - a.value_ptr[slice]) / c;
  double const* const value_of = a.values + a.value_ptr[slice] + lane;
  std::int32_t const* const column_of = a.columns + a.value_ptr[slice] - c * dictionary_begin + lane;
  double value = 0;
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

class CudaCodSell final : public ProductsByTemplates<CodSellKernels, CudaCodSell> {
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

  void diagonal(Context& context, CodSellView const& a, double* d) const override {
    if (a.n_rows == 0)
      return;
    diagonal_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

CodSellKernels const& CodSellKernels::cuda() {
  static CudaCodSell const kernels;
  return kernels;
}

}  // namespace poisson
