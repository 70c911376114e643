#include "gpu/kernels/cg.hpp"

#include "gpu/kernels/cuda/krylov.cuh"

namespace poisson {

namespace {

using cuda::Pair, cuda::Reduction, cuda::ResidualSums, cuda::pass_threads;

template <class T, bool jacobi>
__global__ void __launch_bounds__(pass_threads)
    begin_kernel(CgScalars<T>* s, std::int64_t n, ConstPointer<T> r, double const* __restrict__ inverse_diagonal, double* history,
                 T* local, Reduction<T> reduction) {
  ResidualSums<T> sums;
  double sum_d = 0;
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    sums.template add<jacobi>(load(r, i), inverse_diagonal, i);
    if (jacobi)
      sum_d += inverse_diagonal[i];
  }
  T total[5] = {sums.r.value(), sums.rr.value(), sums.dr.value(), sums.drr.value(), T(sum_d)};
  cuda::finish_pass(total, reduction, local, [&] { scalar_step_of(CgPass::begin, *s, total, history); });
}

template <class T, bool jacobi>
__global__ void __launch_bounds__(pass_threads)
    update_kernel(CgScalars<T>* s, std::int64_t n, ConstPointer<T> q, Pointer<T> r, double const* __restrict__ inverse_diagonal,
                  double* history, T* local, Reduction<T> reduction) {
  // What is read here changes only in the last block, once all others are done, or not at all.
  if (s->control.stop != 0) {
    if (blockIdx.x == 0 && threadIdx.x == 0)
      s->alpha = 0;
    return;
  }
  T const dot = s->dot;
  if (cg_bad_curvature(dot)) {  // the same in every block: nothing is touched
    if (blockIdx.x == 0 && threadIdx.x == 0)
      cg_break_down(*s, dot);
    return;
  }
  T const alpha = s->rz / dot, mean = s->mean_r;
  ResidualSums<T> sums;
  for (std::int64_t i = cuda::first_item(2); i < n; i += cuda::item_stride(2)) {
    if (i + 1 < n) {
      Pair<T> const qi = cuda::load_pair_once(q, i);
      Pair<T> ri = cuda::load_pair(r, i);
      ri.first = multiply_add(-alpha, qi.first, ri.first - mean);
      ri.second = multiply_add(-alpha, qi.second, ri.second - mean);
      cuda::store_pair(r, i, ri);
      sums.template add<jacobi>(ri.first, inverse_diagonal, i);
      sums.template add<jacobi>(ri.second, inverse_diagonal, i + 1);
    } else {
      T const ri = multiply_add(-alpha, load(q, i), load(r, i) - mean);
      store(r, i, ri);
      sums.template add<jacobi>(ri, inverse_diagonal, i);
    }
  }
  if constexpr (jacobi) {
    T total[4] = {sums.r.value(), sums.rr.value(), sums.dr.value(), sums.drr.value()};
    if (cuda::grid_sum<pass_threads>(total, reduction.partial, reduction.counter)) {
      if (local != nullptr)
        cuda::store_sums(total, local);
      else
        cg_advance(*s, alpha, CgSums<T>{total[0], total[1], total[2], total[3]}, history);
    }
  } else {
    T total[2] = {sums.r.value(), sums.rr.value()};
    if (cuda::grid_sum<pass_threads>(total, reduction.partial, reduction.counter)) {
      if (local != nullptr)
        cuda::store_sums({total[0], total[1], T(0), T(0)}, local);
      else
        cg_advance(*s, alpha, CgSums<T>{total[0], total[1], T(0), T(0)}, history);
    }
  }
}

enum class ZFrom { residual, diagonal, stored };

template <class T, ZFrom from>
__global__ void __launch_bounds__(pass_threads)
    direction_kernel(CgScalars<T>* s, std::int64_t n, ConstPointer<T> r, double const* __restrict__ inverse_diagonal,
                     ConstPointer<T> z, Pointer<T> p, Pointer<T> x, T* local, Reduction<double> reduction) {
  bool const stopped = s->control.stop != 0;
  T const alpha = s->alpha, beta = s->beta, mean_r = s->mean_r, mean_z = s->mean_z;
  if (stopped && rounded(alpha) == 0)
    return;
  auto const next = [=](T of_row, double di, T pi) {
    if constexpr (from == ZFrom::residual)
      return multiply_add(beta, pi, of_row - mean_r);
    else if constexpr (from == ZFrom::diagonal)
      return multiply_add(beta, pi, di * (of_row - mean_r) - mean_z);
    else
      return multiply_add(beta, pi, of_row - mean_z);
  };
  ConstPointer<T> const source = from == ZFrom::stored ? z : r;
  constexpr bool diagonal = from == ZFrom::diagonal;
  double squares = 0;
  for (std::int64_t i = cuda::first_item(2); i < n; i += cuda::item_stride(2)) {
    if (i + 1 < n) {
      Pair<T> const ri = cuda::load_pair_once(source, i);
      Pair<double> const di = diagonal ? cuda::load_pair_once(inverse_diagonal, i) : Pair<double>{1, 1};
      Pair<T> pi = cuda::load_pair(p, i), xi = cuda::load_pair(x, i);
      xi.first = multiply_add(alpha, pi.first, xi.first);
      xi.second = multiply_add(alpha, pi.second, xi.second);
      cuda::store_pair(x, i, xi);
      squares = fma(rounded(xi.first), rounded(xi.first), fma(rounded(xi.second), rounded(xi.second), squares));
      if (stopped)
        continue;
      pi.first = next(ri.first, di.first, pi.first);
      pi.second = next(ri.second, di.second, pi.second);
      cuda::store_pair(p, i, pi);
    } else {
      T const pi = load(p, i), xi = multiply_add(alpha, pi, load(x, i));
      store(x, i, xi);
      squares = fma(rounded(xi), rounded(xi), squares);
      if (!stopped)
        store(p, i, next(load(source, i), diagonal ? inverse_diagonal[i] : 1, pi));
    }
  }
  double total[1] = {squares};
  if (cuda::grid_sum<pass_threads>(total, reduction.partial, reduction.counter)) {
    if (local != nullptr)
      local[0] = T(total[0]);
    else
      s->control.x_norm = sqrt(total[0]);
  }
}

template <class T>
class CudaCg final : public CgKernels<T> {
public:
  void begin(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
             double* history, T* local) const override {
    auto const kernel = inverse_diagonal != nullptr ? begin_kernel<T, true> : begin_kernel<T, false>;
    cuda::launch_pass<T>(kernel, context, n, 5, scalars, n, r, inverse_diagonal, history, local);
  }

