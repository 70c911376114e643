#include "gpu/kernels/half_slices.hpp"

#include "gpu/kernels/cuda/rows.cuh"

#include <cuda_fp16.h>

namespace poisson {

namespace {

constexpr int threads = 128;

/// A row of A is s_i times its halves, and the diagonal: the thread that adds up the first part of a row adds that.
struct HalfSource : HalfSlicesView {
  using Number = float;
  static constexpr int threads = poisson::threads, minimum_blocks = 12, unit = slice_size;
  static constexpr bool splits = true;

  explicit HalfSource(HalfSlicesView const& view) : HalfSlicesView(view) {}
  [[nodiscard]] __host__ __device__ std::int64_t n_units() const { return (n_rows + unit - 1) / unit; }
  [[nodiscard]] __device__ std::int64_t row(std::int64_t place) const { return place; }
  [[nodiscard]] __device__ std::int32_t width(std::int64_t u) const {
    return static_cast<std::int32_t>((__ldg(slice_ptr + u + 1) - __ldg(slice_ptr + u)) / unit);
  }

  template <int phases>
  [[nodiscard]] __device__ __forceinline__ DotSum<float> partial(std::int64_t u, bool live, int lane, int phase,
                                                                 float const* x) const {
    std::int64_t const row = u * unit + lane;
    if (!live || row >= n_rows)
      return {};
    std::int64_t const first = __ldg(slice_ptr + u) + lane;
    auto const* const value_of = reinterpret_cast<__half const*>(values) + first;
    std::int32_t const* const column_of = columns + first;
    float const scale = __ldg(scales + row), own = __ldg(diagonal + row), own_x = __ldg(x + row);
    DotSum<float> const halves = cuda::add_terms<4, true, cuda::Beyond::loaded_again>(
        DotSum<float>{}, phase, width(u), phases, [&](std::int32_t j) { return __half2float(__ldg(value_of + j * unit)); },
        [&](std::int32_t j) { return __ldg(column_of + j * unit); }, x);
    DotSum<float> sum{scale * halves.sum};
    if (phase == 0)
      sum.add(own, own_x);
    return sum;
  }
};

__global__ void __launch_bounds__(threads)
    round_kernel(HalfSlicesView const a, double const* __restrict__ values, HalfSlicesTarget const target) {
  constexpr int most_bits = 14;  ///< halves are below 2^16
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  std::int64_t const slice = row / HalfSlicesView::slice_size;
  if (row >= (a.n_rows + HalfSlicesView::slice_size - 1) / HalfSlicesView::slice_size * HalfSlicesView::slice_size)
    return;
  std::int64_t const first = a.slice_ptr[slice] + row % HalfSlicesView::slice_size, end = a.slice_ptr[slice + 1];
  double largest = 0, diagonal = 0;
#pragma unroll 4
  for (std::int64_t e = first; e < end; e += HalfSlicesView::slice_size) {
    double const value = values[e];
    if (a.columns[e] == row)
      diagonal = value;
    else
      largest = fmax(largest, fabs(value));
  }
  int exponent = 0;
  frexp(largest, &exponent);  // largest < 2^exponent
  exponent = largest > 0 ? max(-126, min(126, exponent - 1 - most_bits)) : 0;
  double const scale = ldexp(1.0, exponent), inverse = ldexp(1.0, -exponent);
#pragma unroll 4
  for (std::int64_t e = first; e < end; e += HalfSlicesView::slice_size) {
    bool const beside = a.columns[e] != row;
    double const value = beside ? values[e] : 0;
    __half const half = __double2half(value * inverse);
    target.values[e] = __half_as_ushort(half);
    diagonal += value - scale * static_cast<double>(__half2float(half));
  }
  if (row < a.n_rows) {
    target.scales[row] = static_cast<float>(scale);
    target.diagonal[row] = static_cast<float>(diagonal);
  }
}

class CudaHalfSlices final : public HalfSlicesKernels {
public:
  void product(Context& context, HalfSlicesView const& a, float alpha, float const* x, float beta, float* y) const override {
    cuda::rows_product<1>(context, HalfSource(a), alpha, x, beta, y);
  }
  void product_dot(Context& context, HalfSlicesView const& a, float const* x, float* y, float* dot,
                   std::int32_t const* stop) const override {
    cuda::rows_product_dot<1>(context, HalfSource(a), x, y, dot, stop);
  }
  void smooth(Context& context, HalfSlicesView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    cuda::rows_finish<1>(context, HalfSource(a), x, SmoothingRow<float>{step}, stop);
  }
  void subtract_product(Context& context, HalfSlicesView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    cuda::rows_finish<1>(context, HalfSource(a), x, ResidualRow<float>{b, r}, stop);
  }
  void round(Context& context, HalfSlicesView const& like, double const* values, HalfSlicesTarget const& target) const override {
    if (like.n_rows == 0)
      return;
    round_kernel<<<cuda::n_blocks(like.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(like, values, target);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

HalfSlicesKernels const& HalfSlicesKernels::cuda() {
  static CudaHalfSlices const kernels;
  return kernels;
}

}  // namespace poisson
