#include "gpu/kernels/gmres.hpp"

#include "gpu/kernels/cuda/krylov.cuh"

namespace poisson {

namespace {

using cuda::Reduction, cuda::pass_threads;

constexpr int warps = pass_threads / 32;

/// Adds up the first `count` of `sums`, and those from gmres_restart on, over the grid, always in the same order. The block that
/// finishes last adds the blocks' partial sums, a warp for every sum, and leaves the totals in `total`, which is shared. Returns
/// true in all threads of that block. grid_sum does one sum after another, which takes long for so many.
template <class T>
__device__ bool many_sums(DotSum<T> (&sums)[gmres_sums], int count, Reduction<T> const& reduction, T* total) {
  __shared__ T of_warp[gmres_sums][warps];
  __shared__ bool is_last;
  unsigned const blocks = gridDim.x;
  int const lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  auto const taken = [=](int k) { return k < count || k >= gmres_restart; };
#pragma unroll
  for (int k = 0; k < gmres_sums; ++k)
    if (taken(k)) {
      T sum = sums[k].value();
      for (int distance = 16; distance > 0; distance /= 2)
        sum += cuda::shuffle_down(sum, distance);
      if (lane == 0)
        of_warp[k][warp] = sum;
    }
  __syncthreads();
  if (int const k = static_cast<int>(threadIdx.x); k < gmres_sums && taken(k)) {
    T sum = of_warp[k][0];
    for (int w = 1; w < warps; ++w)
      sum += of_warp[k][w];
    reduction.partial[k * std::int64_t{blocks} + blockIdx.x] = sum;
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0)
    is_last = atomicInc(reduction.counter, blocks - 1) == blocks - 1;
  __syncthreads();
  if (!is_last)
    return false;
  __threadfence();
  for (int k = warp; k < gmres_sums; k += warps) {
    T sum = T(0);
    if (taken(k)) {
      T const* const of_block = reduction.partial + k * std::int64_t{blocks};
#pragma unroll 4
      for (unsigned block = static_cast<unsigned>(lane); block < blocks; block += 32)
        sum += cuda::load_from_l2(of_block + block);
      for (int distance = 16; distance > 0; distance /= 2)
        sum += cuda::shuffle_down(sum, distance);
    }
    if (lane == 0)
      total[k] = sum;
  }
  __syncthreads();
  return true;
}

template <class T>
__global__ void __launch_bounds__(pass_threads) begin_kernel(GmresScalars<T>* s, std::int64_t n, ConstPointer<T> r,
                                                             ConstPointer<T> x, double* history, T* local, Reduction<T> reduction) {
  DotSum<T> sum{}, squares{};
  double xx = 0;
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const ri = load(r, i);
    double const xi = rounded(load(x, i));
    cuda::add_number(sum, ri);
    squares.add(ri, ri);
    xx = fma(xi, xi, xx);
  }
  T total[3] = {sum.value(), squares.value(), T(xx)};
  cuda::finish_pass(total, reduction, local, [&] { scalar_step_of(GmresPass::begin, *s, total, history); });
}

template <class T>
__global__ void __launch_bounds__(pass_threads)
    normalise_kernel(GmresScalars<T> const* s, std::int64_t n, ConstPointer<T> w, Pointer<T> v,
                     double const* __restrict__ inverse_diagonal, Pointer<T> z) {
  std::int64_t const i = cuda::first_item(1);
  if (s->halt != 0 || i >= n)
    return;
  T const vi = (load(w, i) - s->mean) * s->scale;
  store(v, i, vi);
  if (inverse_diagonal != nullptr)
    store(z, i, __ldg(inverse_diagonal + i) * vi);
}

/// a_k for k < count, in shared memory.
template <class T>
__device__ void share(T const* a, int count, T* shared) {
  if (static_cast<int>(threadIdx.x) < count)
    shared[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
}

/// w_i - the sum of step_k v_k,i.
template <class T>
__device__ T subtract(std::int64_t i, T wi, T const* step, ConstPointer<T> basis, std::int64_t n, int count) {
#pragma unroll 4
  for (int k = 0; k < count; ++k)
    wi = multiply_add(T(0) - step[k], load(basis + k * n, i), wi);
  return wi;
}

template <class T, bool second>
__global__ void __launch_bounds__(pass_threads) dots_kernel(GmresScalars<T>* s, std::int64_t n, ConstPointer<T> basis, int count,
                                                            Pointer<T> w, T* local, Reduction<T> reduction) {
  if (s->halt != 0)
    return;
  __shared__ T step[gmres_restart], total[gmres_sums];
  if constexpr (second)
    share(s->step, count, step);
  DotSum<T> sums[gmres_sums] = {};
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T wi = load(w, i);
    if constexpr (second) {
      wi = subtract<T>(i, wi, step, basis, n, count);
      store(w, i, wi);
    }
#pragma unroll
    for (int k = 0; k < gmres_restart; ++k)
      if (k < count)
        sums[k].add(load(basis + k * n, i), wi);
    sums[gmres_sum_of_squares].add(wi, wi);
  }
  if (!many_sums<T>(sums, count, reduction, total))
    return;
  if (local != nullptr) {
    if (threadIdx.x < gmres_sums)
      local[threadIdx.x] = total[threadIdx.x];
  } else if (threadIdx.x == 0) {
    gmres_add_dots<T>(*s, total, !second);
  }
}

template <class T>
__global__ void __launch_bounds__(pass_threads) norm_kernel(GmresScalars<T>* s, std::int64_t n, ConstPointer<T> basis, int count,
                                                            Pointer<T> w, double* history, T* local, Reduction<T> reduction) {
  if (s->halt != 0)
    return;
  __shared__ T step[gmres_restart];
  share(s->step, count, step);
  DotSum<T> sum{}, squares{};
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const wi = subtract<T>(i, load(w, i), step, basis, n, count);
    store(w, i, wi);
    cuda::add_number(sum, wi);
    squares.add(wi, wi);
  }
  T total[2] = {sum.value(), squares.value()};
  cuda::finish_pass(total, reduction, local, [&] { gmres_advance(*s, total[0], total[1], history); });
}

