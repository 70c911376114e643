#include "gpu/kernels/fields.hpp"

#include "gpu/kernels/cuda/krylov.cuh"
#include "gpu/kernels/field_values.hpp"

namespace poisson {

namespace {

using cuda::pass_threads;

__global__ void __launch_bounds__(pass_threads) add_kernel(std::int64_t n, double sign, double* d, Pointer<DoubleDouble> x) {
  std::int64_t const i = cuda::first_item(1);
  if (i < n) {
    store(x, i, load(x, i) + sign * d[i]);
    d[i] = 0;
  }
}

__global__ void __launch_bounds__(pass_threads) scale_kernel(std::int64_t n, PowerOfTwo power, double const* x, double* y) {
  std::int64_t const i = cuda::first_item(1);
  if (i < n)
    y[i] = power.times(x[i]);
}

__global__ void __launch_bounds__(pass_threads)
    subtract_kernel(std::int64_t n, DoubleDouble const* value, Pointer<DoubleDouble> x) {
  std::int64_t const i = cuda::first_item(1);
  if (i >= n)
    return;
  DoubleDouble const rest = DoubleDouble{x.hi[i], x.lo != nullptr ? x.lo[i] : 0.0} - *value;
  x.hi[i] = rest.hi;
  if (x.lo != nullptr)
    x.lo[i] = rest.lo;
}

__global__ void __launch_bounds__(pass_threads)
    set_where_kernel(std::int64_t n, std::uint8_t const* marks, double const* values, double* x) {
  std::int64_t const i = cuda::first_item(1);
  if (i < n && marks[i] != 0)
    x[i] = values[i];
}

/// Numbers that are not negative order as their bits do, those of NaN are above all others, and a maximum does not depend on the
/// order of its terms.
__global__ void __launch_bounds__(pass_threads)
    largest_kernel(std::int64_t n, double const* __restrict__ x, DiagonalWeights weights, unsigned long long* result) {
  long long largest = 0;
#pragma unroll 4
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1))
    largest = max(largest, __double_as_longlong(fabs(weighted_value(x, weights, i))));
  for (int distance = 16; distance > 0; distance /= 2)
    largest = max(largest, __shfl_down_sync(0xffffffffU, largest, distance));
  if (threadIdx.x % 32 == 0)
    atomicMax(result, static_cast<unsigned long long>(largest));
}

__global__ void set_kernel(std::int64_t value, std::int64_t* result) {
  *result = value;
}
__global__ void __launch_bounds__(pass_threads)
    first_failing_kernel(std::int64_t n, double const* __restrict__ x, EntryCheck check, unsigned long long* result) {
#pragma unroll 4
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1))
    if (!passes(check, x[i]))
      atomicMin(result, static_cast<unsigned long long>(i));
}

__global__ void __launch_bounds__(pass_threads)
    sum_kernel(std::int64_t n, ConstPointer<DoubleDouble> x, DoubleDouble* result, DoubleDouble* partial, unsigned* counter) {
  DoubleDouble sums[1] = {0.0};
#pragma unroll 4
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1))
    sums[0] += DoubleDouble{x.hi[i], x.lo != nullptr ? x.lo[i] : 0.0};
  if (cuda::grid_sum<pass_threads>(sums, partial, counter))
    *result = sums[0];
}

__global__ void __launch_bounds__(pass_threads)
    squares_kernel(std::int64_t n, double const* __restrict__ x, DiagonalWeights weights, PowerOfTwo power, DoubleDouble* result,
                   DoubleDouble* partial, unsigned* counter) {
  DotSum<DoubleDouble> sum{};
#pragma unroll 4
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    DoubleDouble const value = power.times(weighted_value(x, weights, i));
    sum.add(value, value);
  }
  DoubleDouble sums[1] = {sum.value()};
  if (cuda::grid_sum<pass_threads>(sums, partial, counter))
    *result = sums[0];
}

class CudaFields final : public FieldKernels {
public:
  void add(Context& context, std::int64_t n, double sign, double* d, Pointer<DoubleDouble> x) const override {
    add_kernel<<<std::max(1U, cuda::n_blocks(n, pass_threads)), pass_threads, 0, cuda::of(context).stream()>>>(n, sign, d, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void scale(Context& context, std::int64_t n, int exponent, double const* x, double* y) const override {
    scale_kernel<<<std::max(1U, cuda::n_blocks(n, pass_threads)), pass_threads, 0, cuda::of(context).stream()>>>(
        n, PowerOfTwo(exponent), x, y);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void subtract(Context& context, std::int64_t n, DoubleDouble const* value, Pointer<DoubleDouble> x) const override {
    subtract_kernel<<<std::max(1U, cuda::n_blocks(n, pass_threads)), pass_threads, 0, cuda::of(context).stream()>>>(n, value, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void set_where(Context& context, std::int64_t n, std::uint8_t const* marks, double const* values, double* x) const override {
    set_where_kernel<<<std::max(1U, cuda::n_blocks(n, pass_threads)), pass_threads, 0, cuda::of(context).stream()>>>(n, marks,
                                                                                                                     values, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void largest(Context& context, std::int64_t n, double const* x, DiagonalWeights weights, double* result) const override {
    auto& device = cuda::of(context);
    context.set_zero(result, sizeof(double));
    largest_kernel<<<cuda::reduction_blocks(device, n), pass_threads, 0, device.stream()>>>(
        n, x, weights, reinterpret_cast<unsigned long long*>(result));
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void first_failing(Context& context, std::int64_t n, double const* x, EntryCheck check, std::int64_t* result) const override {
    auto& device = cuda::of(context);
    set_kernel<<<1, 1, 0, device.stream()>>>(n, result);
    first_failing_kernel<<<cuda::reduction_blocks(device, n), pass_threads, 0, device.stream()>>>(
        n, x, check, reinterpret_cast<unsigned long long*>(result));
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void sum(Context& context, std::int64_t n, ConstPointer<DoubleDouble> x, DoubleDouble* result) const override {
    auto& device = cuda::of(context);
    unsigned const blocks = cuda::reduction_blocks(device, n);
    sum_kernel<<<blocks, pass_threads, 0, device.stream()>>>(n, x, result, device.partial_sums<DoubleDouble>(blocks),
                                                             device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void squares(Context& context, std::int64_t n, double const* x, DiagonalWeights weights, int exponent,
               DoubleDouble* result) const override {
    auto& device = cuda::of(context);
    unsigned const blocks = cuda::reduction_blocks(device, n);
    squares_kernel<<<blocks, pass_threads, 0, device.stream()>>>(n, x, weights, PowerOfTwo(exponent), result,
                                                                 device.partial_sums<DoubleDouble>(blocks), device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

FieldKernels const& FieldKernels::cuda() {
  static CudaFields const kernels;
  return kernels;
}

}  // namespace poisson
