#include "gpu/kernels/rim.hpp"

#include "gpu/kernels/cuda/krylov.cuh"

namespace poisson {

namespace {

constexpr int threads = cuda::pass_threads;

/// A thread an entry of a vector, and a row of blocks a vector.
template <class T>
__global__ void pack_kernel(std::int64_t n, std::int32_t const* places, ConstPointer<T> x, T* message, std::int64_t step) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x, v = blockIdx.y;
  if (i < n)
    message[i * gridDim.y + v] = load(x, v * step + (places != nullptr ? places[i] : i));
}

template <class T>
__global__ void put_kernel(std::int64_t n, std::int32_t const* places, T const* message, Pointer<T> x, std::int64_t step) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x, v = blockIdx.y;
  if (i >= n)
    return;
  if (std::int64_t const place = places != nullptr ? places[i] : i; place >= 0)
    store(x, v * step + place, message[i * gridDim.y + v]);
}

template <class T>
__global__ void add_kernel(CsrView a, std::int32_t const* rows, T alpha, T const* ghosts, Pointer<T> y) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < a.n_rows)
    store(y, rows[i], load(y, rows[i]) + alpha * rim_row_product(a, i, ghosts));
}

template <class T>
__global__ void set_kernel(CsrView a, std::int32_t const* rows, T const* ghosts, Pointer<T> y) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < a.n_rows)
    store(y, rows[i], rim_row_product(a, i, ghosts));
}

template <class T>
__global__ void __launch_bounds__(threads)
    add_dot_kernel(CsrView a, std::int32_t const* rows, T const* ghosts, ConstPointer<T> x, Pointer<T> y, T* dot,
                   std::int32_t const* stop, cuda::Reduction<T> reduction) {
  if (*stop != 0)
    return;
  DotSum<T> sum{};
  for (std::int64_t i = cuda::first_item(1); i < a.n_rows; i += cuda::item_stride(1)) {
    T const value = rim_row_product(a, i, ghosts);
    store(y, rows[i], load(y, rows[i]) + value);
    sum.add(load(x, rows[i]), value);
  }
  T total[1] = {sum.value()};
  if (cuda::grid_sum<threads>(total, reduction.partial, reduction.counter))
    *dot = *dot + total[0];
}

template <class T>
class CudaRim final : public RimKernels<T> {
public:
  void pack(Context& context, std::int64_t n, std::int32_t const* places, ConstPointer<T> x, T* message, std::int32_t vectors,
            std::int64_t step) const override {
    if (n == 0)
      return;
    pack_kernel<T><<<grid(n, vectors), threads, 0, cuda::of(context).stream()>>>(n, places, x, message, step);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void put(Context& context, std::int64_t n, std::int32_t const* places, T const* message, Pointer<T> x, std::int32_t vectors,
           std::int64_t step) const override {
    if (n == 0)
      return;
    put_kernel<T><<<grid(n, vectors), threads, 0, cuda::of(context).stream()>>>(n, places, message, x, step);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void add(Context& context, CsrView const& couplings, std::int32_t const* rows, T alpha, T const* ghosts,
           Pointer<T> y) const override {
    if (couplings.n_rows == 0)
      return;
    add_kernel<T>
        <<<cuda::n_blocks(couplings.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(couplings, rows, alpha, ghosts, y);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void set(Context& context, CsrView const& couplings, std::int32_t const* rows, T const* ghosts, Pointer<T> y) const override {
    if (couplings.n_rows == 0)
      return;
    set_kernel<T>
        <<<cuda::n_blocks(couplings.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(couplings, rows, ghosts, y);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void add_dot(Context& context, CsrView const& couplings, std::int32_t const* rows, T const* ghosts, ConstPointer<T> x,
               Pointer<T> y, T* dot, std::int32_t const* stop) const override {
    if (couplings.n_rows > 0)
      cuda::launch_pass<T>(add_dot_kernel<T>, context, couplings.n_rows, 1, couplings, rows, ghosts, x, y, dot, stop);
  }

private:
  static dim3 grid(std::int64_t n, std::int32_t vectors) {
    return {static_cast<unsigned>(cuda::n_blocks(n, threads)), static_cast<unsigned>(vectors), 1};
  }
};

}  // namespace

template <>
RimKernels<float> const& RimKernels<float>::cuda() {
  static CudaRim<float> const kernels;
  return kernels;
}
template <>
RimKernels<double> const& RimKernels<double>::cuda() {
  static CudaRim<double> const kernels;
  return kernels;
}
template <>
RimKernels<DoubleDouble> const& RimKernels<DoubleDouble>::cuda() {
  static CudaRim<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
