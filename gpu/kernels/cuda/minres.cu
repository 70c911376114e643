#include "gpu/kernels/minres.hpp"

#include "gpu/kernels/cuda/krylov.cuh"

namespace poisson {

namespace {

using cuda::Reduction, cuda::ResidualSums, cuda::pass_threads;

template <class T, bool jacobi>
__global__ void __launch_bounds__(pass_threads)
    begin_kernel(MinresScalars<T>* s, std::int64_t n, ConstPointer<T> r, double const* __restrict__ inverse_diagonal, Pointer<T> v,
                 Pointer<T> z, double* history, T* local, Reduction<T> reduction) {
  ResidualSums<T> sums;
  double sum_d = 0;
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const ri = load(r, i);
    store(v, i, ri);
    sums.template add<jacobi>(ri, inverse_diagonal, i);
    if constexpr (jacobi) {
      store(z, i, inverse_diagonal[i] * ri);
      sum_d += inverse_diagonal[i];
    }
  }
  T total[5] = {sums.r.value(), sums.rr.value(), sums.dr.value(), sums.drr.value(), T(sum_d)};
  cuda::finish_pass(total, reduction, local, [&] { scalar_step_of(MinresPass::begin, *s, total, history); });
}

enum class DirectionFrom { v, diagonal, stored };

template <class T, DirectionFrom from>
__global__ void __launch_bounds__(pass_threads)
    lanczos_kernel(MinresScalars<T>* s, std::int64_t n, ConstPointer<T> u, double const* __restrict__ inverse_diagonal,
                   Pointer<T> v, Pointer<T> v_before, Pointer<T> z, Pointer<T> w, Pointer<T> w_before, T* local,
                   Reduction<T> reduction) {
  // What is read here changes only in the last block, once all others are done.
  if (s->control.stop != 0)
    return;
  MinresStep<T> const step = minres_step(*s);
  T const mean = s->mean_v;
  ResidualSums<T> sums;
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const vi = load(v, i) - mean, wi = load(w, i);
    T zi = vi;
    if constexpr (from != DirectionFrom::v)
      zi = load(z, i);
    T const next_w = multiply_add(step.a, zi, multiply_add(T(0) - step.d, wi, (T(0) - step.e) * load(w_before, i)));
    T const next = multiply_add(step.a, load(u, i), multiply_add(T(0) - step.b, vi, (T(0) - step.c) * load(v_before, i)));
    store(w_before, i, wi);
    store(w, i, next_w);
    store(v_before, i, vi);
    store(v, i, next);
    if constexpr (from == DirectionFrom::diagonal)
      store(z, i, __ldg(inverse_diagonal + i) * next);
    sums.template add<from == DirectionFrom::diagonal>(next, inverse_diagonal, i);
  }
  T total[4] = {sums.r.value(), sums.rr.value(), sums.dr.value(), sums.drr.value()};
  cuda::finish_pass(total, reduction, local, [&] { scalar_step_of(MinresPass::lanczos, *s, total, nullptr); });
}

template <class T>
__global__ void __launch_bounds__(pass_threads)
    update_kernel(MinresScalars<T>* s, std::int64_t n, ConstPointer<T> v, ConstPointer<T> w, Pointer<T> x, Pointer<T> r,
                  double* history, T* local, Reduction<T> reduction) {
  // What is read here changes only in the last block, once all others are done.
  if (s->control.stop != 0)
    return;
  T const step = s->x_step, share = s->next_sine * s->next_sine, mean_r = s->mean_r, mean_v = s->mean_v;
  DotSum<T> rr{};
  double xx = 0;
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    T const xi = multiply_add(step, load(w, i), load(x, i));
    T const ri = multiply_add(T(0) - step, load(v, i) - mean_v, share * (load(r, i) - mean_r));
    store(x, i, xi);
    store(r, i, ri);
    rr.add(ri, ri);
    xx = fma(rounded(xi), rounded(xi), xx);
  }
  T total[2] = {rr.value(), T(xx)};
  cuda::finish_pass(total, reduction, local, [&] { minres_advance(*s, total[0], total[1], history); });
}

template <class T>
class CudaMinres final : public MinresKernels<T> {
public:
  void begin(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
             Pointer<T> v, Pointer<T> z, double* history, T* local) const override {
    auto const kernel = inverse_diagonal != nullptr ? begin_kernel<T, true> : begin_kernel<T, false>;
    cuda::launch_pass<T>(kernel, context, n, 5, scalars, n, r, inverse_diagonal, v, z, history, local);
  }

  void lanczos(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> u, double const* inverse_diagonal,
               Pointer<T> v, Pointer<T> v_before, Pointer<T> z, Pointer<T> w, Pointer<T> w_before, T* local) const override {
    auto const kernel = z == nullptr                  ? lanczos_kernel<T, DirectionFrom::v>
                        : inverse_diagonal != nullptr ? lanczos_kernel<T, DirectionFrom::diagonal>
                                                      : lanczos_kernel<T, DirectionFrom::stored>;
    cuda::launch_pass<T>(kernel, context, n, 4, scalars, n, u, inverse_diagonal, v, v_before, z, w, w_before, local);
  }

  void reduce_z(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> v, ConstPointer<T> z,
                T* local) const override {
    auto const kernel = cuda::reduce_z_kernel<T, MinresScalars<T>, MinresPass>;
    cuda::launch_pass<T>(kernel, context, n, 2, MinresPass::reduce_z, scalars, n, v, z, local);
  }

  void update(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> v, ConstPointer<T> w, Pointer<T> x,
              Pointer<T> r, double* history, T* local) const override {
    cuda::launch_pass<T>(update_kernel<T>, context, n, 2, scalars, n, v, w, x, r, history, local);
  }

  void scalar_step(Context& context, MinresPass pass, MinresScalars<T>* scalars, T const* sums, double* history) const override {
    cuda::launch_scalar_step(context, pass, scalars, sums, history);
  }
};

}  // namespace

template <>
MinresKernels<double> const& MinresKernels<double>::cuda() {
  static CudaMinres<double> const kernels;
  return kernels;
}
template <>
MinresKernels<DoubleDouble> const& MinresKernels<DoubleDouble>::cuda() {
  static CudaMinres<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
