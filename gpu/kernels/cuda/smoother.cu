#include "gpu/kernels/smoother.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

constexpr int threads = 256;

/// Calls body(i) for all i < n, with a thread for each.
template <class Body>
__global__ void __launch_bounds__(threads) rows_kernel(std::int64_t n, std::int32_t const* stop, Body const body) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n && *stop == 0)
    body(i);
}

template <class V>
struct Begin {
  V const* __restrict__ diagonal, * __restrict__ b;
  V factor;
  V* __restrict__ x;
  __device__ void operator()(std::int64_t i) const { x[i] = factor * b[i] / diagonal[i]; }
};
template <class V>
struct BeginFromOutside {
  V const* __restrict__ diagonal;
  double const* __restrict__ r;
  V factor;
  V* __restrict__ b, * __restrict__ x;
  __device__ void operator()(std::int64_t i) const {
    auto const own = static_cast<V>(r[i]);
    b[i] = own;
    x[i] = factor * own / diagonal[i];
  }
};

template <class V>
struct Step {
  SmoothingStep<V> step;
  V const *y, *x;
  __device__ void operator()(std::int64_t i) const { take_step(step, i, y[i], x[i]); }
};

template <class V>
struct Residual {
  V const* __restrict__ b;
  V* __restrict__ y;
  __device__ void operator()(std::int64_t i) const { y[i] = b[i] - y[i]; }
};

template <class V>
struct ToOutside {
  V const* __restrict__ x;
  double* __restrict__ z;
  __device__ void operator()(std::int64_t i) const { z[i] = static_cast<double>(x[i]); }
};

/// x_i = entry(i) for all i < n.
template <class V, class Entry>
__global__ void __launch_bounds__(threads) fill_kernel(std::int64_t n, Entry const entry, V* x) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n)
    x[i] = static_cast<V>(entry(i));
}
template <class V>
struct SameValue {
  V value;
  __device__ V operator()(std::int64_t) const { return value; }
};
struct PseudoRandom {
  std::int64_t first;
  __device__ double operator()(std::int64_t i) const { return pseudo_random(first + i); }
};

/// A warp a row.
template <class V>
__global__ void __launch_bounds__(threads)
    dense_kernel(std::int64_t n, V const* __restrict__ m, V const* __restrict__ b, V* __restrict__ x, std::int32_t const* stop) {
  std::int64_t const row = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
  if (row >= n || *stop != 0)
    return;
  V sum = 0;
  for (std::int64_t j = threadIdx.x % 32; j < n; j += 32)
    sum += m[row * n + j] * b[j];
  for (int lane = 16; lane > 0; lane /= 2)
    sum += __shfl_down_sync(0xffffffffU, sum, static_cast<unsigned>(lane));
  if (threadIdx.x % 32 == 0)
    x[row] = sum;
}

template <class V>
__global__ void __launch_bounds__(threads)
    lanczos_kernel(std::int64_t n, LanczosStep<V> const step, double* __restrict__ partial, unsigned* counter) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  double sums[1] = {i < n ? step.take(i, step.factors()) : 0.0};
  if (cuda::grid_sum<threads>(sums, partial, counter))
    step.norms[step.k + 1] = sums[0];
}

template <class V>
class CudaSmoother final : public SmootherKernels<V> {
public:
  void begin(Context& context, std::int64_t n, V const* diagonal, V const* b, V factor, V* x,
             std::int32_t const* stop) const override {
    for_rows(context, n, stop, Begin<V>{diagonal, b, factor, x});
  }
  void fill(Context& context, std::int64_t n, V value, V* x) const override { fill_with(context, n, SameValue<V>{value}, x); }
  void fill_pseudo_random(Context& context, std::int64_t first, std::int64_t n, V* x) const override {
    fill_with(context, n, PseudoRandom{first}, x);
  }
  void begin_from_outside(Context& context, std::int64_t n, V const* diagonal, double const* r, V factor, V* b, V* x,
                          std::int32_t const* stop) const override {
    for_rows(context, n, stop, BeginFromOutside<V>{diagonal, r, factor, b, x});
  }
  void step(Context& context, std::int64_t n, SmoothingStep<V> const& step, V const* y, V const* x,
            std::int32_t const* stop) const override {
    for_rows(context, n, stop, Step<V>{step, y, x});
  }
  void lanczos(Context& context, std::int64_t n, LanczosStep<V> const& step) const override {
    if (n == 0)
      return;
    auto& device = cuda::of(context);
    auto const blocks = cuda::n_blocks(n, threads);
    lanczos_kernel<<<blocks, threads, 0, device.stream()>>>(n, step, device.partial_sums<double>(std::int64_t{blocks}),
                                                            device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void residual(Context& context, std::int64_t n, V const* b, V* y, std::int32_t const* stop) const override {
    for_rows(context, n, stop, Residual<V>{b, y});
  }
  void solve_dense(Context& context, std::int64_t n, V const* m, V const* b, V* x, std::int32_t const* stop) const override {
    if (n == 0)
      return;
    dense_kernel<<<cuda::n_blocks(32 * n, threads), threads, 0, cuda::of(context).stream()>>>(n, m, b, x, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void to_outside(Context& context, std::int64_t n, V const* x, double* z, std::int32_t const* stop) const override {
    for_rows(context, n, stop, ToOutside<V>{x, z});
  }

private:
  template <class Entry>
  static void fill_with(Context& context, std::int64_t n, Entry const& entry, V* x) {
    if (n == 0)
      return;
    fill_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(n, entry, x);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  template <class Body>
  static void for_rows(Context& context, std::int64_t n, std::int32_t const* stop, Body const& body) {
    if (n == 0)
      return;
    rows_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(n, stop, body);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

template <class V>
SmootherKernels<V> const& kernels() {
  static CudaSmoother<V> const instance;
  return instance;
}

}  // namespace

template <>
SmootherKernels<float> const& SmootherKernels<float>::cuda() {
  return kernels<float>();
}
template <>
SmootherKernels<double> const& SmootherKernels<double>::cuda() {
  return kernels<double>();
}

}  // namespace poisson
