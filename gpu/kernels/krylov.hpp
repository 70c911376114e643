#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/core/host_device.hpp"

#include <cmath>
#include <cstdint>

namespace poisson {

/// How a cycle of iterations stands. A cycle begins with a residual computed from x, and goes on with the residual that the
/// iteration updates.
enum class CycleState : std::int32_t {
  running = 0,
  converged,   ///< ||r|| <= target
  unreliable,  ///< ||r|| is so small beside x that rounding has separated it from b - A x
  breakdown,   ///< a scalar that the iteration divides by
  diverged,
  stagnated,
};

/// The part of their scalars that all solvers share. It lives in the backend's memory and is advanced by the kernels, so that the
/// host enqueues iterations without waiting for any of them; once `stop` is not 0, every kernel leaves everything as it is.
struct IterationControl {
  std::int32_t stop = 0;  ///< a CycleState; first, because kernels of operators look at it through a plain pointer
  std::int32_t history_capacity = 1;
  std::int64_t n = 0;
  std::int64_t iteration = 0;  ///< of the whole run
  std::int64_t best_iteration = 0;
  std::int64_t stagnation_window = 0;
  double b_norm = 1;
  double target = 0;
  double trust = 0;        ///< ||r|| <= trust * ||x|| is unreliable ...
  double trust_below = 0;  ///< ... once it is at most this
  double growth = 0;       ///< a residual that has grown by more than this is beyond recovery
  double first_norm = 0, best_norm = 0;
  double norm = 0;    ///< ||r||
  double x_norm = 0;  ///< ||x||
};

/// a * b + c, fused where T can.
[[nodiscard]] POISSON_HOST_DEVICE inline double multiply_add(double a, double b, double c) {
  return std::fma(a, b, c);
}
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble multiply_add(DoubleDouble a, DoubleDouble b, DoubleDouble c) {
  return a * b + c;
}

/// A number that sizes are judged by: the high part.
[[nodiscard]] POISSON_HOST_DEVICE inline double rounded(double v) {
  return v;
}
[[nodiscard]] POISSON_HOST_DEVICE inline double rounded(DoubleDouble v) {
  return v.hi;
}

[[nodiscard]] POISSON_HOST_DEVICE inline bool is_finite(double v) {
  return v - v == 0;
}

/// ||r|| from r . r; what rounding makes negative is 0.
template <class T>
[[nodiscard]] POISSON_HOST_DEVICE double norm_of(T square) {
  double const s = rounded(square);
  return s < 0 ? 0 : std::sqrt(s);
}

/// Before the first iteration of a cycle, the residual just computed.
POISSON_HOST_DEVICE inline void begin_cycle(IterationControl& c, double norm, double* history) {
  c.norm = c.first_norm = c.best_norm = norm;
  c.best_iteration = c.iteration;
  history[c.iteration % c.history_capacity] = norm / c.b_norm;
  if (norm <= c.target)
    c.stop = static_cast<std::int32_t>(CycleState::converged);
}

/// After x and r were updated: whether this was the last iteration of the cycle.
POISSON_HOST_DEVICE inline void end_iteration(IterationControl& c, double norm, double x_norm, double* history) {
  ++c.iteration;
  c.norm = norm;
  c.x_norm = x_norm;
  history[c.iteration % c.history_capacity] = norm / c.b_norm;
  CycleState state = CycleState::running;
  if (!(norm <= c.growth * c.first_norm))  // NaN as well
    state = CycleState::diverged;
  else if (norm <= c.target)
    state = CycleState::converged;
  else if (norm <= c.trust * x_norm && norm <= c.trust_below)
    state = CycleState::unreliable;
  else if (norm < c.best_norm) {
    c.best_norm = norm;
    c.best_iteration = c.iteration;
  } else if (c.iteration - c.best_iteration >= c.stagnation_window)
    state = CycleState::stagnated;
  if (state != CycleState::running)
    c.stop = static_cast<std::int32_t>(state);
}

}  // namespace poisson
