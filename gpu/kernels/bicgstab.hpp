#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/krylov.hpp"

#include <cmath>
#include <cstdint>

namespace poisson {

/// The scalar at which BiCGStab broke down.
enum class BicgstabBreakdown : std::int32_t { none = 0, rho, shadow, omega };

/// The scalars of a BiCGStab run, in the notation of van der Vorst 1992, with r^ the shadow residual; see IterationControl.
template <class T>
struct BicgstabScalars {
  IterationControl control;
  std::int32_t project = 0;  ///< residuals are kept orthogonal to the constant vector
  std::int32_t fresh = 1;    ///< beta = 0 in the next direction: a restart
  BicgstabBreakdown breakdown{};
  std::int32_t unused = 0;
  double shadow_norm = 0;  ///< ||r^||
  T rho = 0;               ///< r^ . r
  T rho_before = 0;
  T alpha = 0, beta = 0, omega = 0;
  T mean_r = 0;  ///< still to be subtracted from the stored r
  T dot = 0;     ///< where product_dot writes; not used
};

template <class T>
struct BicgstabSums {
  T r = 0, rr = 0, shadow_r = 0;  ///< sums of r, r^2, r^ r
  T xx = 0;                       ///< of x^2, added up in double
};

namespace detail {

template <class T>
POISSON_HOST_DEVICE void bicgstab_break_down(BicgstabScalars<T>& s, BicgstabBreakdown where) {
  s.breakdown = where;
  s.control.stop = static_cast<std::int32_t>(CycleState::breakdown);
}

/// Returns ||r||.
template <class T>
POISSON_HOST_DEVICE double bicgstab_set_residual_sums(BicgstabScalars<T>& s, BicgstabSums<T> const& sums) {
  T const n = static_cast<T>(s.control.n);
  s.mean_r = s.project != 0 ? sums.r / n : T(0);
  s.rho = sums.shadow_r;
  s.beta = s.fresh != 0 ? T(0) : s.rho / s.rho_before * (s.alpha / s.omega);
  return norm_of(sums.rr - n * s.mean_r * s.mean_r);
}

/// Breakdown where r^ . r is no larger than the rounding error of its own sum.
template <class T>
POISSON_HOST_DEVICE void bicgstab_check_rho(BicgstabScalars<T>& s) {
  if (s.control.stop == 0 && !(std::abs(rounded(s.rho)) > unit_roundoff<T> * s.shadow_norm * s.control.norm))
    bicgstab_break_down(s, BicgstabBreakdown::rho);
}

}  // namespace detail

/// Before the first iteration of a cycle. A cycle that is not fresh goes on from the directions of the one before.
template <class T>
POISSON_HOST_DEVICE void bicgstab_begin(BicgstabScalars<T>& s, BicgstabSums<T> const& sums, double* history) {
  double const norm = detail::bicgstab_set_residual_sums(s, sums);
  if (s.fresh != 0)
    s.shadow_norm = norm;
  begin_cycle(s.control, norm, history);
  detail::bicgstab_check_rho(s);
}

/// alpha = rho / r^ . v.
template <class T>
POISSON_HOST_DEVICE void bicgstab_set_alpha(BicgstabScalars<T>& s, T shadow_v) {
  s.alpha = s.rho / shadow_v;
  if (!is_finite(rounded(s.alpha)))
    detail::bicgstab_break_down(s, BicgstabBreakdown::shadow);
}

/// omega = t . s / t . t; 0 where t = A s~ is 0, because s is 0 (converged) or A is singular: bicgstab_advance tells which.
template <class T>
POISSON_HOST_DEVICE void bicgstab_set_omega(BicgstabScalars<T>& s, T ts, T tt) {
  s.omega = rounded(tt) == 0 ? T(0) : ts / tt;
}

/// After x and r were updated: the scalars of the next direction, and whether this was the last iteration.
template <class T>
POISSON_HOST_DEVICE void bicgstab_advance(BicgstabScalars<T>& s, BicgstabSums<T> const& sums, double* history) {
  s.fresh = 0;
  s.rho_before = s.rho;
  double const norm = detail::bicgstab_set_residual_sums(s, sums);
  end_iteration(s.control, norm, std::sqrt(rounded(sums.xx)), history);
  if (s.control.stop == 0 && (rounded(s.omega) == 0 || !is_finite(rounded(s.beta))))
    detail::bicgstab_break_down(s, BicgstabBreakdown::omega);
  detail::bicgstab_check_rho(s);
}

/// The passes with sums, in the order of an iteration.
enum class BicgstabPass { begin, shadow_dot, omega_dots, update };
/// Number of sums of a pass. begin and update: the fields of BicgstabSums; shadow_dot: the sum of r^ v; omega_dots: of t s and t^2.
[[nodiscard]] constexpr int n_sums(BicgstabPass pass) {
  return pass == BicgstabPass::shadow_dot ? 1 : pass == BicgstabPass::omega_dots ? 2 : 4;
}

/// The scalar step of a pass, from its sums over all rows.
template <class T>
POISSON_HOST_DEVICE void scalar_step_of(BicgstabPass pass, BicgstabScalars<T>& s, T const* sums, double* history) {
  if (pass == BicgstabPass::begin)
    bicgstab_begin(s, BicgstabSums<T>{sums[0], sums[1], sums[2], sums[3]}, history);
  else if (s.control.stop != 0)
    return;
  else if (pass == BicgstabPass::shadow_dot)
    bicgstab_set_alpha(s, sums[0]);
  else if (pass == BicgstabPass::omega_dots)
    bicgstab_set_omega(s, sums[0], sums[1]);
  else
    bicgstab_advance(s, BicgstabSums<T>{sums[0], sums[1], sums[2], sums[3]}, history);
}

/// The passes over vectors of right-preconditioned BiCGStab, in the arithmetic T; the two products are the operator's, and their
/// dots are not used. p~ = M^-1 p and s~ = M^-1 s; s overwrites r. `inverse_diagonal` is null except with a diagonal
/// preconditioner, and p_tilde and s_tilde are null where the pass does not write them. `local` as in kernels/cg.hpp. Bytes are for
/// T = double; with DoubleDouble vectors take twice as many, the diagonal as many.
template <class T>
class BicgstabKernels {
public:
  virtual ~BicgstabKernels() = default;
  /// When `fresh`, r^ = r first. Sums over r, then bicgstab_begin.
  virtual void begin(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, Pointer<T> shadow,
                     bool fresh, double* history, T* local) const = 0;
  /// p = r + beta (p - omega v), and with a diagonal p~ = D^-1 p. 32 bytes a row, 48 with a diagonal.
  virtual void direction(Context& context, BicgstabScalars<T> const* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> v,
                         Pointer<T> p, double const* inverse_diagonal, Pointer<T> p_tilde) const = 0;
  /// r^ . v, then bicgstab_set_alpha. 16 bytes a row.
  virtual void shadow_dot(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> shadow, ConstPointer<T> v,
                          T* local) const = 0;
  /// s = r - alpha v in place of r, and with a diagonal s~ = D^-1 s. 24 bytes a row, 40 with a diagonal.
  virtual void half_step(Context& context, BicgstabScalars<T> const* scalars, std::int64_t n, ConstPointer<T> v, Pointer<T> r,
                         double const* inverse_diagonal, Pointer<T> s_tilde) const = 0;
  /// t . s and t . t, then bicgstab_set_omega. 16 bytes a row.
  virtual void omega_dots(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> t, ConstPointer<T> s,
                          T* local) const = 0;
  /// x += alpha p~ + omega s~;  r = s - omega t;  sums over r, then bicgstab_advance. s~ may be r, which holds s. 56 bytes a row,
  /// 64 where s~ is another vector.
  virtual void update(Context& context, BicgstabScalars<T>* scalars, std::int64_t n, ConstPointer<T> p_tilde,
                      ConstPointer<T> s_tilde, ConstPointer<T> t, ConstPointer<T> shadow, Pointer<T> x, Pointer<T> r,
                      double* history, T* local) const = 0;
  virtual void scalar_step(Context& context, BicgstabPass pass, BicgstabScalars<T>* scalars, T const* sums,
                           double* history) const = 0;

  static BicgstabKernels const& cpu();
  static BicgstabKernels const& cuda();
};

template <>
BicgstabKernels<double> const& BicgstabKernels<double>::cpu();
template <>
BicgstabKernels<double> const& BicgstabKernels<double>::cuda();
template <>
BicgstabKernels<DoubleDouble> const& BicgstabKernels<DoubleDouble>::cpu();
template <>
BicgstabKernels<DoubleDouble> const& BicgstabKernels<DoubleDouble>::cuda();

}  // namespace poisson
