#include "gpu/kernels/cg.hpp"

#include "gpu/kernels/cpu/sums.hpp"

#include <algorithm>
#include <array>

namespace poisson {

namespace {

template <class T>
class CpuCg final : public CgKernels<T> {
public:
  void begin(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
             double* history, T* local) const override {
    T sum_inverse_diagonal = 0;
    if (inverse_diagonal != nullptr)
      sum_inverse_diagonal = cpu::sum_blocks(context, n, n, [=](std::int64_t first, std::int64_t last) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = first; i < last; ++i)
          sum += inverse_diagonal[i];
        return sum;
      });
    CgSums<T> const sums = with_sums(context, n, inverse_diagonal, [=](std::int64_t i) { return load(r, i); });
    finish(CgPass::begin, scalars, {sums.r, sums.rr, sums.dr, sums.drr, sum_inverse_diagonal}, history, local);
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
    CgSums<T> const sums = with_sums(context, n, inverse_diagonal, [=](std::int64_t i) {
      T const ri = multiply_add(-alpha, load(q, i), load(r, i) - mean);
      store(r, i, ri);
      return ri;
    });
    finish(CgPass::update, scalars, {sums.r, sums.rr, sums.dr, sums.drr}, history, local);
  }

  void reduce_z(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> z,
                T* local) const override {
    if (scalars->control.stop != 0)
      return;
    struct Sums {
      T z = 0, rz = 0;
    };
    Sums const sums = cpu::combine_blocks<Sums>(
        context, n, cpu::vector_pass_work<T>(n),
        [=](std::int64_t first, std::int64_t last) {
          T sum_z = 0, sum_rz = 0;
#pragma omp simd reduction(+ : sum_z, sum_rz)
          for (std::int64_t i = first; i < last; ++i) {
            sum_z += load(z, i);
            sum_rz += load(r, i) * load(z, i);
          }
          return Sums{sum_z, sum_rz};
        },
        [](Sums& total, Sums const& of_block) {
          total.z += of_block.z;
          total.rz += of_block.rz;
        });
    finish(CgPass::reduce_z, scalars, {sums.z, sums.rz}, nullptr, local);
  }

  void direction(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
                 ConstPointer<T> z, Pointer<T> p, Pointer<T> x, T* local) const override {
    bool const stopped = scalars->control.stop != 0, stored = !(z == nullptr);
    T const alpha = scalars->alpha, beta = scalars->beta, mean_r = scalars->mean_r, mean_z = scalars->mean_z;
    if (stopped && rounded(alpha) == 0)
      return;
    double const squares = cpu::sum_blocks(context, n, cpu::vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last) {
      double sum = 0;
      auto const take = [&](auto const& next_p) {
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = first; i < last; ++i) {
          T const pi = load(p, i), xi = multiply_add(alpha, pi, load(x, i));
          store(x, i, xi);
          store(p, i, next_p(i, pi));
          sum += rounded(xi) * rounded(xi);
        }
      };
      auto const next = [&](auto const& z_of) { take([&](std::int64_t i, T pi) { return multiply_add(beta, pi, z_of(i)); }); };
      if (stopped)
        take([](std::int64_t, T pi) { return pi; });
      else if (stored)
        next([=](std::int64_t i) { return load(z, i) - mean_z; });
      else if (inverse_diagonal != nullptr)
        next([=](std::int64_t i) { return inverse_diagonal[i] * (load(r, i) - mean_r) - mean_z; });
      else
        next([=](std::int64_t i) { return load(r, i) - mean_r; });
      return sum;
    });
    finish(CgPass::direction, scalars, {T(squares)}, nullptr, local);
  }

  void scalar_step(Context&, CgPass pass, CgScalars<T>* scalars, T const* sums, double* history) const override {
    cg_scalar_step(pass, *scalars, sums, history);
  }

private:
  static void finish(CgPass pass, CgScalars<T>* scalars, std::array<T, 5> const& sums, double* history, T* local) {
    if (local != nullptr)
      std::copy_n(sums.begin(), n_sums(pass), local);
    else
      cg_scalar_step(pass, *scalars, sums.data(), history);
  }

  /// The sums over what value(i) returns, which is called once for every i.
  template <class Value>
  static CgSums<T> with_sums(Context& context, std::int64_t n, double const* inverse_diagonal, Value const& value) {
    return cpu::combine_blocks<CgSums<T>>(
        context, n, cpu::vector_pass_work<T>(n),
        [=](std::int64_t first, std::int64_t last) {
          T sum_r = 0, sum_rr = 0, sum_dr = 0, sum_drr = 0;
          if (inverse_diagonal == nullptr) {
#pragma omp simd reduction(+ : sum_r, sum_rr)
            for (std::int64_t i = first; i < last; ++i) {
              T const ri = value(i);
              sum_r += ri;
              sum_rr += ri * ri;
            }
          } else {
#pragma omp simd reduction(+ : sum_r, sum_rr, sum_dr, sum_drr)
            for (std::int64_t i = first; i < last; ++i) {
              T const ri = value(i), dr = inverse_diagonal[i] * ri;
              sum_r += ri;
              sum_rr += ri * ri;
              sum_dr += dr;
              sum_drr += dr * ri;
            }
          }
          return CgSums<T>{sum_r, sum_rr, sum_dr, sum_drr};
        },
        [](CgSums<T>& total, CgSums<T> const& of_block) {
          total.r += of_block.r;
          total.rr += of_block.rr;
          total.dr += of_block.dr;
          total.drr += of_block.drr;
        });
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
