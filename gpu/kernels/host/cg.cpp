#include "gpu/kernels/cg.hpp"

#include "gpu/kernels/host/host.hpp"

#include <cstring>

namespace poisson {

namespace {

template <class T>
class HostCg final : public CgKernels<T> {
public:
  void begin(Context& context, CgScalars<T>* scalars, std::int64_t n, T const* r, T const* inverse_diagonal,
             T* history) const override {
    if (inverse_diagonal != nullptr)
      scalars->sum_inverse_diagonal = host::sum_blocks(context, n, [=](std::int64_t first, std::int64_t last) {
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = first; i < last; ++i)
          sum += inverse_diagonal[i];
        return sum;
      });
    CgSums<T> const sums = with_sums(context, n, inverse_diagonal, [=](std::int64_t i) { return r[i]; });
    cg_begin(*scalars, sums, history);
  }

  void update(Context& context, CgScalars<T>* scalars, std::int64_t n, T const* __restrict p, T const* __restrict q,
              T* __restrict x, T* __restrict r, T const* inverse_diagonal, T* history) const override {
    if (scalars->stop != 0)
      return;
    if (cg_bad_curvature(scalars->dot)) {
      scalars->curvature = scalars->dot;
      scalars->stop = static_cast<std::int32_t>(CgState::breakdown);
      return;
    }
    T const alpha = scalars->rz / scalars->dot;
    T const mean = scalars->mean_r;
    CgSums<T> const sums = with_sums(context, n, inverse_diagonal, [=](std::int64_t i) {
      x[i] = std::fma(alpha, p[i], x[i]);
      return r[i] = std::fma(-alpha, q[i], r[i] - mean);
    });
    cg_advance(*scalars, sums, history);
  }

  void direction(Context&, CgScalars<T> const* scalars, std::int64_t n, T const* __restrict r, T const* __restrict inverse_diagonal,
                 T* __restrict p) const override {
    if (scalars->stop != 0)
      return;
    T const beta = scalars->beta, mean_r = scalars->mean_r, mean_z = scalars->mean_z;
    host::for_blocks(n, [=](std::int64_t first, std::int64_t last, std::int64_t) {
      if (inverse_diagonal == nullptr) {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i)
          p[i] = std::fma(beta, p[i], r[i] - mean_r);
      } else {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i)
          p[i] = std::fma(beta, p[i], inverse_diagonal[i] * (r[i] - mean_r) - mean_z);
      }
    });
  }

private:
  /// The sums over r_i = value(i), which is called once for every i.
  template <class Value>
  static CgSums<T> with_sums(Context& context, std::int64_t n, T const* inverse_diagonal, Value const& value) {
    std::int64_t const blocks = host::n_blocks(n);
    T* const partial = static_cast<host::HostContext&>(context).partial_sums(4 * blocks);
    host::for_blocks(n, [=](std::int64_t first, std::int64_t last, std::int64_t block) {
      T sum_r = 0, sum_rr = 0, sum_dr = 0, sum_drr = 0;
      if (inverse_diagonal == nullptr) {
#pragma omp simd reduction(+ : sum_r, sum_rr)
        for (std::int64_t i = first; i < last; ++i) {
          T const r = value(i);
          sum_r += r;
          sum_rr += r * r;
        }
      } else {
#pragma omp simd reduction(+ : sum_r, sum_rr, sum_dr, sum_drr)
        for (std::int64_t i = first; i < last; ++i) {
          T const r = value(i);
          T const dr = inverse_diagonal[i] * r;
          sum_r += r;
          sum_rr += r * r;
          sum_dr += dr;
          sum_drr += dr * r;
        }
      }
      T const sums[] = {sum_r, sum_rr, sum_dr, sum_drr};
      std::memcpy(partial + 4 * block, sums, sizeof sums);
    });
    CgSums<T> sums;
    for (std::int64_t block = 0; block < blocks; ++block) {
      sums.r += partial[4 * block];
      sums.rr += partial[4 * block + 1];
      sums.dr += partial[4 * block + 2];
      sums.drr += partial[4 * block + 3];
    }
    return sums;
  }
};

}  // namespace

template <>
CgKernels<double> const& CgKernels<double>::host() {
  static HostCg<double> const kernels;
  return kernels;
}

}  // namespace poisson
