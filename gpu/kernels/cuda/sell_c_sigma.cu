#include "gpu/kernels/sell_c_sigma.hpp"

#include "gpu/kernels/cuda/rows.cuh"
#include "gpu/kernels/cuda/slices.cuh"

namespace poisson {

namespace {

constexpr int threads = 128;

template <int fixed_c>
struct SellSource : SellView {
  static constexpr int threads = poisson::threads, minimum_blocks = 16, unit = cuda::unit_of<fixed_c>;
  int log2_c;

  explicit SellSource(SellView const& view) : SellView(view), log2_c(cuda::log2_of(view.slice_size)) {}
  [[nodiscard]] __host__ __device__ std::int64_t n_units() const { return (n_rows + unit - 1) / unit; }
  [[nodiscard]] __device__ std::int64_t row(std::int64_t place) const { return rows == nullptr ? place : __ldg(rows + place); }
  [[nodiscard]] __device__ int log2_height() const { return fixed_c == 0 ? log2_c : std::countr_zero(unsigned{fixed_c}); }
  [[nodiscard]] __device__ std::int64_t slice_of(std::int64_t u) const { return u * unit >> log2_height(); }
  [[nodiscard]] __device__ std::int32_t width(std::int64_t u) const {
    std::int64_t const slice = slice_of(u);
    return static_cast<std::int32_t>((__ldg(slice_ptr + slice + 1) - __ldg(slice_ptr + slice)) >> log2_height());
  }

  template <int phases>
  [[nodiscard]] __device__ __forceinline__ double partial(std::int64_t u, bool live, int lane, int phase,
                                                          double const* __restrict__ x) const {
    if (live) {
      std::int64_t const c = std::int64_t{1} << log2_height(), slice = slice_of(u);
      std::int64_t const first = __ldg(slice_ptr + slice) + (u * unit & (c - 1)) + lane;
      std::int32_t const width = this->width(u);
      std::int32_t const* const column_of = columns + first;
      double const* const value_of = values + first;
      return cuda::add_terms<4, true>(
          0, phase, width, phases, [&](std::int32_t j) { return __ldg(value_of + j * c); },
          [&](std::int32_t j) { return __ldg(column_of + j * c); }, x);
    }
    return 0;
  }
};

/// Calls launch with the source and the threads a row.
template <class Launch>
void with_source(Context& context, SellView const& a, Launch const& launch) {
  cuda::with_slice_size(a.slice_size, [&](auto c) {
    constexpr int usual = cuda::phases_of<c()>, most = threads / cuda::unit_of<c()>;
    SellSource<c()> const source(a);
    if (cuda::leaves_device_idle(context, usual * a.n_rows))
      launch(source, std::integral_constant<int, most>{});
    else
      launch(source, std::integral_constant<int, usual>{});
  });
}

__global__ void diagonal_kernel(SellView a, double* d) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place >= a.n_rows)
    return;
  std::int64_t const slice = place / a.slice_size, row = a.rows == nullptr ? place : a.rows[place], end = a.slice_ptr[slice + 1];
  double value = 0;
  for (std::int64_t e = a.slice_ptr[slice] + place % a.slice_size; e < end; e += a.slice_size)
    if (a.columns[e] == row)
      value = a.values[e];
  d[row] = value;
}

class CudaSell final : public SellKernels {
public:
  void product(Context& context, SellView const& a, double alpha, double const* x, double beta, double* y) const override {
    with_source(context, a,
                [&](auto const& source, auto phases) { cuda::rows_product<phases()>(context, source, alpha, x, beta, y); });
  }

  void product_dot(Context& context, SellView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    with_source(context, a,
                [&](auto const& source, auto phases) { cuda::rows_product_dot<phases()>(context, source, x, y, dot, stop); });
  }

  void diagonal(Context& context, SellView const& a, double* d) const override {
    if (a.n_rows == 0)
      return;
    diagonal_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

SellKernels const& SellKernels::cuda() {
  static CudaSell const kernels;
  return kernels;
}

}  // namespace poisson
