#pragma once

#include "gpu/core/names.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

namespace poisson::app {

enum class Stage { read, device, mesh, assembly, convert, transfer, solve, verify, reconstruct, analysis, output };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::Stage> {
  static constexpr std::array<Named<app::Stage>, 11> values{{{app::Stage::read, "read"},
                                                             {app::Stage::device, "device"},
                                                             {app::Stage::mesh, "mesh"},
                                                             {app::Stage::assembly, "assembly"},
                                                             {app::Stage::convert, "convert"},
                                                             {app::Stage::transfer, "transfer"},
                                                             {app::Stage::solve, "solve"},
                                                             {app::Stage::verify, "verify"},
                                                             {app::Stage::reconstruct, "reconstruct"},
                                                             {app::Stage::analysis, "analysis"},
                                                             {app::Stage::output, "output"}}};
};

namespace poisson::app {

/// Wall-clock seconds of the stages of a run. Stages may be nested: the time of an inner stage does not count for the outer one.
class StageClock {
public:
  /// Calls body() and returns its result; adds its time to the stage, also when it throws.
  template <class Body>
  decltype(auto) time(Stage stage, Body&& body) {
    Running const running(*this, stage);
    return std::forward<Body>(body)();
  }
  /// Moves seconds between stages, for a part of a stage that was measured separately.
  void move(Stage from, Stage to, double seconds) {
    of(from) -= seconds;
    of(to) += seconds;
  }

  [[nodiscard]] double seconds(Stage stage) const { return seconds_[static_cast<std::size_t>(stage)]; }
  /// Since the clock was made.
  [[nodiscard]] double total() const { return between(made_, Clock::now()); }

private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] static double between(Clock::time_point a, Clock::time_point b) {
    return std::chrono::duration<double>(b - a).count();
  }
  [[nodiscard]] double& of(Stage stage) { return seconds_[static_cast<std::size_t>(stage)]; }

  class Running {
  public:
    Running(StageClock& clock, Stage stage) : clock_(clock), outer_(std::exchange(clock.running_, this)), stage_(stage) {
      if (outer_ != nullptr)
        outer_->pause();
    }
    Running(Running const&) = delete;
    Running& operator=(Running const&) = delete;
    ~Running() {
      pause();
      clock_.running_ = outer_;
      if (outer_ != nullptr)
        outer_->since_ = Clock::now();
    }

  private:
    void pause() { clock_.of(stage_) += between(since_, Clock::now()); }

    StageClock& clock_;
    Running* outer_;
    Stage stage_;
    Clock::time_point since_ = Clock::now();
  };

  std::array<double, Names<Stage>::values.size()> seconds_{};
  Running* running_ = nullptr;
  Clock::time_point made_ = Clock::now();
};

}  // namespace poisson::app
