#pragma once

#include "gpu/core/context.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson {

/// Seconds that the steps of a preconditioner's setup take, added up by name over all levels. The device is waited for after every
/// step, so that a setup takes a little longer with it: for benchmarks.
class SetupSteps {
public:
  void begin() {
    seconds_.clear();
    last_ = Clock::now();
  }
  /// What was done since begin() or the last call is the step `name`.
  void done(Context& context, std::string_view name) {
    context.synchronize();
    Clock::time_point const now = Clock::now();
    double const took = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    for (auto& [known, seconds] : seconds_)
      if (known == name) {
        seconds += took;
        return;
      }
    seconds_.emplace_back(name, took);
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> const& seconds() const { return seconds_; }

private:
  using Clock = std::chrono::steady_clock;
  std::vector<std::pair<std::string, double>> seconds_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace poisson