template <class T>
__global__ void __launch_bounds__(pass_threads) combine_kernel(GmresScalars<T> const* s, std::int64_t n, ConstPointer<T> basis,
                                                               double const* __restrict__ inverse_diagonal, Pointer<T> t) {
  if (s->idle != 0)
    return;
  __shared__ T y[gmres_restart];
  int const count = s->columns;
  share(s->y, count, y);
  std::int64_t const i = cuda::first_item(1);
  if (i >= n)
    return;
  T sum = T(0);
#pragma unroll 4
  for (int k = 0; k < count; ++k)
    sum = multiply_add(y[k], load(basis + k * n, i), sum);
  store(t, i, inverse_diagonal != nullptr ? __ldg(inverse_diagonal + i) * sum : sum);
}

template <class T, bool restarts>
__global__ void __launch_bounds__(pass_threads)
    update_kernel(GmresScalars<T>* s, std::int64_t n, ConstPointer<T> z, ConstPointer<T> q, Pointer<T> x, Pointer<T> r,
                  double* history, T* local, Reduction<T> reduction) {
  // What is read here changes only in the last block, once all others are done.
  if (s->idle != 0)
    return;
  DotSum<T> sum{}, squares{};
  double xx = 0;
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const xi = load(x, i) + load(z, i);
    store(x, i, xi);
    xx = fma(rounded(xi), rounded(xi), xx);
    if constexpr (restarts) {
      T const ri = load(r, i) - load(q, i);
      store(r, i, ri);
      cuda::add_number(sum, ri);
      squares.add(ri, ri);
    }
  }
  if constexpr (restarts) {
    T total[3] = {sum.value(), squares.value(), T(xx)};
    cuda::finish_pass(total, reduction, local, [&] { scalar_step_of(GmresPass::restart, *s, total, history); });
  } else {
    T total[1] = {T(xx)};
    cuda::finish_pass(total, reduction, local, [&] { scalar_step_of(GmresPass::finish, *s, total, history); });
  }
}

template <class T>
class CudaGmres final : public GmresKernels<T> {
public:
  void begin(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> x, double* history,
             T* local) const override {
    cuda::launch_pass<T>(begin_kernel<T>, context, n, 3, scalars, n, r, x, history, local);
  }

  void normalise(Context& context, GmresScalars<T> const* scalars, std::int64_t n, ConstPointer<T> w, Pointer<T> v,
                 double const* inverse_diagonal, Pointer<T> z) const override {
    normalise_kernel<T><<<row_blocks(n), pass_threads, 0, cuda::of(context).stream()>>>(scalars, n, w, v, inverse_diagonal, z);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void dots(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> basis, int count, Pointer<T> w, bool second,
            T* local) const override {
    auto const kernel = second ? dots_kernel<T, true> : dots_kernel<T, false>;
    cuda::launch_pass<T>(kernel, context, n, gmres_sums, scalars, n, basis, count, w, local);
  }

  void norm(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> basis, int count, Pointer<T> w,
            double* history, T* local) const override {
    cuda::launch_pass<T>(norm_kernel<T>, context, n, 2, scalars, n, basis, count, w, history, local);
  }

  void combine(Context& context, GmresScalars<T> const* scalars, std::int64_t n, ConstPointer<T> basis,
               double const* inverse_diagonal, Pointer<T> t) const override {
    combine_kernel<T><<<row_blocks(n), pass_threads, 0, cuda::of(context).stream()>>>(scalars, n, basis, inverse_diagonal, t);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void update(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> z, ConstPointer<T> q, bool restarts,
              Pointer<T> x, Pointer<T> r, double* history, T* local) const override {
    auto const kernel = restarts ? update_kernel<T, true> : update_kernel<T, false>;
    cuda::launch_pass<T>(kernel, context, n, 3, scalars, n, z, q, x, r, history, local);
  }

  void scalar_step(Context& context, GmresPass pass, GmresScalars<T>* scalars, T const* sums, double* history) const override {
    cuda::launch_scalar_step(context, pass, scalars, sums, history);
  }

private:
  static unsigned row_blocks(std::int64_t n) { return std::max(1U, cuda::n_blocks(n, pass_threads)); }
};

}  // namespace

template <>
GmresKernels<double> const& GmresKernels<double>::cuda() {
  static CudaGmres<double> const kernels;
  return kernels;
}
template <>
GmresKernels<DoubleDouble> const& GmresKernels<DoubleDouble>::cuda() {
  static CudaGmres<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
