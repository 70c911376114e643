#include "gpu/kernels/sell_c_sigma.hpp"

#include "gpu/kernels/cuda/rows.cuh"
#include "gpu/kernels/cuda/slices.cuh"

namespace poisson {

namespace {

constexpr int threads = 128;

template <int fixed_c, class T, class Values>
struct SellSource : SellView {
  using Number = T;
  static constexpr int threads = poisson::threads, minimum_blocks = 12, unit = cuda::unit_of<fixed_c>;
  static constexpr bool splits = true;
  Values entries;
  int log2_c;

  SellSource(SellView const& view, Values values_of_view)
      : SellView(view), entries(values_of_view), log2_c(cuda::log2_of(view.slice_size)) {}
  [[nodiscard]] __host__ __device__ std::int64_t n_units() const { return (n_rows + unit - 1) / unit; }
  [[nodiscard]] __device__ std::int64_t row(std::int64_t place) const { return rows == nullptr ? place : __ldg(rows + place); }
  [[nodiscard]] __device__ int log2_height() const { return fixed_c == 0 ? log2_c : std::countr_zero(unsigned{fixed_c}); }
  [[nodiscard]] __device__ std::int64_t slice_of(std::int64_t u) const { return u * unit >> log2_height(); }
  [[nodiscard]] __device__ std::int32_t width(std::int64_t u) const {
    std::int64_t const slice = slice_of(u);
    return static_cast<std::int32_t>((__ldg(slice_ptr + slice + 1) - __ldg(slice_ptr + slice)) >> log2_height());
  }

  template <int phases>
  [[nodiscard]] __device__ __forceinline__ DotSum<T> partial(std::int64_t u, bool live, int lane, int phase,
                                                             ConstPointer<T> x) const {
    if (live) {
      std::int64_t const c = std::int64_t{1} << log2_height(), slice = slice_of(u);
      std::int64_t const first = __ldg(slice_ptr + slice) + (u * unit & (c - 1)) + lane;
      std::int32_t const width = this->width(u);
      std::int32_t const* const column_of = columns + first;
      Values const value_of = entries + first;
      return cuda::add_terms<4, true, cuda::Beyond::loaded_again>(
          DotSum<T>{}, phase, width, phases, [&](std::int32_t j) { return cuda::load_constant(value_of, j * c); },
          [&](std::int32_t j) { return __ldg(column_of + j * c); }, x);
    }
    return {};
  }
};

/// Calls launch with the source and the threads a row; in DoubleDouble there is work enough for a device without more of them.
template <class T, class Values, class Launch>
void with_source(Context& context, SellView const& a, Values values, Launch const& launch) {
  cuda::with_slice_size(a.slice_size, [&](auto c) {
    constexpr int usual = cuda::phases_of<c()>, most = threads / cuda::unit_of<c()>;
    SellSource<c(), T, Values> const source(a, values);
    if constexpr (!std::is_same_v<T, DoubleDouble>)
      if (cuda::leaves_device_idle(context, usual * a.n_rows))
        return launch(source, std::integral_constant<int, most>{});
    launch(source, std::integral_constant<int, usual>{});
  });
}

template <class V>
__global__ void diagonal_kernel(SellView a, V const* values, V* d) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= a.n_rows)
    return;
  std::int64_t const slice = place / a.slice_size, row = a.rows == nullptr ? place : a.rows[place], end = a.slice_ptr[slice + 1];
  V value = 0;
  for (std::int64_t e = a.slice_ptr[slice] + place % a.slice_size; e < end; e += a.slice_size)
    if (a.columns[e] == row)
      value = values[e];
  d[row] = value;
}

class CudaSell final : public SmoothingByTemplates<ProductsByTemplates<SellKernels, CudaSell>, CudaSell> {
public:
  template <class T, class Values>
  static void multiply(Context& context, SellView const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    with_source<T>(context, a, values,
                   [&](auto const& source, auto phases) { cuda::rows_product<phases()>(context, source, alpha, x, beta, y); });
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, SellView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    with_source<T>(context, a, values,
                   [&](auto const& source, auto phases) { cuda::rows_product_dot<phases()>(context, source, x, y, dot, stop); });
  }

  template <class V, class Finish>
  static void finish_rows(Context& context, SellView const& a, V const* x, Finish const& finish, std::int32_t const* stop) {
    with_stored_values<V>(
        a,
        [&](auto values) {
          with_source<V>(context, a, values,
                         [&](auto const& source, auto phases) { cuda::rows_finish<phases()>(context, source, x, finish, stop); });
        },
        ValuePairs());
  }

  void diagonal(Context& context, SellView const& a, double const* values, double* d) const override {
    find_diagonal(context, a, values, d);
  }
  void diagonal(Context& context, SellView const& a, float const* values, float* d) const override {
    find_diagonal(context, a, values, d);
  }

private:
  template <class V>
  static void find_diagonal(Context& context, SellView const& a, V const* values, V* d) {
    if (a.n_rows == 0)
      return;
    diagonal_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, values, d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

SellKernels const& SellKernels::cuda() {
  static CudaSell const kernels;
  return kernels;
}

}  // namespace poisson
