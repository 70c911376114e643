#include "gpu/kernels/bicgstab.hpp"

#include "gpu/kernels/cuda/krylov.cuh"

namespace poisson {

namespace {

using cuda::Reduction, cuda::pass_threads;

template <class T>
struct Sums {
  DotSum<T> r{}, rr{}, shadow_r{};
  double xx = 0;

  __device__ void add(T value, T shadow, double x) {
    cuda::add_number(r, value);
    rr.add(value, value);
    shadow_r.add(shadow, value);
    xx = fma(x, x, xx);
  }
};

template <class T>
__global__ void __launch_bounds__(pass_threads)
    begin_kernel(BicgstabScalars<T>* s, std::int64_t n, ConstPointer<T> r, Pointer<T> shadow, bool fresh, double* history, T* local,
                 Reduction<T> reduction) {
  Sums<T> sums;
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const ri = load(r, i);
    if (fresh)
      store(shadow, i, ri);
    sums.add(ri, fresh ? ri : load(shadow, i), 0);
  }
  T total[3] = {sums.r.value(), sums.rr.value(), sums.shadow_r.value()};
  if (cuda::grid_sum<pass_threads>(total, reduction.partial, reduction.counter)) {
    if (local != nullptr)
      cuda::store_sums({total[0], total[1], total[2], T(0)}, local);
    else
      bicgstab_begin(*s, BicgstabSums<T>{total[0], total[1], total[2], T(0)}, history);
  }
}

template <class T, bool jacobi>
__device__ void store_with_preconditioned(Pointer<T> to, std::int64_t i, double const* inverse_diagonal, Pointer<T> preconditioned,
                                          T value) {
  store(to, i, value);
  if constexpr (jacobi)
    store(preconditioned, i, __ldg(inverse_diagonal + i) * value);
}

template <class T, bool jacobi>
__global__ void __launch_bounds__(pass_threads)
    direction_kernel(BicgstabScalars<T> const* s, std::int64_t n, ConstPointer<T> r, ConstPointer<T> v, Pointer<T> p,
                     double const* __restrict__ inverse_diagonal, Pointer<T> p_tilde) {
  if (s->control.stop != 0)
    return;
  T const beta = s->beta, omega = s->omega, mean = s->mean_r;
  std::int64_t const i = cuda::first_item(1);
  if (i >= n)
    return;
  store_with_preconditioned<T, jacobi>(p, i, inverse_diagonal, p_tilde,
                                       multiply_add(beta, multiply_add(-omega, load(v, i), load(p, i)), load(r, i) - mean));
}

template <class T>
__global__ void __launch_bounds__(pass_threads) shadow_dot_kernel(BicgstabScalars<T>* s, std::int64_t n, ConstPointer<T> shadow,
                                                                  ConstPointer<T> v, T* local, Reduction<T> reduction) {
  if (s->control.stop != 0)
    return;
  DotSum<T> sum{};
#pragma unroll 2
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1))
    sum.add(load(shadow, i), load(v, i));
  T total[1] = {sum.value()};
  cuda::finish_pass(total, reduction, local, [&] { bicgstab_set_alpha(*s, total[0]); });
}

template <class T, bool jacobi>
__global__ void __launch_bounds__(pass_threads)
    half_step_kernel(BicgstabScalars<T> const* s, std::int64_t n, ConstPointer<T> v, Pointer<T> r,
                     double const* __restrict__ inverse_diagonal, Pointer<T> s_tilde) {
  if (s->control.stop != 0)
    return;
  T const alpha = s->alpha, mean = s->mean_r;
  std::int64_t const i = cuda::first_item(1);
  if (i >= n)
    return;
  store_with_preconditioned<T, jacobi>(r, i, inverse_diagonal, s_tilde, multiply_add(-alpha, load(v, i), load(r, i) - mean));
}

template <class T>
__global__ void __launch_bounds__(pass_threads) omega_dots_kernel(BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> t,
                                                                  ConstPointer<T> s, T* local, Reduction<T> reduction) {
  if (scalars->control.stop != 0)
    return;
  DotSum<T> ts{}, tt{};
#pragma unroll 2
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const ti = load(t, i);
    ts.add(ti, load(s, i));
    tt.add(ti, ti);
  }
  T total[2] = {ts.value(), tt.value()};
  cuda::finish_pass(total, reduction, local, [&] { bicgstab_set_omega(*scalars, total[0], total[1]); });
}

