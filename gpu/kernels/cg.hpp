#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/krylov.hpp"

#include <cmath>
#include <cstdint>

namespace poisson {

/// How z = M^-1 r is known: it is r itself; or D^-1 r, which is not stored; or a vector that Preconditioner::apply has computed.
enum class CgPreconditioner : std::int32_t { none = 0, diagonal, stored };

/// The scalars of a CG run; see IterationControl.
template <class T>
struct CgScalars {
  IterationControl control;
  CgPreconditioner preconditioner{};
  std::int32_t project = 0;       ///< residuals are kept orthogonal to the constant vector
  std::int32_t fresh = 1;         ///< beta = 0 in the next direction: a restart
  std::int32_t broken_at_rz = 0;  ///< a breakdown was seen in r . z, not in p . A p
  T sum_inverse_diagonal = 0;
  T rz = 0;  ///< r . z
  T rz_before = 0;
  T beta = 0;
  T mean_r = 0;     ///< still to be subtracted from the stored r
  T mean_z = 0;     ///< still to be subtracted from z
  T curvature = 0;  ///< at a breakdown: p . A p, or r . z
  T dot = 0;        ///< p . A p of the current iteration, written by the operator
  T x_square = 0;   ///< with several ranks: the sum of `direction`, behind `dot`, so that both are added up at once
  T alpha = 0;      ///< times p still to be added to x
};

/// Sums over r from which r.r, r.z and the means follow, also those after the projection: one pass over r is enough.
template <class T>
struct CgSums {
  T r = 0, rr = 0, dr = 0, drr = 0;  ///< sums of r, r^2, d r, d r^2 with d = 1 / diagonal
};

namespace detail {

template <class T>
POISSON_HOST_DEVICE void cg_set_rz(CgScalars<T>& s, T rz) {
  s.rz = rz;
  s.beta = s.fresh != 0 ? T(0) : rz / s.rz_before;
}

/// Returns ||r||.
template <class T>
POISSON_HOST_DEVICE double cg_set_residual_sums(CgScalars<T>& s, CgSums<T> const& sums) {
  T const n = static_cast<T>(s.control.n);
  s.mean_r = s.project != 0 ? sums.r / n : T(0);
  T const rr = sums.rr - n * s.mean_r * s.mean_r;
  s.mean_z = 0;
  if (s.preconditioner == CgPreconditioner::none)
    cg_set_rz(s, rounded(rr) < 0 ? T(0) : rr);
  else if (s.preconditioner == CgPreconditioner::diagonal) {
    cg_set_rz(s, T(sums.drr - s.mean_r * (T(2) * sums.dr - s.mean_r * s.sum_inverse_diagonal)));
    if (s.project != 0)
      s.mean_z = (sums.dr - s.mean_r * s.sum_inverse_diagonal) / n;
  }
  return norm_of(rr);
}

}  // namespace detail

/// Before the first iteration of a cycle. A cycle that is not fresh goes on from the directions of the one before.
template <class T>
POISSON_HOST_DEVICE void cg_begin(CgScalars<T>& s, CgSums<T> const& sums, double* history) {
  s.alpha = 0;
  begin_cycle(s.control, detail::cg_set_residual_sums(s, sums), history);
}

/// Whether p . A p (or r . z) is not positive or not finite, so that the iteration cannot go on.
template <class T>
POISSON_HOST_DEVICE bool cg_bad_curvature(T dot) {
  return !(rounded(dot) > 0) || !is_finite(rounded(dot));
}

template <class T>
POISSON_HOST_DEVICE void cg_break_down(CgScalars<T>& s, T curvature) {
  s.curvature = curvature;
  if (s.broken_at_rz == 0)
    s.alpha = 0;  // x has all of its steps
  s.control.stop = static_cast<std::int32_t>(CycleState::breakdown);
}

/// After r was updated with alpha: the scalars of the next direction, and whether this was the last iteration. ||x|| is that of the
/// iteration before.
template <class T>
POISSON_HOST_DEVICE void cg_advance(CgScalars<T>& s, T alpha, CgSums<T> const& sums, double* history) {
  s.fresh = 0;
  s.alpha = alpha;
  s.rz_before = s.rz;
  double const norm = detail::cg_set_residual_sums(s, sums);
  end_iteration(s.control, norm, s.control.x_norm, history);
}

/// The scalars that a stored z gives: from its sum and r . z.
template <class T>
POISSON_HOST_DEVICE void cg_set_z_sums(CgScalars<T>& s, T sum_z, T dot) {
  T const rz = dot - s.mean_r * sum_z;
  if (cg_bad_curvature(rz)) {
    s.broken_at_rz = 1;
    cg_break_down(s, rz);
    return;
  }
  s.mean_z = s.project != 0 ? sum_z / static_cast<T>(s.control.n) : T(0);
  detail::cg_set_rz(s, rz);
}

/// The passes with sums, in the order of an iteration.
enum class CgPass { begin, update, reduce_z, direction };
/// Number of sums of a pass. begin: the fields of CgSums and the sum of 1 / diagonal; update: the fields of CgSums; reduce_z: sums
/// of z and r z; direction: of x^2.
[[nodiscard]] constexpr int n_sums(CgPass pass) {
  return pass == CgPass::begin ? 5 : pass == CgPass::update ? 4 : pass == CgPass::reduce_z ? 2 : 1;
}

/// The scalar step of a pass, from its sums over all rows.
template <class T>
POISSON_HOST_DEVICE void scalar_step_of(CgPass pass, CgScalars<T>& s, T const* sums, double* history) {
  bool const stopped = s.control.stop != 0;
  if (pass == CgPass::begin) {
    s.sum_inverse_diagonal = sums[4];
    cg_begin(s, CgSums<T>{sums[0], sums[1], sums[2], sums[3]}, history);
  } else if (pass == CgPass::direction) {
    if (!stopped || rounded(s.alpha) != 0)
      s.control.x_norm = std::sqrt(rounded(sums[0]));
  } else if (!stopped && pass == CgPass::update)
    cg_advance(s, T(s.rz / s.dot), CgSums<T>{sums[0], sums[1], sums[2], sums[3]}, history);
  else if (!stopped)
    cg_set_z_sums(s, sums[0], sums[1]);
}

/// The passes over vectors of CG, in the arithmetic T; the product is the operator's. Vectors have n entries. `direction` updates x
/// with the old p, which it reads anyway; so it must also run after the last iteration, and the next `update` sets alpha to 0.
/// `inverse_diagonal` is null except for CgPreconditioner::diagonal.
///
/// If one rank has all rows, `local` is null and a pass ends with its scalar step. Else a pass leaves its sums over the n rows of
/// this rank in `local`, n_sums(pass) numbers in the backend's memory; the caller adds them up over all ranks (and p . q before
/// `update`), then calls scalar_step, after `direction` at the latest before the next `update`. Bytes are for T = double; with
/// DoubleDouble vectors take twice as many, the diagonal as many.
template <class T>
class CgKernels {
public:
  virtual ~CgKernels() = default;
  /// Sums over r, then cg_begin.
  virtual void begin(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
                     double* history, T* local) const = 0;
  /// alpha = r.z / p.q;  r -= alpha q;  sums over r, then cg_advance. 24 bytes a row, 32 with a diagonal.
  virtual void update(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> q, Pointer<T> r,
                      double const* inverse_diagonal, double* history, T* local) const = 0;
  /// Sums over a stored z, then cg_set_z_sums. 16 bytes a row.
  virtual void reduce_z(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, ConstPointer<T> z,
                        T* local) const = 0;
  /// x += alpha p and ||x||;  p = z + beta p, with `z` if it is not null, else z = D^-1 r or r. 40 bytes a row, 48 with a diagonal.
  virtual void direction(Context& context, CgScalars<T>* scalars, std::int64_t n, ConstPointer<T> r, double const* inverse_diagonal,
                         ConstPointer<T> z, Pointer<T> p, Pointer<T> x, T* local) const = 0;
  virtual void scalar_step(Context& context, CgPass pass, CgScalars<T>* scalars, T const* sums, double* history) const = 0;

  static CgKernels const& cpu();
  static CgKernels const& cuda();
};

template <>
CgKernels<double> const& CgKernels<double>::cpu();
template <>
CgKernels<double> const& CgKernels<double>::cuda();
template <>
CgKernels<DoubleDouble> const& CgKernels<DoubleDouble>::cpu();
template <>
CgKernels<DoubleDouble> const& CgKernels<DoubleDouble>::cuda();

}  // namespace poisson
