#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/core/host_device.hpp"

#include <cmath>
#include <cstdint>

namespace poisson {

/// The state of a cycle of iterations, which begins with a residual computed from x and then updates it by recursion.
enum class CycleState : std::int32_t {
  running = 0,
  converged,   ///< ||r|| <= target
  unreliable,  ///< ||r|| is so small relative to ||x|| that rounding errors have separated r from b - A x
  breakdown,   ///< a scalar that the iteration divides by is 0, not finite, or has the wrong sign
  diverged,
  stagnated,
};

/// The scalars that all methods share. They are in the backend's memory and the kernels update them, so that the host enqueues
/// iterations without waiting for results; once `stop` is not 0, kernels change nothing.
struct IterationControl {
  std::int32_t stop = 0;  ///< a CycleState; the first member, because operators read it through a plain pointer
  std::int32_t history_capacity = 1;
  std::int64_t n = 0;
  std::int64_t iteration = 0;  ///< of the whole run
  std::int64_t best_iteration = 0;
  std::int64_t stagnation_window = 0;
  double b_norm = 1;
  double target = 0;
  double trust = 0;        ///< r is unreliable if ||r|| <= trust * ||x|| ...
  double trust_below = 0;  ///< ... and ||r|| <= trust_below
  double growth = 0;       ///< diverged if ||r|| exceeds this times first_norm
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

/// v rounded to double.
[[nodiscard]] POISSON_HOST_DEVICE inline double rounded(double v) {
  return v;
}
[[nodiscard]] POISSON_HOST_DEVICE inline double rounded(DoubleDouble v) {
  return v.hi;
}

[[nodiscard]] POISSON_HOST_DEVICE inline bool is_finite(double v) {
  return v - v == 0;
}

/// ||r|| from r . r, which rounding may have made negative: 0 then.
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
