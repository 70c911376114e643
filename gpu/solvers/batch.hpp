#pragma once

#include "gpu/core/context.hpp"

#include <algorithm>
#include <cstdint>

namespace poisson {

/// An upper estimate of the seconds of an iteration, from its bytes and a nominal, low bandwidth; on a device each of the
/// `dependent_steps` (see Preconditioner) adds a latency. It depends on these counts alone, so every run has the same batches.
[[nodiscard]] inline double nominal_seconds(Backend backend, std::int64_t bytes, std::int64_t dependent_steps) {
  constexpr double host_bandwidth = 4e9, device_bandwidth = 1e12, seconds_per_step = 4e-6;
  return backend == Backend::cuda
             ? static_cast<double>(bytes) / device_bandwidth + static_cast<double>(dependent_steps) * seconds_per_step
             : static_cast<double>(bytes) / host_bandwidth;
}

/// The number of iterations to enqueue before the host looks at the residual again: at most half of the iterations done so far (but
/// 8), so that few are enqueued in vain; at most about 0.1 s, so that monitors and interrupts are served; at most `largest`.
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