  void update(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> q, Pointer<T> r,
              double const* inverse_diagonal, double* history, T* local) const override {
    auto const kernel = inverse_diagonal != nullptr ? update_kernel<T, true> : update_kernel<T, false>;
    cuda::launch_pass<T>(kernel, context, n, 4, scalars, n, q, r, inverse_diagonal, history, local);
  }

  void reduce_z(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> z,
                T* local) const override {
    auto const kernel = cuda::reduce_z_kernel<T, CgScalars<T>, CgPass>;
    cuda::launch_pass<T>(kernel, context, n, 2, CgPass::reduce_z, scalars, n, r, z, local);
  }

  void direction(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
                 ConstPointer<T> z, Pointer<T> p, Pointer<T> x, T* local) const override {
    auto const kernel = !(z == nullptr)               ? direction_kernel<T, ZFrom::stored>
                        : inverse_diagonal != nullptr ? direction_kernel<T, ZFrom::diagonal>
                                                      : direction_kernel<T, ZFrom::residual>;
    cuda::launch_pass<double>(kernel, context, n, 1, scalars, n, r, inverse_diagonal, z, p, x, local);
  }

  void scalar_step(Context& context, CgPass pass, CgScalars<T>* scalars, T const* sums, double* history) const override {
    cuda::launch_scalar_step(context, pass, scalars, sums, history);
  }
};

}  // namespace

template <>
CgKernels<double> const& CgKernels<double>::cuda() {
  static CudaCg<double> const kernels;
  return kernels;
}
template <>
CgKernels<DoubleDouble> const& CgKernels<DoubleDouble>::cuda() {
  static CudaCg<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
