#include "gpu/solvers/cg.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/cg.hpp"
#include "gpu/kernels/vectors.hpp"
#include "gpu/solvers/batch.hpp"
#include "gpu/solvers/right_hand_side.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <sstream>

namespace poisson {

namespace {

/// The recursive residual drifts away from b - A x by rounding: about eps ||A|| ||x|| / ||b|| at the end, more than 1e-12 on fine
/// meshes. A recursion that is further below the real residual than this factor has stopped telling the truth.
constexpr double tolerated_drift = 100;

/// Convergence is not monotone in this norm, and ill-conditioned systems stand still for long: the window is generous.
std::int64_t stagnation_window(std::int64_t n) {
  return std::min<std::int64_t>(5000, 1000 + n);
}

std::string number(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

/// Row of the first entry that is not positive, or -1.
template <class T>
std::int64_t first_not_positive(Array<T> const& diagonal) {
  HostVector<T> host(static_cast<std::size_t>(diagonal.size()));
  diagonal.download(host);
  for (std::int64_t i = 0; i < diagonal.size(); ++i)
    if (!(host[i] > T(0)))
      return i;
  return -1;
}

}  // namespace

template <class T>
SolverResult cg(Operator<T> const& a, std::span<double const> b, std::span<double> x_out, SolverOptions const& options,
                Context& context) {
  using Clock = std::chrono::steady_clock;
  std::int64_t const n = a.n_rows();
  bool const jacobi = options.preconditioner == PreconditionerKind::jacobi;
  auto const& kernels = kernels_for<CgKernels<T>>(context);
  auto const& vectors = kernels_for<VectorKernels<T>>(context);
  constexpr std::int64_t history_capacity = 1024;

  SolverResult result;
  result.bytes_per_iteration = static_cast<double>(a.bytes_per_product() + std::int64_t{sizeof(T)} * n * (jacobi ? 11 : 9));
  require_memory(context, solver_bytes(n, options), "the solver's vectors",
                 "use a format that takes less, a coarser mesh, or the cpu backend");

  Array<T> inverse_diagonal;
  if (jacobi) {
    inverse_diagonal = Array<T>(context, n);
    a.diagonal(inverse_diagonal.data());
    if (std::int64_t const row = first_not_positive(inverse_diagonal); row >= 0) {
      result.status = SolverStatus::breakdown;
      T value{};
      context.download(&value, inverse_diagonal.data() + row, sizeof(T));
      result.reason =
          "the jacobi preconditioner needs a positive diagonal, and row " + std::to_string(row) + " has " + number(value);
      result.residual_recursive = 1;
      result.history = {1};
      std::fill(x_out.begin(), x_out.end(), 0.0);
      return result;
    }
    vectors.invert(context, n, inverse_diagonal.data());
  }
  T const* const d = inverse_diagonal.data();

  RightHandSide<T> const rhs(b, options.constant_null_space);
  Array<T> x(context, n), p(context, n), q(context, n), r(context, std::span<T const>(rhs.values));
  x.set_zero();
  p.set_zero();

  CgScalars<T> scalars;
  scalars.jacobi = jacobi;
  scalars.project = options.constant_null_space;
  scalars.history_capacity = static_cast<std::int32_t>(history_capacity);
  scalars.n = n;
  scalars.stagnation_window = stagnation_window(n);
  scalars.b_norm = rhs.norm;
  scalars.tolerance = options.tolerance;
  Array<CgScalars<T>> device_scalars(context, std::span<CgScalars<T> const>(&scalars, 1));
  Array<T> history(context, history_capacity);
  history.set_zero();  // it is always downloaded whole
  CgScalars<T>* const s = device_scalars.data();
  std::vector<T> recent(history_capacity);

  auto const start = Clock::now();
  kernels.begin(context, s, n, r.data(), d, history.data());
  kernels.direction(context, s, n, r.data(), d, p.data());
  device_scalars.download(std::span(&scalars, 1));
  history.download(recent);
  result.history.push_back(recent[0]);

  // Iterations are enqueued in batches; after each, the host looks at what happened. Where the state stops in the middle of a
  // batch, the rest of it changes nothing.
  BatchSize batch(history_capacity);
  bool interrupted = false;
  while (scalars.stop == 0 && scalars.iteration < options.max_iterations) {
    if ((interrupted = interrupt_requested()))
      break;
    std::int64_t const before = scalars.iteration;
    std::int64_t const count = std::min(batch.next(before), options.max_iterations - before);
    for (std::int64_t i = 0; i < count; ++i) {
      a.product_dot(p.data(), q.data(), &s->dot, &s->stop);
      kernels.update(context, s, n, p.data(), q.data(), x.data(), r.data(), d, history.data());
      kernels.direction(context, s, n, r.data(), d, p.data());
    }
    device_scalars.download(std::span(&scalars, 1));
    history.download(recent);
    for (std::int64_t i = before + 1; i <= scalars.iteration; ++i)
      result.history.push_back(recent[i % history_capacity]);
    batch.took(count);
    if (options.monitor)
      options.monitor(scalars.iteration, result.history.back());
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.iterations = scalars.iteration;
  result.residual_recursive = result.history.back();

  std::string const reached = "after " + std::to_string(result.iterations) + " iterations, with a relative residual of " +
                              number(result.residual_recursive);
  switch (static_cast<CgState>(scalars.stop)) {
  case CgState::converged: {
    result.status = SolverStatus::converged;
    r.upload(rhs.values);
    a.product(T(1), x.data(), T(0), q.data());
    vectors.distance_squared(context, n, r.data(), q.data(), &s->dot);
    device_scalars.download(std::span(&scalars, 1));
    double const residual = static_cast<double>(std::sqrt(scalars.dot) / rhs.norm);
    if (!(residual <= tolerated_drift * options.tolerance)) {
      result.status = SolverStatus::stagnated;
      result.reason = "the recursive residual fell to " + number(result.residual_recursive) +
                      ", but ||b - A x|| / ||b|| stands at " + number(residual) + ": " + std::string(name_of(options.precision)) +
                      " precision reaches no further for this system; ask for a tolerance above that";
    }
    break;
  }
  case CgState::breakdown:
    result.status = SolverStatus::breakdown;
    result.reason = "the matrix is not positive definite: curvature " + number(scalars.curvature) + " at iteration " +
                    std::to_string(result.iterations + 1);
    break;
  case CgState::diverged:
    result.status = SolverStatus::diverged;
    result.reason = "the residual grew beyond 1e5 times its first value or is no number, " + reached +
                    "; the matrix may be unsymmetric or indefinite";
    break;
  case CgState::stagnated:
    result.status = SolverStatus::stagnated;
    result.reason = "no smaller residual in " + std::to_string(stagnation_window(n)) + " iterations; stopped " + reached +
                    "; the system may be inconsistent, or the tolerance below what " + std::string(name_of(options.precision)) +
                    " precision reaches";
    break;
  case CgState::running:
    result.status = interrupted ? SolverStatus::interrupted : SolverStatus::max_iterations;
    result.reason = interrupted ? "interrupted " + reached
                                : "the tolerance " + number(options.tolerance) + " was not reached: stopped " + reached;
    break;
  }

  HostVector<T> solution(static_cast<std::size_t>(n));
  x.download(solution);
  rhs.take_back(solution, x_out);
  return result;
}

std::int64_t solver_bytes(std::int64_t n_rows, SolverOptions const& options) {
  std::int64_t const vectors = options.preconditioner == PreconditionerKind::jacobi ? 5 : 4;
  return vectors * n_rows * std::int64_t{sizeof(double)};
}

template SolverResult cg<double>(Operator<double> const&, std::span<double const>, std::span<double>, SolverOptions const&,
                                 Context&);

}  // namespace poisson
