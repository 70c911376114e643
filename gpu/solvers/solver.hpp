#pragma once

#include "gpu/core/host_vector.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/core/names.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/solvers/true_residual.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace poisson {

enum class Method { cg, bicgstab };
template <>
struct Names<Method> {
  static constexpr std::array<Named<Method>, 2> values{{{Method::cg, "cg"}, {Method::bicgstab, "bicgstab"}}};
};
/// Whether the method is for symmetric positive definite matrices and preconditioners only.
[[nodiscard]] constexpr bool needs_symmetry(Method method) {
  return method == Method::cg;
}

[[nodiscard]] constexpr int products_per_iteration(Method method) {
  return method == Method::bicgstab ? 2 : 1;
}

/// Arithmetic of the solver. `refined`: iterations in double, the solution and its residual in double-double. `mixed`: the same as
/// long as that makes progress, then iterations in double-double.
enum class Precision { double_, double_double, refined, mixed };
template <>
struct Names<Precision> {
  static constexpr std::array<Named<Precision>, 4> values{{{Precision::double_, "double"},
                                                           {Precision::double_double, "double_double"},
                                                           {Precision::refined, "refined"},
                                                           {Precision::mixed, "mixed"}}};
};

enum class SolverStatus { converged, max_iterations, stagnated, breakdown, diverged, interrupted };
template <>
struct Names<SolverStatus> {
  static constexpr std::array<Named<SolverStatus>, 6> values{{{SolverStatus::converged, "converged"},
                                                              {SolverStatus::max_iterations, "max_iterations"},
                                                              {SolverStatus::stagnated, "stagnated"},
                                                              {SolverStatus::breakdown, "breakdown"},
                                                              {SolverStatus::diverged, "diverged"},
                                                              {SolverStatus::interrupted, "interrupted"}}};
};

struct SolverOptions {
  Method method = Method::cg;
  Precision precision = Precision::double_;
  PreconditionerKind preconditioner = PreconditionerKind::none;
  double shift = 0;  ///< of ic0 and ilu0: this times the largest entry of its row is added to every diagonal entry first
  Ordering ordering = Ordering::automatic;  ///< of the rows in ic0 and ilu0
  double tolerance = 1e-12;                 ///< on ||b - A x|| / ||b||
  std::int64_t max_iterations = 10000;
  /// The matrix has the constant vector as its null space (pure Neumann): residuals are kept orthogonal to it.
  bool constant_null_space = false;
  /// Called now and then (at least a few times a second, never once per iteration on a device) with the iteration and the
  /// relative residual. The solver also ends, with status `interrupted`, when core/interrupt.hpp asks for it.
  std::function<void(std::int64_t iteration, double relative_residual)> monitor{};
  /// For preconditioners that are made from the entries of the matrix (needs_csr); may be empty with the others.
  CsrProvider csr{};
};

struct SolverResult {
  SolverStatus status{};
  std::string reason;  ///< one sentence for the user when the status is not `converged`
  std::int64_t iterations = 0;
  std::int64_t cycles = 0;          ///< of iterations, each from a residual computed anew from x
  std::int64_t extended_from = -1;  ///< iteration from which `mixed` went on in double-double; -1: it did not
  /// ||r|| / ||b|| of the recursion at the end; of the x that is returned where that is another one, or where rounding has put more
  /// than a little between the two and the run did not stagnate.
  double residual_recursive = 0;
  std::vector<double> history;     ///< relative residual after iteration 0, 1, ...
  double setup_seconds = 0;        ///< of the preconditioner
  Ordering ordering{};             ///< that ic0 or ilu0 took; `automatic` without them
  std::int64_t levels = 0;         ///< of their lower triangle: rows that wait for each other, one after another
  double seconds = 0;              ///< iterations only: no transfer, no conversion, no setup
  double bytes_per_iteration = 0;  ///< compulsory bytes of one iteration, for GB/s
  HostVector<double> x_low;        ///< what x lacks of the solution, for precisions beyond double; else empty
};

/// Solves A x = b from x = 0 on the operator's backend. b and x are host arrays of n_rows entries.
/// `converged` is said when ||b - A x|| / ||b||, computed anew from x in the arithmetic of the solution, is at most twice the
/// tolerance; where the recursion got there and x did not, iterations go on from the residual of x while that makes progress.
/// A run that does not converge returns the iterate with the least ||b - A x|| that is at hand, x = 0 among them; a cg that is
/// stopped early (max_iterations, interrupted) its last one. Zero b gives x = 0, converged after 0 iterations. Throws InputError
/// when b or the matrix has a NaN or an infinity, whose row is named, or when the preconditioner needs entries that options.csr
/// does not provide; EnvironmentError when memory runs out.
[[nodiscard]] SolverResult solve(MultiPrecisionOperator const& a, std::span<double const> b, std::span<double> x,
                                 SolverOptions const& options);

/// Bytes in the backend's memory that `solve` allocates besides the operator: vectors, and the preconditioner; with
/// Ordering::automatic what the multicolor ordering takes.
[[nodiscard]] std::int64_t solver_bytes(std::int64_t n_rows, std::int64_t nnz, SolverOptions const& options);

}  // namespace poisson
