#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/context.hpp"

#include <functional>

namespace poisson {

/// Seconds of one call, from several samples.
struct Seconds {
  double median = 0;
  double min = 0;
  int samples = 0;
};

/// Seconds on the system's monotonic clock.
[[nodiscard]] double monotonic_seconds();

/// Times `call`, which may enqueue work on the context's device without waiting for it. One warm-up call and one or three calls
/// that estimate the time come first. A sample is then the mean of as many calls (1 to 200) as take about 20 ms, between
/// synchronisations of the device, so that the costs of launch and clock are negligible. Takes `samples` of them, or as many as fit
/// into two seconds, but at least min(5, samples). Before every sample it throws Interrupted when an interrupt was requested.
/// Tests pass a `clock` of their own: seconds that never decrease. With `ranks` the call is collective, and so is this function:
/// times are those of the slowest rank, and all throw Interrupted.
[[nodiscard]] Seconds measure_seconds(Context& context, std::function<void()> const& call, int samples = 15,
                                      std::function<double()> const& clock = monotonic_seconds, Communicator& ranks = alone());

/// Bytes per second of a sum over an array far larger than the caches, best of a few; takes well under a second. What products with
/// a matrix, which read far more than they write, are compared with.
[[nodiscard]] double measure_read_bandwidth(Context& context);

}  // namespace poisson
