#include "gpu/kernels/cod_sell.hpp"

#include "gpu/kernels/cuda/rows.cuh"
#include "gpu/kernels/cuda/slices.cuh"

namespace poisson {

namespace {

constexpr int threads = 128;

/// Distances of a slice that a warp keeps in shared memory; further ones are read through the cache.
constexpr int staged = 64;

/// Murakami 2024, Algorithm 3 (with x[base] in line 9, and the values walked in lines 17 to 20).
/// `regular`: few terms are in no pattern. What is tuned by that are the terms loaded together and the registers for them: with 9
/// terms of the pattern and 8 blocks a box of 256^3 nodes takes 0.977 ms on an H200, a refined ball 0.146 ms; with 7 and 7, and 12
/// blocks, 1.016 and 0.140 ms; with single terms outside the pattern the ball takes 0.205 ms.
template <int fixed_c, bool regular, class T, class Values>
struct CodSellSource : CodSellView {
  using Number = T;
  static constexpr int threads = poisson::threads, minimum_blocks = regular ? 8 : 12, unit = cuda::unit_of<fixed_c>;
  static constexpr int batch_in_pattern = regular ? 9 : 7, batch_outside = regular ? 4 : 7;
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
    constexpr int lanes = unit * phases < 32 ? unit * phases : 32;  // of a warp that work on one slice
    __shared__ std::int32_t distances[threads / lanes][staged];
    std::int32_t* const its_distances = distances[threadIdx.x / lanes];
    std::int64_t const c = std::int64_t{1} << log2_height(), slice = live ? slice_of(u) : 0;
    std::int64_t const values_begin = live ? __ldg(value_ptr + slice) : 0,
                       dictionary_begin = live ? __ldg(dictionary_ptr + slice) : 0;
    std::int32_t const width = live ? this->width(u) : 0;
    std::int32_t const shared =
        width > 0 ? static_cast<std::int32_t>(__ldg(dictionary_ptr + slice + 1) - dictionary_begin) : 0;  // D - 1
    std::int64_t const in_slice = (u * unit & (c - 1)) + lane;
    Values const value_of = entries + (values_begin + in_slice);
    std::int32_t const* const column_of = columns + values_begin - c * dictionary_begin + in_slice;

    DotSum<T> sum{};
    ConstPointer<T> x_base = x;
    if (width > 0) {
      std::int32_t const base = __ldg(column_of);
      // Lanes beyond the last row go along on the first lane's pattern, with values of 0.
      x_base = x + max(base >= 0 ? base : __ldg(column_of - in_slice), 0);
      if (phase == 0)
        sum.add(cuda::load_constant(value_of, 0), base >= 0 ? cuda::load_constant(x_base, 0) : T(0.0));
    }
    std::int32_t const n_staged = min(shared, staged);
    __syncwarp();  // the distances of the slice before may still be read
    for (int d = threadIdx.x % lanes; d < n_staged; d += lanes)
      its_distances[d] = __ldg(dictionary + dictionary_begin + d);
    __syncwarp();
    auto const value_in_pattern = [&](std::int32_t j) { return cuda::load_constant(value_of, (j + 1) * c); };
    sum = cuda::add_terms<batch_in_pattern, false, true>(
        sum, phase, n_staged, phases, value_in_pattern, [&](std::int32_t j) { return its_distances[j]; }, x_base);
    static_assert(staged % phases == 0);
#pragma unroll 1
    for (std::int32_t j = staged + phase; j < shared; j += phases)
      sum.add(value_in_pattern(j), cuda::load_constant(x_base, __ldg(dictionary + dictionary_begin + j)));
    return cuda::add_terms<batch_outside, true, false>(
        sum, phase + 1, width - shared, phases, [&](std::int32_t j) { return cuda::load_constant(value_of, (shared + j) * c); },
        [&](std::int32_t j) { return __ldg(column_of + j * c); }, x);
  }
};

/// Calls launch with the source and the threads a row. Terms of a pattern want one thread a row even in short slices (a box of
/// 256^3 nodes on an H200, C = 32, 16, 8, 4: 0.977, 0.997, 1.05, 1.23 ms; with two 1.23, 1.29, 1.42), other terms as many as SELL.
template <class T, class Values, class Launch>
void with_source(Context& context, CodSellView const& a, Values values, Launch const& launch) {
  cuda::with_slice_size(a.slice_size, [&](auto c) {
    if constexpr (c() != 1) {  // slices of CoD-SELL have two rows or more
      constexpr int usual = cuda::phases_of<c()>, most = threads / cuda::unit_of<c()>;
      if (!cuda::leaves_device_idle(context, a.n_rows) && a.n_stored_columns < 2 * a.n_rows)
        return launch(CodSellSource<c(), true, T, Values>(a, values), std::integral_constant<int, 1>{});
      CodSellSource<c(), false, T, Values> const source(a, values);
      if constexpr (std::is_same_v<T, double>)
        if (cuda::leaves_device_idle(context, usual * a.n_rows))
          return launch(source, std::integral_constant<int, most>{});
      launch(source, std::integral_constant<int, std::max(1, usual / 2)>{});
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
