#include "gpu/kernels/gmres.hpp"

#include "gpu/kernels/cpu/sums.hpp"

#include <array>

namespace poisson {

namespace {

template <class T>
class CpuGmres final : public GmresKernels<T> {
public:
  void begin(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> x, double* history,
             T* local) const override {
    auto const sums = cpu::sum_arrays<T, 3>(context, n, cpu::vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last) {
      double squares = 0;
#pragma omp simd reduction(+ : squares)
      for (std::int64_t i = first; i < last; ++i)
        squares += rounded(load(x, i)) * rounded(load(x, i));
      auto const of_r = sums_of_rows(first, last, r);
      return std::array{of_r[0], of_r[1], T(squares)};
    });
    cpu::finish_pass(GmresPass::begin, scalars, sums, history, local);
  }

  void normalise(Context&, GmresScalars<T> const* scalars, std::int64_t n, ConstPointer<T> w, Pointer<T> v,
                 double const* inverse_diagonal, Pointer<T> z) const override {
    if (scalars->halt != 0)
      return;
    T const mean = scalars->mean, scale = scalars->scale;
    cpu::for_blocks(n, cpu::vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last, std::int64_t) {
      if (inverse_diagonal == nullptr) {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i)
          store(v, i, (load(w, i) - mean) * scale);
      } else {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) {
          T const vi = (load(w, i) - mean) * scale;
          store(v, i, vi);
          store(z, i, inverse_diagonal[i] * vi);
        }
      }
    });
  }

  void dots(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> basis, int count, Pointer<T> w, bool second,
            T* local) const override {
    if (scalars->halt != 0)
      return;
    auto const sums = cpu::sum_arrays<T, gmres_sums>(context, n, work(n, count), [=](std::int64_t first, std::int64_t last) {
      if (second)
        subtract(first, last, scalars->step, basis, n, count, w);
      std::array<T, gmres_sums> of_block{};
      for (int k = 0; k < count; ++k)
        of_block[static_cast<std::size_t>(k)] = cpu::dot_of_rows(first, last, ConstPointer<T>(basis + k * n), ConstPointer<T>(w));
      of_block[gmres_sum_of_squares] = cpu::dot_of_rows(first, last, ConstPointer<T>(w), ConstPointer<T>(w));
      return of_block;
    });
    cpu::finish_pass(second ? GmresPass::second_dots : GmresPass::dots, scalars, sums, nullptr, local);
  }

  void norm(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> basis, int count, Pointer<T> w,
            double* history, T* local) const override {
    if (scalars->halt != 0)
      return;
    auto const sums = cpu::sum_arrays<T, 2>(context, n, work(n, count), [=](std::int64_t first, std::int64_t last) {
      subtract(first, last, scalars->step, basis, n, count, w);
      return sums_of_rows(first, last, w);
    });
    cpu::finish_pass(GmresPass::norm, scalars, sums, history, local);
  }

  void combine(Context&, GmresScalars<T> const* scalars, std::int64_t n, ConstPointer<T> basis, double const* inverse_diagonal,
               Pointer<T> t) const override {
    if (scalars->idle != 0)
      return;
    int const count = scalars->columns;
    cpu::for_blocks(n, work(n, count), [=](std::int64_t first, std::int64_t last, std::int64_t) {
      cpu::fill_zero(t + first, last - first);
      for (int k = 0; k < count; ++k)
        add_times(first, last, scalars->y[k], basis + k * n, t);
      if (inverse_diagonal != nullptr)
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i)
          store(t, i, inverse_diagonal[i] * load(t, i));
    });
  }

  void update(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> z, ConstPointer<T> q, bool restarts,
              Pointer<T> x, Pointer<T> r, double* history, T* local) const override {
    if (scalars->idle != 0)
      return;
    auto const sums = cpu::sum_arrays<T, 3>(context, n, cpu::vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last) {
      double squares = 0;
#pragma omp simd reduction(+ : squares)
      for (std::int64_t i = first; i < last; ++i) {
        T const xi = load(x, i) + load(z, i);
        store(x, i, xi);
        squares += rounded(xi) * rounded(xi);
      }
      if (!restarts)
        return std::array{T(squares), T(0), T(0)};
#pragma omp simd
      for (std::int64_t i = first; i < last; ++i)
        store(r, i, load(r, i) - load(q, i));
      auto const of_r = sums_of_rows(first, last, r);
      return std::array{of_r[0], of_r[1], T(squares)};
    });
    cpu::finish_pass(restarts ? GmresPass::restart : GmresPass::finish, scalars, sums, history, local);
  }

  void scalar_step(Context&, GmresPass pass, GmresScalars<T>* scalars, T const* sums, double* history) const override {
    scalar_step_of(pass, *scalars, sums, history);
  }

private:
  /// What a pass over `count` basis vectors counts as.
  static std::int64_t work(std::int64_t n, int count) {
    return (count + 2) * n * work_of_number;
  }
  static constexpr std::int64_t work_of_number = cpu::work_of<T>;

  /// Sums of w and w^2.
  static std::array<T, 2> sums_of_rows(std::int64_t first, std::int64_t last, ConstPointer<T> w) {
    T sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
    for (std::int64_t i = first; i < last; ++i) {
      T const wi = load(w, i);
      sum += wi;
      squares += wi * wi;
    }
    return {sum, squares};
  }
  /// y += a x.
  static void add_times(std::int64_t first, std::int64_t last, T a, ConstPointer<T> x, Pointer<T> y) {
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i)
      store(y, i, multiply_add(a, load(x, i), load(y, i)));
  }
  static void subtract(std::int64_t first, std::int64_t last, T const* step, ConstPointer<T> basis, std::int64_t n, int count,
                       Pointer<T> w) {
    for (int k = 0; k < count; ++k)
      add_times(first, last, T(0) - step[k], basis + k * n, w);
  }
};

}  // namespace

template <>
GmresKernels<double> const& GmresKernels<double>::cpu() {
  static CpuGmres<double> const kernels;
  return kernels;
}
template <>
GmresKernels<DoubleDouble> const& GmresKernels<DoubleDouble>::cpu() {
  static CpuGmres<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
