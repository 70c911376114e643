#include "gpu/kernels/refinement.hpp"

#include "gpu/kernels/cuda/krylov.cuh"

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

/// Numbers that are not negative order as their bits do, and a maximum does not depend on the order of its terms.
__global__ void __launch_bounds__(pass_threads)
    largest_kernel(std::int64_t n, double const* __restrict__ x, unsigned long long* result) {
  double largest = 0;
#pragma unroll 4
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1))
    largest = fmax(largest, fabs(x[i]));
  for (int distance = 16; distance > 0; distance /= 2)
    largest = fmax(largest, cuda::shuffle_down(largest, distance));
  if (threadIdx.x % 32 == 0)
    atomicMax(result, static_cast<unsigned long long>(__double_as_longlong(largest)));
}

class CudaRefinement final : public RefinementKernels {
public:
  void add(Context& context, std::int64_t n, double sign, double* d, Pointer<DoubleDouble> x) const override {
    add_kernel<<<std::max(1U, cuda::n_blocks(n, pass_threads)), pass_threads, 0, cuda::of(context).stream()>>>(n, sign, d, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void largest(Context& context, std::int64_t n, double const* x, double* result) const override {
    auto& device = cuda::of(context);
    context.set_zero(result, sizeof(double));
    largest_kernel<<<cuda::reduction_blocks(device, n), pass_threads, 0, device.stream()>>>(
        n, x, reinterpret_cast<unsigned long long*>(result));
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

RefinementKernels const& RefinementKernels::cuda() {
  static CudaRefinement const kernels;
  return kernels;
}

}  // namespace poisson
