#pragma once

#include "gpu/kernels/cg.hpp"

#include <cmath>
#include <cstdint>

namespace poisson {

/// The scalar at which MINRES broke down: r . M^-1 r, of which M is to blame; or the next vector of Lanczos's method is 0.
enum class MinresBreakdown : std::int32_t { none = 0, preconditioner, invariant };

/// The scalars of MINRES (Paige, Saunders 1975) with a preconditioner, in the notation of Elman, Silvester, Wathen, "Finite
/// Elements and Fast Iterative Solvers", algorithm 2.4, but that z and w are stored without their divisors gamma and alpha_1; see
/// IterationControl.
template <class T>
struct MinresScalars {
  IterationControl control;
  CgPreconditioner preconditioner{};
  std::int32_t project = 0;  ///< residuals are kept orthogonal to the constant vector
  std::int32_t fresh = 1;    ///< not used: every cycle begins anew
  MinresBreakdown breakdown{};
  double bad = 0;  ///< at a breakdown by the preconditioner: z . v
  T sum_inverse_diagonal = 0;
  T dot = 0;     ///< z . A z of the current iteration, written by the operator
  T mean_v = 0;  ///< still to be subtracted from the stored v
  T mean_r = 0;  ///< and from the stored r
  T gamma = 0, gamma_before = 1;
  T next_gamma = 0;
  T cosine = 1, cosine_before = 1, sine = 0, sine_before = 0;
  T eta = 0;                          ///< +- the norm of r that M defines
  T w_scale = 0, w_scale_before = 0;  ///< of the stored w
  // Of the update:
  T length = 0;  ///< alpha_1
  T next_sine = 0, x_step = 0;
};

/// What Lanczos's step of an iteration takes its vectors times: v = a A z - b v - c v_before;  w = a z - d w - e w_before.
template <class T>
struct MinresStep {
  T a, b, c, d, e;
  T delta_rotated;  ///< alpha_0
};

template <class T>
[[nodiscard]] POISSON_HOST_DEVICE MinresStep<T> minres_step(MinresScalars<T> const& s) {
  T const a = T(1) / s.gamma, delta = s.dot * a * a;
  return {a,
          delta * a,
          s.gamma / s.gamma_before,
          (s.sine * delta + s.cosine_before * s.cosine * s.gamma) * s.w_scale,
          s.sine_before * s.gamma * s.w_scale_before,
          s.cosine * delta - s.cosine_before * s.sine * s.gamma};
}

namespace detail {

template <class T>
POISSON_HOST_DEVICE void minres_break_down(MinresScalars<T>& s, MinresBreakdown why) {
  s.breakdown = why;
  s.control.stop = static_cast<std::int32_t>(CycleState::breakdown);
}

/// gamma = sqrt(z . v) of the new v. Whether the iteration can go on.
template <class T>
POISSON_HOST_DEVICE bool minres_take_root(MinresScalars<T>& s, T square) {
  using std::sqrt;
  if (!is_finite(rounded(square))) {
    s.control.stop = static_cast<std::int32_t>(CycleState::diverged);
    return false;
  }
  if (s.preconditioner != CgPreconditioner::none && rounded(square) < 0) {
    s.bad = rounded(square);
    minres_break_down(s, MinresBreakdown::preconditioner);
    return false;
  }
  s.next_gamma = rounded(square) > 0 ? sqrt(square) : T(0);
  return true;
}

/// z . v of the new v, from sums over it where z is not stored.
template <class T>
[[nodiscard]] POISSON_HOST_DEVICE T minres_square(MinresScalars<T> const& s, CgSums<T> const& sums) {
  return s.preconditioner == CgPreconditioner::none ? T(sums.rr - static_cast<T>(s.control.n) * s.mean_v * s.mean_v)
                                                    : T(sums.drr - s.mean_v * (T(2) * sums.dr - s.mean_v * s.sum_inverse_diagonal));
}

/// The scalars of the update, from the new gamma. Where A is singular alpha_1 may be 0 to rounding of what Lanczos's step adds up.
template <class T>
POISSON_HOST_DEVICE void minres_rotate(MinresScalars<T>& s) {
  using std::sqrt;
  MinresStep<T> const step = minres_step(s);
  T const rotated = step.delta_rotated, square = rotated * rotated + s.next_gamma * s.next_gamma;
  double const terms =
      std::abs(rounded(step.b * s.gamma)) + (rounded(s.sine) > 0 ? rounded(s.gamma) : 0);  // delta, and gamma beside it
  if (!(rounded(square) > 0) || std::sqrt(rounded(square)) <= 8 * unit_roundoff<T> * terms) {
    minres_break_down(s, MinresBreakdown::invariant);
    return;
  }
  s.length = sqrt(square);
  T const cosine = rotated / s.length;
  s.next_sine = s.next_gamma / s.length;
  s.x_step = cosine * s.eta / s.length;
  s.eta = T(0) - s.next_sine * s.eta;
  s.cosine_before = s.cosine;
  s.cosine = cosine;
}

/// The first vector is complete.
template <class T>
POISSON_HOST_DEVICE void minres_start(MinresScalars<T>& s, T square) {
  if (!minres_take_root(s, square))
    return;
  s.gamma = s.eta = s.next_gamma;
  if (s.control.stop == 0 && !(rounded(s.gamma) > 0))
    minres_break_down(s, MinresBreakdown::invariant);
}

}  // namespace detail

/// Before the first iteration of a cycle, of which v = r is the first vector. `sums` are those over r. With a stored z gamma is not
/// known yet.
template <class T>
POISSON_HOST_DEVICE void minres_begin(MinresScalars<T>& s, CgSums<T> const& sums, double* history) {
  T const n = static_cast<T>(s.control.n);
  s.mean_v = s.mean_r = s.project != 0 ? sums.r / n : T(0);
  s.gamma_before = s.cosine = s.cosine_before = 1;
  s.gamma = s.sine = s.sine_before = s.w_scale = s.w_scale_before = 0;
  begin_cycle(s.control, norm_of(T(sums.rr - n * s.mean_r * s.mean_r)), history);
  if (s.preconditioner != CgPreconditioner::stored)
    detail::minres_start(s, detail::minres_square(s, sums));
}

/// After Lanczos's step, from sums over the new v.
template <class T>
POISSON_HOST_DEVICE void minres_set_v_sums(MinresScalars<T>& s, CgSums<T> const& sums) {
  s.mean_v = s.project != 0 ? sums.r / static_cast<T>(s.control.n) : T(0);
  if (s.preconditioner != CgPreconditioner::stored && detail::minres_take_root(s, detail::minres_square(s, sums)))
    detail::minres_rotate(s);
}

/// From a stored z of the new v: of the first one where gamma is still 0.
template <class T>
POISSON_HOST_DEVICE void minres_set_z_sums(MinresScalars<T>& s, T sum_z, T dot) {
  T const square = dot - s.mean_v * sum_z;
  if (rounded(s.gamma) == 0)
    detail::minres_start(s, square);
  else if (detail::minres_take_root(s, square))
    detail::minres_rotate(s);
}

/// After x and r were updated.
template <class T>
POISSON_HOST_DEVICE void minres_advance(MinresScalars<T>& s, T rr, T xx, double* history) {
  s.mean_r = 0;
  s.gamma_before = s.gamma;
  s.gamma = s.next_gamma;
  s.sine_before = s.sine;
  s.sine = s.next_sine;
  s.w_scale_before = s.w_scale;
  s.w_scale = T(1) / s.length;
  end_iteration(s.control, norm_of(rr), std::sqrt(rounded(xx)), history);
  if (s.control.stop == 0 && !(rounded(s.gamma) > 0))
    detail::minres_break_down(s, MinresBreakdown::invariant);
}

/// The passes with sums, in the order of an iteration.
enum class MinresPass { begin, lanczos, reduce_z, update };
/// Number of sums of a pass. begin: the fields of CgSums and the sum of 1 / diagonal; lanczos: the fields of CgSums; reduce_z: sums
/// of z and z v; update: of r^2 and x^2.
[[nodiscard]] constexpr int n_sums(MinresPass pass) {
  return pass == MinresPass::begin ? 5 : pass == MinresPass::lanczos ? 4 : 2;
}

/// The scalar step of a pass, from its sums over all rows.
template <class T>
POISSON_HOST_DEVICE void scalar_step_of(MinresPass pass, MinresScalars<T>& s, T const* sums, double* history) {
  if (pass == MinresPass::begin) {
    s.sum_inverse_diagonal = sums[4];
    minres_begin(s, CgSums<T>{sums[0], sums[1], sums[2], sums[3]}, history);
  } else if (s.control.stop != 0)
    return;
  else if (pass == MinresPass::lanczos)
    minres_set_v_sums(s, CgSums<T>{sums[0], sums[1], sums[2], sums[3]});
  else if (pass == MinresPass::reduce_z)
    minres_set_z_sums(s, sums[0], sums[1]);
  else
    minres_advance(s, sums[0], sums[1], history);
}

/// The passes over vectors of MINRES, in the arithmetic T; the product u = A z is the operator's, with z . u. Where z = M^-1 v is v
/// itself, `z` is null. `inverse_diagonal` is null except for CgPreconditioner::diagonal, and `local` as in kernels/cg.hpp. Bytes
/// are for T = double; with DoubleDouble vectors take twice as many, the diagonal as many.
template <class T>
class MinresKernels {
public:
  virtual ~MinresKernels() = default;
  /// v = r, and with a diagonal z = D^-1 v; sums over r, then minres_begin.
  virtual void begin(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
                     Pointer<T> v, Pointer<T> z, double* history, T* local) const = 0;
  /// w_before, w = w, the next w;  v_before, v = v, the next v (MinresStep);  with a diagonal z = D^-1 v. Sums over v, then
  /// minres_set_v_sums. 72 bytes a row, 80 with a stored z, 96 with a diagonal.
  virtual void lanczos(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> u,
                       double const* inverse_diagonal, Pointer<T> v, Pointer<T> v_before, Pointer<T> z, Pointer<T> w,
                       Pointer<T> w_before, T* local) const = 0;
  /// Sums over a stored z, then minres_set_z_sums. 16 bytes a row.
  virtual void reduce_z(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> v, ConstPointer<T> z,
                        T* local) const = 0;
  /// x += x_step w;  r = sine^2 r - x_step v, which is b - A x by Lanczos's relation;  sums over both, then minres_advance. 48
  /// bytes a row.
  virtual void update(Context& context, MinresScalars<T>* scalars, std::int64_t n, ConstPointer<T> v, ConstPointer<T> w,
                      Pointer<T> x, Pointer<T> r, double* history, T* local) const = 0;
  virtual void scalar_step(Context& context, MinresPass pass, MinresScalars<T>* scalars, T const* sums, double* history) const = 0;

  static MinresKernels const& cpu();
  static MinresKernels const& cuda();
};

template <>
MinresKernels<double> const& MinresKernels<double>::cpu();
template <>
MinresKernels<double> const& MinresKernels<double>::cuda();
template <>
MinresKernels<DoubleDouble> const& MinresKernels<DoubleDouble>::cpu();
template <>
MinresKernels<DoubleDouble> const& MinresKernels<DoubleDouble>::cuda();

}  // namespace poisson
