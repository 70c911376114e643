#pragma once

#include "app/launch/team.hpp"
#include "app/results/run_log.hpp"
#include "app/run/kept.hpp"
#include "gpu/core/context.hpp"

#include <cstdint>
#include <future>
#include <memory>
#include <optional>

namespace poisson::app {

/// Where a run computes.
class RunDevice {
public:
  /// Chooses the backend, and the device of this rank, and begins to make its context, unless an earlier run has left one in
  /// `kept`, where it stays. Collective. Throws EnvironmentError.
  RunDevice(std::optional<Backend> wanted, Team& team, RunLog& log, Kept& kept);

  [[nodiscard]] Backend backend() const { return backend_; }
  /// Waits until it is there.
  [[nodiscard]] Context& context();
  /// Lets ranks connect their devices beside what follows, if that pays for a system of this size. Collective.
  void connect_ranks(std::int64_t unknowns);

private:
  Team& team_;
  RunLog& log_;
  Backend backend_{};
  std::unique_ptr<Context>* kept_ = nullptr;  ///< the context, or where it will be
  std::string* name_ = nullptr;               ///< of the device, or where it will be
  std::future<std::unique_ptr<Context>> future_context_;
  Context* context_ = nullptr;  ///< null: nobody has asked for it
};

}  // namespace poisson::app
