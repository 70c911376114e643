#pragma once

#include "app/io/child_process.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace poisson::app {

/// NVIDIA's Multi-Process Service (MPS) for the jobs of a sweep that share a device. Without it a device serves one process at a
/// time and changes between them, so that four jobs take longer than one; with it their kernels run side by side. The service
/// belongs to this object, and ends with it or with this process, however that ends.
class MultiProcessService {
public:
  /// Starts the service in a folder of its own, and waits until devices answer through it: `count_devices` counts them, in a
  /// process of its own. Nothing is started where this process already uses a service of others. Does not throw: see obstacle().
  /// Precondition: that of Worker (app/io/child_process.hpp).
  explicit MultiProcessService(std::function<int()> const& count_devices);
  MultiProcessService(MultiProcessService const&) = delete;
  MultiProcessService& operator=(MultiProcessService const&) = delete;
  /// Precondition: the processes that use it have ended.
  ~MultiProcessService();

  /// Why there is no service; empty where there is.
  [[nodiscard]] std::string const& obstacle() const { return obstacle_; }
  /// What processes have in their environment that are to use it.
  [[nodiscard]] ProcessEnvironment const& environment() const { return environment_; }

private:
  void start(std::string const& program);
  void end();

  std::filesystem::path folder_;
  int channel_ = -1;  ///< when all copies are closed, the service ends
  ProcessEnvironment environment_;
  std::string obstacle_;
};

}  // namespace poisson::app
