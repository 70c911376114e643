#pragma once

#include <cmath>
#include <cstdint>

namespace poisson {

/// The classical bound on conjugate gradients in exact arithmetic: with M the preconditioner and k the condition of M^-1 A,
///   || e_i ||_A <= 2 q^i || e_0 ||_A,   q = (sqrt k - 1) / (sqrt k + 1),
/// (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 2003, eq. 6.128). || r ||^2 / || e ||_A^2 lies between the extreme
/// eigenvalues of A, so that || r_i || / || r_0 || <= 2 sqrt(condition of A) q^i.
struct CgBound {
  double factor = 0;  ///< 2 sqrt(condition of A)
  double rate = 0;    ///< q

  /// The bound on the relative residual after i >= 0 iterations.
  [[nodiscard]] double residual(std::int64_t i) const { return factor * std::pow(rate, static_cast<double>(i)); }
  /// The number of iterations after which the bound is at most `tolerance` > 0.
  [[nodiscard]] std::int64_t iterations(double tolerance) const {
    return rate > 0 ? static_cast<std::int64_t>(std::ceil(std::log(tolerance / factor) / std::log(rate))) : 1;
  }
};

/// Returns the bound for the 2-norm condition of A and the condition of M^-1 A. Precondition: both are at least 1.
[[nodiscard]] inline CgBound cg_bound(double condition, double preconditioned_condition) {
  double const root = std::sqrt(preconditioned_condition);
  return {2 * std::sqrt(condition), (root - 1) / (root + 1)};
}

}  // namespace poisson
