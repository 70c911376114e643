#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

namespace poisson {

/// Where a long loop of dense products can be left when an interrupt is requested. Since a host that enqueues is far ahead of its
/// device, it waits for it now and then: seldom enough that the device's short idling does not show.
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
