#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace poisson::app {

/// A process that is a copy of this one: what is read, computed and loaded here is there already.
struct ChildProcess {
  std::filesystem::path log;  ///< takes what it writes to standard output and standard error; replaced
  std::vector<std::pair<std::string, std::string>> environment{};  ///< variables beside those of this process, or in place of them
  std::function<int()> body;                                       ///< what it does; returns its exit code, and does not throw
};

/// Starts the process, and returns its number; the caller has to wait for it. It gets SIGTERM when this process ends, and has its
/// descriptors, with their locks; standard input is empty. Throws EnvironmentError where no process can be made. Precondition: this
/// process has one thread, which has not used OpenMP, CUDA or MPI: none of them survives there.
[[nodiscard]] pid_t start(ChildProcess const& child);

/// What `count` returns, computed in a process of its own, which may use CUDA. Throws EnvironmentError where no process can be
/// made.
[[nodiscard]] int counted_by_child(std::function<int()> const& count);

}  // namespace poisson::app
