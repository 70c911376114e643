#include "gpu/kernels/bicgstab.hpp"

#include "gpu/kernels/cpu/sums.hpp"

#include <algorithm>
#include <array>

namespace poisson {

namespace {

template <class T>
class CpuBicgstab final : public BicgstabKernels<T> {
public:
  void begin(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, Pointer<T> shadow, bool fresh,
             double* history, T* local) const override {
    if (fresh)
      cpu::for_blocks(n, cpu::vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last, std::int64_t) {
        for (std::int64_t i = first; i < last; ++i)
          store(shadow, i, load(r, i));
      });
    BicgstabSums<T> const sums = with_sums(context, n, shadow, [=](std::int64_t i) { return Updated{load(r, i), 0}; });
    finish(BicgstabPass::begin, scalars, {sums.r, sums.rr, sums.shadow_r, sums.xx}, history, local);
  }

  void direction(Context&, BicgstabScalars<T> const* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> v, Pointer<T> p,
                 double const* inverse_diagonal, Pointer<T> p_tilde) const override {
    if (scalars->control.stop != 0)
      return;
    T const beta = scalars->beta, omega = scalars->omega, mean = scalars->mean_r;
    store_with_preconditioned(n, p, inverse_diagonal, p_tilde, [=](std::int64_t i) {
      return multiply_add(beta, multiply_add(-omega, load(v, i), load(p, i)), load(r, i) - mean);
    });
  }

  void shadow_dot(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> shadow, ConstPointer<T> v,
                  T* local) const override {
    if (scalars->control.stop != 0)
      return;
    T const dot = cpu::combine_blocks<T>(
        context, n, cpu::vector_pass_work<T>(n),
        [=](std::int64_t first, std::int64_t last) {
          T sum = 0;
#pragma omp simd reduction(+ : sum)
          for (std::int64_t i = first; i < last; ++i)
            sum += load(shadow, i) * load(v, i);
          return sum;
        },
        [](T& total, T of_block) { total += of_block; });
    finish(BicgstabPass::shadow_dot, scalars, {dot}, nullptr, local);
  }

  void half_step(Context&, BicgstabScalars<T> const* scalars, std::int64_t n, ConstPointer<T> v, Pointer<T> r,
                 double const* inverse_diagonal, Pointer<T> s_tilde) const override {
    if (scalars->control.stop != 0)
      return;
    T const alpha = scalars->alpha, mean = scalars->mean_r;
    store_with_preconditioned(n, r, inverse_diagonal, s_tilde,
                              [=](std::int64_t i) { return multiply_add(-alpha, load(v, i), load(r, i) - mean); });
  }

  void omega_dots(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> t, ConstPointer<T> s,
                  T* local) const override {
    if (scalars->control.stop != 0)
      return;
    struct Sums {
      T ts = 0, tt = 0;
    };
    Sums const sums = cpu::combine_blocks<Sums>(
        context, n, cpu::vector_pass_work<T>(n),
        [=](std::int64_t first, std::int64_t last) {
          T sum_ts = 0, sum_tt = 0;
#pragma omp simd reduction(+ : sum_ts, sum_tt)
          for (std::int64_t i = first; i < last; ++i) {
            sum_ts += load(t, i) * load(s, i);
            sum_tt += load(t, i) * load(t, i);
          }
          return Sums{sum_ts, sum_tt};
        },
        [](Sums& total, Sums const& of_block) {
          total.ts += of_block.ts;
          total.tt += of_block.tt;
        });
    finish(BicgstabPass::omega_dots, scalars, {sums.ts, sums.tt}, nullptr, local);
  }

  void update(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> p_tilde, ConstPointer<T> s_tilde,
              ConstPointer<T> t, ConstPointer<T> shadow, Pointer<T> x, Pointer<T> r, double* history, T* local) const override {
    if (scalars->control.stop != 0)
      return;
    T const alpha = scalars->alpha, omega = scalars->omega;
    BicgstabSums<T> const sums = with_sums(context, n, shadow, [=](std::int64_t i) {
      T const xi = multiply_add(omega, load(s_tilde, i), multiply_add(alpha, load(p_tilde, i), load(x, i)));
      T const ri = multiply_add(-omega, load(t, i), load(r, i));
      store(x, i, xi);
      store(r, i, ri);
      return Updated{ri, rounded(xi)};
    });
    finish(BicgstabPass::update, scalars, {sums.r, sums.rr, sums.shadow_r, sums.xx}, history, local);
  }

  void scalar_step(Context&, BicgstabPass pass, BicgstabScalars<T>* scalars, T const* sums, double* history) const override {
    bicgstab_scalar_step(pass, *scalars, sums, history);
  }

private:
  static void finish(BicgstabPass pass, BicgstabScalars<T>* scalars, std::array<T, 4> const& sums, double* history, T* local) {
    if (local != nullptr)
      std::copy_n(sums.begin(), n_sums(pass), local);
    else
      bicgstab_scalar_step(pass, *scalars, sums.data(), history);
  }

  struct Updated {
    T r;
    double x;
  };

  /// Stores value(i) for every i, and with a Jacobi preconditioner its product with that.
  template <class Value>
  static void store_with_preconditioned(std::int64_t n, Pointer<T> to, double const* inverse_diagonal, Pointer<T> preconditioned,
                                        Value const& value) {
    cpu::for_blocks(n, cpu::vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last, std::int64_t) {
      if (inverse_diagonal == nullptr) {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i)
          store(to, i, value(i));
      } else {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) {
          T const at = value(i);
          store(to, i, at);
          store(preconditioned, i, inverse_diagonal[i] * at);
        }
      }
    });
  }

  /// The sums over what value(i) returns, which is called once for every i.
  template <class Value>
  static BicgstabSums<T> with_sums(Context& context, std::int64_t n, ConstPointer<T> shadow, Value const& value) {
    return cpu::combine_blocks<BicgstabSums<T>>(
        context, n, cpu::vector_pass_work<T>(n),
        [=](std::int64_t first, std::int64_t last) {
          T sum_r = 0, sum_rr = 0, sum_shadow = 0;
          double sum_xx = 0;
#pragma omp simd reduction(+ : sum_r, sum_rr, sum_shadow, sum_xx)
          for (std::int64_t i = first; i < last; ++i) {
            Updated const at = value(i);
            sum_r += at.r;
            sum_rr += at.r * at.r;
            sum_shadow += load(shadow, i) * at.r;
            sum_xx += at.x * at.x;
          }
          return BicgstabSums<T>{sum_r, sum_rr, sum_shadow, T(sum_xx)};
        },
        [](BicgstabSums<T>& total, BicgstabSums<T> const& of_block) {
          total.r += of_block.r;
          total.rr += of_block.rr;
          total.shadow_r += of_block.shadow_r;
          total.xx += of_block.xx;
        });
  }
};

}  // namespace

template <>
BicgstabKernels<double> const& BicgstabKernels<double>::cpu() {
  static CpuBicgstab<double> const kernels;
  return kernels;
}
template <>
BicgstabKernels<DoubleDouble> const& BicgstabKernels<DoubleDouble>::cpu() {
  static CpuBicgstab<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
