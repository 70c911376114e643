#pragma once

#include "gpu/core/context.hpp"

#include <algorithm>
#include <cstdint>

namespace poisson {

/// How long an iteration takes on a slow machine of its kind: bytes over a nominal bandwidth, and a few microseconds for every part
/// that waits for another one on a device. An upper estimate, from counts alone: the same on every run.
[[nodiscard]] inline double nominal_seconds(Backend backend, std::int64_t bytes, std::int64_t dependent_steps) {
  constexpr double host_bandwidth = 4e9, device_bandwidth = 1e12, seconds_per_step = 4e-6;
  return backend == Backend::cuda
             ? static_cast<double>(bytes) / device_bandwidth + static_cast<double>(dependent_steps) * seconds_per_step
             : static_cast<double>(bytes) / host_bandwidth;
}

/// How many iterations to enqueue before the host looks again: never more than half of what was done so far, so that little is
/// enqueued in vain, and at most about a tenth of a second's worth, so that monitors and interrupts are served.
class BatchSize {
public:
  BatchSize(std::int64_t largest, double seconds_per_iteration)
      : largest_(std::clamp<std::int64_t>(
            static_cast<std::int64_t>(std::min(0.1 / std::max(seconds_per_iteration, 1e-9), static_cast<double>(largest))), 1,
            largest)) {}

  [[nodiscard]] std::int64_t next(std::int64_t iterations_done) const {
    return std::min(largest_, std::max<std::int64_t>(8, iterations_done / 2));
  }

private:
  std::int64_t largest_;
};

}  // namespace poisson
