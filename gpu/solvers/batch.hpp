#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace poisson {

/// How many iterations to enqueue before the host looks again: about a tenth of a second's worth, so that monitors and
/// interrupts are served, but never much more than half of what was done so far, so that little is enqueued in vain.
class BatchSize {
public:
  explicit BatchSize(std::int64_t largest) : largest_(largest) {}

  [[nodiscard]] std::int64_t next(std::int64_t iterations_done) {
    started_ = std::chrono::steady_clock::now();
    auto const worth = static_cast<std::int64_t>(std::min(0.1 / seconds_per_iteration_, static_cast<double>(largest_)));
    return std::clamp<std::int64_t>(std::min(worth, std::max<std::int64_t>(8, iterations_done / 2)), 1, largest_);
  }
  void took(std::int64_t iterations) {
    std::chrono::duration<double> const elapsed = std::chrono::steady_clock::now() - started_;
    seconds_per_iteration_ = std::max(1e-9, elapsed.count() / static_cast<double>(iterations));
  }

private:
  std::int64_t largest_;
  double seconds_per_iteration_ = 0.1;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace poisson
