#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace poisson::app {

/// Variables that a process has beside those here, or in place of them.
using ProcessEnvironment = std::vector<std::pair<std::string, std::string>>;

/// How a task of a Worker ended.
struct TaskEnd {
  int code = 0;          ///< its exit code
  int signal = 0;        ///< the signal that ended the process; 0: none did
  bool goes_on = false;  ///< the process is there for another task
};

/// A process that does tasks, one after another. It is a copy of this process: what is read, computed and loaded here is there
/// already, and what a task makes there can serve the next one. It has the descriptors of this process, with their locks, and an
/// empty standard input, and gets SIGTERM when this process ends.
class Worker {
public:
  struct Work {
    ProcessEnvironment environment{};
    std::function<int(std::size_t)> task;  ///< does the task with this number; returns its exit code, and does not throw
    std::function<bool(int)> goes_on;      ///< whether the process does another task after one with this exit code
  };

  /// Starts the process. Throws EnvironmentError where none can be made. Precondition: this process has one thread, which has not
  /// used OpenMP, CUDA or MPI: none of them survives there.
  explicit Worker(Work const& work);
  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;
  /// Waits for the end of the task under way, and of the process.
  ~Worker();

  /// Gives the process a task. Returns false where it has ended meanwhile. Precondition: it has none now.
  [[nodiscard]] bool begin(std::size_t task);
  /// How the task has ended, or without a task the process; none where it has not yet.
  [[nodiscard]] std::optional<TaskEnd> ended();
  /// Sends a signal. Has no effect where the process has ended.
  void send(int signal) const noexcept;

  /// Waits until one of the workers has something to tell, a signal comes, or the time is over.
  static void wait_for(std::span<Worker* const> workers, std::chrono::milliseconds longest);

private:
  pid_t process_ = -1;  ///< -1: it has ended, and was waited for
  int channel_ = -1;    ///< -1: its other end is closed
};

/// Sends what this process writes to standard output and standard error into a file from now on, whose content it replaces. Throws
/// EnvironmentError where the file cannot be written.
void write_output_to(std::filesystem::path const& file);

/// What `count` returns, computed in a process of its own, which may use CUDA. Throws EnvironmentError where no process can be
/// made.
[[nodiscard]] int counted_by_child(std::function<int()> const& count);

}  // namespace poisson::app
