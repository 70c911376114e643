#pragma once

#include "gpu/core/context.hpp"

#include <functional>

namespace poisson {

/// Seconds of one call, from several samples.
struct Seconds {
  double median = 0;
  double min = 0;
  int samples = 0;
};

/// Times `call`, which may enqueue work on the context's device without waiting for it. A sample is as many calls as make about 20
/// ms, between waits for the device, so that launch and clock do not count. Takes `samples` of them, or of long calls as many as
/// fit into two seconds, but at least 5. Throws Interrupted between samples when an interrupt was requested.
[[nodiscard]] Seconds measure_seconds(Context& context, std::function<void()> const& call, int samples = 15);

/// Bytes per second of a sum over an array far larger than the caches, best of a few; takes well under a second. What products with
/// a matrix, which read far more than they write, are compared with.
[[nodiscard]] double measure_read_bandwidth(Context& context);

}  // namespace poisson
