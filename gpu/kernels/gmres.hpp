#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/krylov.hpp"

#include <cmath>
#include <cstdint>

namespace poisson {

/// Iterations after which GMRES restarts: its basis has as many vectors, and one more.
inline constexpr int gmres_restart = 30;

/// The scalars of restarted GMRES with right preconditioning (Saad, Schultz 1986): the least squares problem of one restart, kept
/// triangular by Givens rotations; see IterationControl.
template <class T>
struct GmresScalars {
  IterationControl control;
  std::int32_t project = 0;                           ///< residuals are kept orthogonal to the constant vector
  std::int32_t fresh = 1;                             ///< not used: every cycle begins anew
  std::int32_t halt = 0;                              ///< not 0: iterations change nothing until the next restart, or for good
  std::int32_t idle = 1;                              ///< not 0: x has the steps of all columns
  std::int32_t columns = 0;                           ///< of the least squares problem
  double first_norm = 0;                              ///< ||r|| when the restart began
  double product_norm = 0;                            ///< ||A M^-1 v|| of the newest column
  T mean = 0, scale = 0;                              ///< the next basis vector is (w - mean) scale
  T dot = 0;                                          ///< where product_dot writes; not used
  T step[gmres_restart] = {};                         ///< what the next pass subtracts of every basis vector
  T h[gmres_restart] = {};                            ///< the newest column of Hessenberg's matrix
  T r[gmres_restart * (gmres_restart + 1) / 2] = {};  ///< the triangle, one column after another
  T cosine[gmres_restart] = {}, sine[gmres_restart] = {};
  T g[gmres_restart + 1] = {};  ///< the rotated right-hand side; |g[columns]| = ||b - A x||
  T y[gmres_restart] = {};      ///< coordinates of the steps in the basis
};

/// Sums of a pass: dots with the basis vectors, then these two.
inline constexpr int gmres_sum_of_w = gmres_restart, gmres_sum_of_squares = gmres_restart + 1, gmres_sums = gmres_restart + 2;

namespace detail {

/// The square root of a sum of squares, which rounding may have made negative.
template <class T>
[[nodiscard]] POISSON_HOST_DEVICE T root_of(T square) {
  using std::sqrt;
  return rounded(square) > 0 ? sqrt(square) : T(0);
}

/// A restart from the residual whose sum and sum of squares these are. Returns ||r||.
template <class T>
POISSON_HOST_DEVICE double gmres_start(GmresScalars<T>& s, T sum, T squares) {
  T const n = static_cast<T>(s.control.n);
  s.columns = 0;
  s.idle = 1;
  s.mean = s.project != 0 ? sum / n : T(0);
  s.g[0] = root_of(T(squares - n * s.mean * s.mean));
  s.scale = T(1) / s.g[0];
  return s.first_norm = rounded(s.g[0]);
}

}  // namespace detail

/// Before the first iteration of a cycle. ||x|| is that of the last restart throughout.
template <class T>
POISSON_HOST_DEVICE void gmres_begin(GmresScalars<T>& s, T sum, T squares, double x_square, double* history) {
  s.control.x_norm = std::sqrt(x_square);
  begin_cycle(s.control, detail::gmres_start(s, sum, squares), history);
  s.halt = s.control.stop;
}

/// A pass has found the dots of w with the basis: the next one subtracts as much. Gram and Schmidt's classical method, twice,
/// leaves w orthogonal to rounding (Giraud, Langou, Rozloznik, van den Eshof 2005).
template <class T>
POISSON_HOST_DEVICE void gmres_add_dots(GmresScalars<T>& s, T const* sums, bool first) {
  for (int k = 0; k <= s.columns; ++k) {
    s.step[k] = sums[k];
    s.h[k] = first ? sums[k] : T(s.h[k] + sums[k]);
  }
  if (first)
    s.product_norm = norm_of(sums[gmres_sum_of_squares]);
}

/// The new column is complete: rotates it, and tells ||r||. Where it is not finite it is left out. A restart is full after
/// gmres_restart iterations, or earlier when the recursion has taken so much of its first residual that rounding shows: then r is
/// to be computed from x.
template <class T>
POISSON_HOST_DEVICE void gmres_advance(GmresScalars<T>& s, T sum, T squares, double* history) {
  if (!is_finite(s.product_norm)) {
    end_iteration(s.control, s.product_norm - s.product_norm, s.control.x_norm, history);
    s.halt = s.control.stop;
    return;
  }
  T const n = static_cast<T>(s.control.n);
  int const j = s.columns;
  s.mean = s.project != 0 ? sum / n : T(0);
  T below = detail::root_of(T(squares - n * s.mean * s.mean));
  double const rounding = 8 * unit_roundoff<T> * s.product_norm;
  bool const invariant = rounded(below) <= rounding;  // the Krylov space is complete
  if (invariant)
    below = 0;
  s.scale = T(1) / below;
  T* const column = s.r + j * (j + 1) / 2;
  T last = s.h[0];
  for (int k = 0; k < j; ++k) {
    column[k] = s.cosine[k] * last + s.sine[k] * s.h[k + 1];
    last = s.cosine[k] * s.h[k + 1] - s.sine[k] * last;
  }
  T const length = detail::root_of(T(last * last + below * below));
  if (!(rounded(length) > rounding)) {
    s.control.stop = s.halt = static_cast<std::int32_t>(CycleState::breakdown);
    return;
  }
  column[j] = length;
  s.cosine[j] = last / length;
  s.sine[j] = below / length;
  s.g[j + 1] = T(0) - s.sine[j] * s.g[j];
  s.g[j] = s.cosine[j] * s.g[j];
  s.columns = j + 1;
  s.idle = 0;
  double const norm = std::abs(rounded(s.g[j + 1]));
  end_iteration(s.control, norm, s.control.x_norm, history);
  bool const full = j + 1 == gmres_restart || invariant || norm <= 256 * unit_roundoff<T> * s.first_norm;
  s.halt = s.control.stop != 0 ? s.control.stop : full ? 1 : 0;
}

/// The coordinates of the steps, from the triangle.
template <class T>
POISSON_HOST_DEVICE void gmres_solve(GmresScalars<T>& s) {
  for (int i = s.columns - 1; i >= 0; --i) {
    T sum = s.g[i];
    for (int k = i + 1; k < s.columns; ++k)
      sum = sum - s.r[k * (k + 1) / 2 + i] * s.y[k];
    s.y[i] = sum / s.r[i * (i + 1) / 2 + i];
  }
}

/// x has its steps, and r too: the next restart begins with what r is now, unless the cycle has stopped.
template <class T>
POISSON_HOST_DEVICE void gmres_restart_from(GmresScalars<T>& s, T sum, T squares, double x_square) {
  s.control.x_norm = std::sqrt(x_square);
  double const norm = detail::gmres_start(s, sum, squares);
  if (s.control.stop != 0)
    return;
  IterationControl& c = s.control;
  c.norm = norm;
  CycleState const state = !(norm <= c.growth * c.first_norm)                    ? CycleState::diverged
                           : norm <= c.target                                    ? CycleState::converged
                           : norm <= c.trust * c.x_norm && norm <= c.trust_below ? CycleState::unreliable
                                                                                 : CycleState::running;
  s.halt = c.stop = static_cast<std::int32_t>(state);
}

/// The passes with sums, or scalar steps, in the order of an iteration; then those of the end of a restart. `finish`: of x only.
enum class GmresPass { begin, dots, second_dots, norm, solve, restart, finish };
/// Number of sums of a pass. begin and restart: of r, r^2, x^2; dots: gmres_sums; norm: of w and w^2; solve: none; finish: of x^2.
[[nodiscard]] constexpr int n_sums(GmresPass pass) {
  switch (pass) {
  case GmresPass::dots:
  case GmresPass::second_dots:
    return gmres_sums;
  case GmresPass::solve:
    return 0;
  case GmresPass::begin:
  case GmresPass::restart:
    return 3;
  case GmresPass::finish:
    return 1;
  default:
    return 2;
  }
}

/// The scalar step of a pass, from its sums over all rows.
template <class T>
POISSON_HOST_DEVICE void scalar_step_of(GmresPass pass, GmresScalars<T>& s, T const* sums, double* history) {
  switch (pass) {
  case GmresPass::begin:
    gmres_begin(s, sums[0], sums[1], rounded(sums[2]), history);
    break;
  case GmresPass::solve:
    if (s.idle == 0)
      gmres_solve(s);
    break;
  case GmresPass::restart:
    if (s.idle == 0)
      gmres_restart_from(s, sums[0], sums[1], rounded(sums[2]));
    break;
  case GmresPass::finish:
    if (s.idle == 0) {
      s.control.x_norm = std::sqrt(rounded(sums[0]));
      s.columns = 0;
      s.idle = 1;
    }
    break;
  case GmresPass::norm:
    if (s.halt == 0)
      gmres_advance(s, sums[0], sums[1], history);
    break;
  default:
    if (s.halt == 0)
      gmres_add_dots(s, sums, pass == GmresPass::dots);
  }
}

/// The passes over vectors of GMRES, in the arithmetic T; products are the operator's, and their dots are not used. `basis` holds
/// vectors of n entries one behind another, of which `count` are read; w is the newest one. `local` as in kernels/cg.hpp. Passes of
/// an iteration change nothing where `halt` is set, and those of the end of a restart where `idle` is. Bytes are for T = double;
/// with DoubleDouble vectors take twice as many, the diagonal as many.
template <class T>
class GmresKernels {
public:
  virtual ~GmresKernels() = default;
  /// Sums over r and x, then gmres_begin.
  virtual void begin(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> x,
                     double* history, T* local) const = 0;
  /// v = (w - mean) scale, where v may be w, and with a diagonal z = D^-1 v. 16 bytes a row, 32 with a diagonal.
  virtual void normalise(Context& context, GmresScalars<T> const* scalars, std::int64_t n, ConstPointer<T> w, Pointer<T> v,
                         double const* inverse_diagonal, Pointer<T> z) const = 0;
  /// The dots of w with `count` basis vectors, and w^2: 8 count + 8 bytes a row. `second`: subtracts what the dots have found, then
  /// does it again: 8 count + 16, because a row's numbers are still in the cache.
  virtual void dots(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> basis, int count, Pointer<T> w,
                    bool second, T* local) const = 0;
  /// Subtracts what the second dots have found; sums over w, then gmres_advance. 8 count + 16 bytes a row.
  virtual void norm(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> basis, int count, Pointer<T> w,
                    double* history, T* local) const = 0;
  /// t = the sum of y_k v_k over the columns at hand, or D^-1 of that with a diagonal. 8 columns + 8 bytes a row.
  virtual void combine(Context& context, GmresScalars<T> const* scalars, std::int64_t n, ConstPointer<T> basis,
                       double const* inverse_diagonal, Pointer<T> t) const = 0;
  /// x += z;  r -= q, with q = A z, then gmres_restart_from. 48 bytes a row. Unless it `restarts`: x only, and q is not read.
  virtual void update(Context& context, GmresScalars<T>* scalars, std::int64_t n, ConstPointer<T> z, ConstPointer<T> q,
                      bool restarts, Pointer<T> x, Pointer<T> r, double* history, T* local) const = 0;
  virtual void scalar_step(Context& context, GmresPass pass, GmresScalars<T>* scalars, T const* sums, double* history) const = 0;

  static GmresKernels const& cpu();
  static GmresKernels const& cuda();
};

template <>
GmresKernels<double> const& GmresKernels<double>::cpu();
template <>
GmresKernels<double> const& GmresKernels<double>::cuda();
template <>
GmresKernels<DoubleDouble> const& GmresKernels<DoubleDouble>::cpu();
template <>
GmresKernels<DoubleDouble> const& GmresKernels<DoubleDouble>::cuda();

}  // namespace poisson
