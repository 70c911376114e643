#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"

#include <cmath>
#include <cstdint>

namespace poisson {

enum class CgState : std::int32_t { running = 0, converged, breakdown, diverged, stagnated };

/// The scalars of a CG run. They live in the backend's memory and are advanced by the kernels, so that the host enqueues
/// iterations without waiting for any of them; once `state` is not `running`, every kernel leaves everything as it is.
template <class T>
struct CgScalars {
  std::int32_t stop = 0;  ///< a CgState; first, because kernels of operators look at it through a plain pointer
  std::int32_t jacobi = 0;
  std::int32_t project = 0;  ///< residuals are kept orthogonal to the constant vector
  std::int32_t history_capacity = 1;
  std::int64_t n = 0;
  std::int64_t stagnation_window = 0;
  T b_norm = 0;
  T tolerance = 0;
  T sum_inverse_diagonal = 0;

  std::int64_t iteration = 0;
  std::int64_t best_iteration = 0;
  T first_rr = 0, best_rr = 0;
  T rr = 0;  ///< r . r
  T rz = 0;  ///< r . z
  T beta = 0;
  T mean_r = 0;     ///< still to be subtracted from the stored r
  T mean_z = 0;     ///< still to be subtracted from D^-1 r
  T curvature = 0;  ///< p . A p that ended the run
  T dot = 0;        ///< p . A p of the current iteration, written by the operator
};

/// What one pass over r adds up: all that r.r, r.z and the means need after the projection, so that one pass is enough.
template <class T>
struct CgSums {
  T r = 0, rr = 0, dr = 0, drr = 0;  ///< sums of r, r^2, d r, d r^2 with d = 1 / diagonal
};

namespace detail {

template <class T>
POISSON_HOST_DEVICE void cg_take_sums(CgScalars<T>& s, CgSums<T> const& sums) {
  T const n = static_cast<T>(s.n);
  s.mean_r = s.project ? sums.r / n : T(0);
  T const rr = sums.rr - n * s.mean_r * s.mean_r;
  s.rr = rr < T(0) ? T(0) : rr;
  s.rz = s.jacobi ? sums.drr - s.mean_r * (2 * sums.dr - s.mean_r * s.sum_inverse_diagonal) : s.rr;
  s.mean_z = s.project && s.jacobi ? (sums.dr - s.mean_r * s.sum_inverse_diagonal) / n : T(0);
}

template <class T>
POISSON_HOST_DEVICE bool cg_converged(CgScalars<T> const& s) {
  return std::sqrt(s.rr) <= s.tolerance * s.b_norm;
}

}  // namespace detail

/// Before the first iteration.
template <class T>
POISSON_HOST_DEVICE void cg_begin(CgScalars<T>& s, CgSums<T> const& sums, T* history) {
  detail::cg_take_sums(s, sums);
  s.first_rr = s.best_rr = s.rr;
  s.beta = 0;
  history[0] = std::sqrt(s.rr) / s.b_norm;
  if (detail::cg_converged(s))
    s.stop = static_cast<std::int32_t>(CgState::converged);
}

/// A curvature with which the iteration cannot go on.
template <class T>
POISSON_HOST_DEVICE bool cg_bad_curvature(T dot) {
  return !(dot > T(0)) || !(dot < T(INFINITY));
}

/// After x and r were updated: the scalars of the next direction, and whether this was the last iteration.
template <class T>
POISSON_HOST_DEVICE void cg_advance(CgScalars<T>& s, CgSums<T> const& sums, T* history) {
  T const rz_before = s.rz;
  detail::cg_take_sums(s, sums);
  s.beta = s.rz / rz_before;
  ++s.iteration;
  history[s.iteration % s.history_capacity] = std::sqrt(s.rr) / s.b_norm;
  // A residual 1e5 times the first; squares are compared. The negated form catches NaN as well.
  if (!(s.rr <= T(1e10) * s.first_rr))
    s.stop = static_cast<std::int32_t>(CgState::diverged);
  else if (detail::cg_converged(s))
    s.stop = static_cast<std::int32_t>(CgState::converged);
  else if (s.rr < s.best_rr) {
    s.best_rr = s.rr;
    s.best_iteration = s.iteration;
  } else if (s.iteration - s.best_iteration >= s.stagnation_window)
    s.stop = static_cast<std::int32_t>(CgState::stagnated);
}

/// The passes of CG besides the product. `inverse_diagonal` is null without Jacobi; z = D^-1 r is never stored.
template <class T>
class CgKernels {
public:
  virtual ~CgKernels() = default;
  /// Sums over r, then cg_begin.
  virtual void begin(Context& context, CgScalars<T>* scalars, std::int64_t n, T const* r, T const* inverse_diagonal,
                     T* history) const = 0;
  /// alpha = r.z / p.q;  x += alpha p;  r -= alpha q;  sums over r, then cg_advance. 48 bytes a row in double, 56 with Jacobi.
  virtual void update(Context& context, CgScalars<T>* scalars, std::int64_t n, T const* p, T const* q, T* x, T* r,
                      T const* inverse_diagonal, T* history) const = 0;
  /// p = z + beta p. 24 bytes a row in double, 32 with Jacobi.
  virtual void direction(Context& context, CgScalars<T> const* scalars, std::int64_t n, T const* r, T const* inverse_diagonal,
                         T* p) const = 0;

  static CgKernels const& host();
  static CgKernels const& cuda();
};

template <>
CgKernels<double> const& CgKernels<double>::host();
template <>
CgKernels<double> const& CgKernels<double>::cuda();

}  // namespace poisson
