#include "gpu/kernels/minres.hpp"

#include "gpu/kernels/cpu/sums.hpp"

#include <array>

namespace poisson {

namespace {

template <class T>
class CpuMinres final : public MinresKernels<T> {
public:
  void begin(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
             Pointer<T> v, Pointer<T> z, double* history, T* local) const override {
    T const sum_inverse_diagonal = cpu::sum_of_diagonal(context, n, inverse_diagonal);
    auto const sums = cpu::residual_sums<T>(context, n, inverse_diagonal, [=](std::int64_t i) {
      T const ri = load(r, i);
      store(v, i, ri);
      if (inverse_diagonal != nullptr)
        store(z, i, inverse_diagonal[i] * ri);
      return ri;
    });
    cpu::finish_pass(MinresPass::begin, scalars, std::array{sums[0], sums[1], sums[2], sums[3], sum_inverse_diagonal}, history,
                     local);
  }

  void lanczos(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> u, double const* inverse_diagonal,
               Pointer<T> v, Pointer<T> v_before, Pointer<T> z, Pointer<T> w, Pointer<T> w_before, T* local) const override {
    if (scalars->control.stop != 0)
      return;
    MinresStep<T> const step = minres_step(*scalars);
    T const mean = scalars->mean_v;
    bool const plain = z == nullptr;
    auto const sums = cpu::residual_sums<T>(context, n, inverse_diagonal, [=](std::int64_t i) {
      T const vi = load(v, i) - mean, zi = plain ? vi : load(z, i), wi = load(w, i);
      T const next_w = multiply_add(step.a, zi, multiply_add(T(0) - step.d, wi, (T(0) - step.e) * load(w_before, i)));
      T const next = multiply_add(step.a, load(u, i), multiply_add(T(0) - step.b, vi, (T(0) - step.c) * load(v_before, i)));
      store(w_before, i, wi);
      store(w, i, next_w);
      store(v_before, i, vi);
      store(v, i, next);
      if (inverse_diagonal != nullptr)
        store(z, i, inverse_diagonal[i] * next);
      return next;
    });
    cpu::finish_pass(MinresPass::lanczos, scalars, sums, nullptr, local);
  }

  void reduce_z(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> v, ConstPointer<T> z,
                T* local) const override {
    if (scalars->control.stop != 0)
      return;
    cpu::finish_pass(MinresPass::reduce_z, scalars, cpu::sums_of_z<T>(context, n, v, z), nullptr, local);
  }

  void update(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> v, ConstPointer<T> w, Pointer<T> x,
              Pointer<T> r, double* history, T* local) const override {
    if (scalars->control.stop != 0)
      return;
    T const step = scalars->x_step, share = scalars->next_sine * scalars->next_sine, mean_r = scalars->mean_r,
            mean_v = scalars->mean_v;
    auto const sums = cpu::sum_arrays<T, 2>(context, n, cpu::vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last) {
      T rr = 0;
      double xx = 0;
#pragma omp simd reduction(+ : rr, xx)
      for (std::int64_t i = first; i < last; ++i) {
        T const xi = multiply_add(step, load(w, i), load(x, i));
        T const ri = multiply_add(T(0) - step, load(v, i) - mean_v, share * (load(r, i) - mean_r));
        store(x, i, xi);
        store(r, i, ri);
        rr += ri * ri;
        xx += rounded(xi) * rounded(xi);
      }
      return std::array{rr, T(xx)};
    });
    cpu::finish_pass(MinresPass::update, scalars, sums, history, local);
  }

  void scalar_step(Context&, MinresPass pass, MinresScalars<T>* scalars, T const* sums, double* history) const override {
    scalar_step_of(pass, *scalars, sums, history);
  }
};

}  // namespace

template <>
MinresKernels<double> const& MinresKernels<double>::cpu() {
  static CpuMinres<double> const kernels;
  return kernels;
}
template <>
MinresKernels<DoubleDouble> const& MinresKernels<DoubleDouble>::cpu() {
  static CpuMinres<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
