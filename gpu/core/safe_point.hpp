#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

namespace poisson {

/// Where a long loop of dense products can be interrupted. The host enqueues work far ahead of a device, and an interrupt would
/// have to wait for all of it; so the host waits for the device now and then, seldom enough that the idle time is negligible.
class SafePoint {
public:
  explicit SafePoint(Context& context) : context_(context) {}

  /// After enqueueing so many floating-point operations. Throws Interrupted.
  void operator()(double flops) {
    enqueued_ += flops;
    if (enqueued_ > flops_between_waits) {  // tens of milliseconds
      context_.synchronize();
      enqueued_ = 0;
    }
    if (interrupt_requested())
      throw Interrupted();
  }

private:
  static constexpr double flops_between_waits = 1e12;

  Context& context_;
  double enqueued_ = 0;
};

}  // namespace poisson