template <class T>
__global__ void __launch_bounds__(pass_threads)
    update_kernel(BicgstabScalars<T>* s, std::int64_t n, ConstPointer<T> p_tilde, ConstPointer<T> s_tilde, ConstPointer<T> t,
                  ConstPointer<T> shadow, Pointer<T> x, Pointer<T> r, double* history, T* local, Reduction<T> reduction) {
  // What is read here changes only in the last block, once all others are done.
  if (s->control.stop != 0)
    return;
  T const alpha = s->alpha, omega = s->omega;
  Sums<T> sums;
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const xi = multiply_add(omega, load(s_tilde, i), multiply_add(alpha, load(p_tilde, i), load(x, i)));
    T const ri = multiply_add(-omega, load(t, i), load(r, i));
    store(x, i, xi);
    store(r, i, ri);
    sums.add(ri, load(shadow, i), rounded(xi));
  }
  T total[4] = {sums.r.value(), sums.rr.value(), sums.shadow_r.value(), T(sums.xx)};
  cuda::finish_pass(total, reduction, local, [&] {
    bicgstab_advance(*s, BicgstabSums<T>{total[0], total[1], total[2], total[3]}, history);
  });
}

template <class T>
class CudaBicgstab final : public BicgstabKernels<T> {
public:
  void begin(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, Pointer<T> shadow, bool fresh,
             double* history, T* local) const override {
    cuda::launch_pass<T>(begin_kernel<T>, context, n, 4, scalars, n, r, shadow, fresh, history, local);
  }

  void direction(Context& context, BicgstabScalars<T> const* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> v,
                 Pointer<T> p, double const* inverse_diagonal, Pointer<T> p_tilde) const override {
    auto const kernel = inverse_diagonal != nullptr ? direction_kernel<T, true> : direction_kernel<T, false>;
    kernel<<<row_blocks(n), pass_threads, 0, cuda::of(context).stream()>>>(scalars, n, r, v, p, inverse_diagonal, p_tilde);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void shadow_dot(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> shadow, ConstPointer<T> v,
                  T* local) const override {
    cuda::launch_pass<T>(shadow_dot_kernel<T>, context, n, 4, scalars, n, shadow, v, local);
  }

  void half_step(Context& context, BicgstabScalars<T> const* scalars, std::int64_t n, ConstPointer<T> v, Pointer<T> r,
                 double const* inverse_diagonal, Pointer<T> s_tilde) const override {
    auto const kernel = inverse_diagonal != nullptr ? half_step_kernel<T, true> : half_step_kernel<T, false>;
    kernel<<<row_blocks(n), pass_threads, 0, cuda::of(context).stream()>>>(scalars, n, v, r, inverse_diagonal, s_tilde);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void omega_dots(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> t, ConstPointer<T> s,
                  T* local) const override {
    cuda::launch_pass<T>(omega_dots_kernel<T>, context, n, 4, scalars, n, t, s, local);
  }

  void update(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> p_tilde, ConstPointer<T> s_tilde,
              ConstPointer<T> t, ConstPointer<T> shadow, Pointer<T> x, Pointer<T> r, double* history, T* local) const override {
    cuda::launch_pass<T>(update_kernel<T>, context, n, 4, scalars, n, p_tilde, s_tilde, t, shadow, x, r, history, local);
  }

  void scalar_step(Context& context, BicgstabPass pass, BicgstabScalars<T>* scalars, T const* sums,
                   double* history) const override {
    cuda::launch_scalar_step(context, pass, scalars, sums, history);
  }

private:
  static unsigned row_blocks(std::int64_t n) { return std::max(1U, cuda::n_blocks(n, pass_threads)); }
};

}  // namespace

template <>
BicgstabKernels<double> const& BicgstabKernels<double>::cuda() {
  static CudaBicgstab<double> const kernels;
  return kernels;
}
template <>
BicgstabKernels<DoubleDouble> const& BicgstabKernels<DoubleDouble>::cuda() {
  static CudaBicgstab<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
