#include "gpu/kernels/cg.hpp"

#include "gpu/kernels/cpu/sums.hpp"

#include <array>

namespace poisson {

namespace {

template <class T>
class CpuCg final : public CgKernels<T> {
public:
  void begin(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
             double* history, T* local) const override {
    T const sum_inverse_diagonal = cpu::sum_of_diagonal(context, n, inverse_diagonal);
    auto const [sum_r, sum_rr, sum_dr, sum_drr] =
        cpu::residual_sums<T>(context, n, inverse_diagonal, [=](std::int64_t i) { return load(r, i); });
    cpu::finish_pass(CgPass::begin, scalars, std::array{sum_r, sum_rr, sum_dr, sum_drr, sum_inverse_diagonal}, history, local);
  }

  void update(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> q, Pointer<T> r,
              double const* inverse_diagonal, double* history, T* local) const override {
    if (scalars->control.stop != 0) {
      scalars->alpha = 0;
      return;
    }
    if (cg_bad_curvature(scalars->dot)) {
      cg_break_down(*scalars, scalars->dot);
      return;
    }
    T const alpha = scalars->rz / scalars->dot;
    T const mean = scalars->mean_r;
    auto const sums = cpu::residual_sums<T>(context, n, inverse_diagonal, [=](std::int64_t i) {
      T const ri = multiply_add(-alpha, load(q, i), load(r, i) - mean);
      store(r, i, ri);
      return ri;
    });
    cpu::finish_pass(CgPass::update, scalars, sums, history, local);
  }

  void reduce_z(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> z,
                T* local) const override {
    if (scalars->control.stop != 0)
      return;
    cpu::finish_pass(CgPass::reduce_z, scalars, cpu::sums_of_z<T>(context, n, r, z), nullptr, local);
  }

  void direction(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
                 ConstPointer<T> z, Pointer<T> p, Pointer<T> x, T* local) const override {
    bool const stopped = scalars->control.stop != 0, stored = !(z == nullptr);
    T const alpha = scalars->alpha, beta = scalars->beta, mean_r = scalars->mean_r, mean_z = scalars->mean_z;
    if (stopped && rounded(alpha) == 0)
      return;
    double const squares = cpu::sum_blocks(context, n, cpu::vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last) {
      double sum = 0;
      auto const update_x = [&](auto const& next_p) {
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = first; i < last; ++i) {
          T const pi = load(p, i), xi = multiply_add(alpha, pi, load(x, i));
          store(x, i, xi);
          store(p, i, next_p(i, pi));
          sum += rounded(xi) * rounded(xi);
        }
      };
      auto const next = [&](auto const& z_of) { update_x([&](std::int64_t i, T pi) { return multiply_add(beta, pi, z_of(i)); }); };
      if (stopped)
        update_x([](std::int64_t, T pi) { return pi; });
      else if (stored)
        next([=](std::int64_t i) { return load(z, i) - mean_z; });
      else if (inverse_diagonal != nullptr)
        next([=](std::int64_t i) { return inverse_diagonal[i] * (load(r, i) - mean_r) - mean_z; });
      else
        next([=](std::int64_t i) { return load(r, i) - mean_r; });
      return sum;
    });
    cpu::finish_pass(CgPass::direction, scalars, std::array{T(squares)}, nullptr, local);
  }

  void scalar_step(Context&, CgPass pass, CgScalars<T>* scalars, T const* sums, double* history) const override {
    scalar_step_of(pass, *scalars, sums, history);
  }
};

}  // namespace

template <>
CgKernels<double> const& CgKernels<double>::cpu() {
  static CpuCg<double> const kernels;
  return kernels;
}
template <>
CgKernels<DoubleDouble> const& CgKernels<DoubleDouble>::cpu() {
  static CpuCg<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
