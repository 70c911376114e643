#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/names.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace poisson {

enum class Method { cg };
template <>
struct Names<Method> {
  static constexpr std::array<Named<Method>, 1> values{{{Method::cg, "cg"}}};
};

enum class PreconditionerKind { none, jacobi };
template <>
struct Names<PreconditionerKind> {
  static constexpr std::array<Named<PreconditionerKind>, 2> values{
      {{PreconditionerKind::none, "none"}, {PreconditionerKind::jacobi, "jacobi"}}};
};

/// Arithmetic of the solver; double_double and refined are to come, and are spelled here when they do.
enum class Precision { double_ };
template <>
struct Names<Precision> {
  static constexpr std::array<Named<Precision>, 1> values{{{Precision::double_, "double"}}};
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
  double tolerance = 1e-12;  ///< on ||b - A x|| / ||b||
  std::int64_t max_iterations = 10000;
  /// The matrix has the constant vector as its null space (pure Neumann): residuals are kept orthogonal to it.
  bool constant_null_space = false;
  /// Called now and then (at least a few times a second, never once per iteration on a device) with the iteration and the
  /// relative residual. The solver also ends, with status `interrupted`, when core/interrupt.hpp asks for it.
  std::function<void(std::int64_t iteration, double relative_residual)> monitor{};
};

struct SolverResult {
  SolverStatus status{};
  std::string reason;  ///< one sentence for the user when the status is not `converged`
  std::int64_t iterations = 0;
  double residual_recursive = 0;   ///< ||r|| / ||b|| of the recursion at the end
  std::vector<double> history;     ///< relative residual after iteration 0, 1, ...
  double seconds = 0;              ///< iterations only: no transfer, no conversion
  double bytes_per_iteration = 0;  ///< compulsory bytes of one iteration, for GB/s
};

/// Solves A x = b from x = 0 on the matrix's backend. b and x are host arrays of n_rows entries.
/// Zero b gives x = 0, converged after 0 iterations.
/// Throws InputError when b or the matrix has a NaN or an infinity (the row is named), EnvironmentError when memory runs out.
[[nodiscard]] SolverResult solve(Matrix const& matrix, std::span<double const> b, std::span<double> x, SolverOptions const& options,
                                 Context& context);

/// Device bytes of the vectors that `solve` allocates besides the matrix.
[[nodiscard]] std::int64_t solver_bytes(std::int64_t n_rows, SolverOptions const& options);

/// ||b - A x|| / ||b|| (||b - A x|| when b = 0), in double-double arithmetic on the host, straight from the assembled matrix:
/// shares no code with the solvers or formats.
[[nodiscard]] double true_residual(CsrMatrix const& matrix, std::span<double const> x, std::span<double const> b);

}  // namespace poisson
