#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <sys/types.h>

namespace poisson {

/// What a process may take that reads a file by a library which may crash at a damaged one, or keep a machine busy.
struct ReaderLimits {
  std::int64_t bytes = 0;    ///< of memory, beyond what it has as it begins
  std::int64_t seconds = 0;  ///< of a processor; ten times as many pass at most
};

/// Generous limits for a file of this size: 20 seconds and 4 for each MiB; 1 GiB and 100 times the file.
[[nodiscard]] ReaderLimits reader_limits(std::int64_t file_bytes);

/// A process of its own that reads a file and writes what it found to a pipe. It ends with this object, with the process that
/// started it, by the signals that end a program, and at its limits.
class ReaderProcess {
public:
  /// Calls work(descriptor) there, with the end of the pipe that takes the answer. What `work` throws is not passed on, except that
  /// std::bad_alloc counts as the limit of memory. Throws EnvironmentError where there is no process to be had.
  ReaderProcess(std::int64_t file_bytes, ReaderLimits limits, std::function<void(int)> const& work);
  ReaderProcess(ReaderProcess const&) = delete;
  ReaderProcess& operator=(ReaderProcess const&) = delete;
  ~ReaderProcess();

  /// The next n bytes of its answer. False: it ends before. Throws Interrupted.
  [[nodiscard]] bool read(void* data, std::size_t n);
  /// To be called when its answer has ended: what it says of the file that the process ended as it did, "... it is damaged"; empty
  /// when the process ended by itself. Throws EnvironmentError where the file is not to blame, and Interrupted.
  [[nodiscard]] std::string complaint();

private:
  std::int64_t file_bytes_;
  ReaderLimits limits_;
  int descriptor_ = -1;
  pid_t process_ = -1;
};

/// Writes all n bytes to a descriptor; ends the process where nobody reads them any more.
void write_answer(int descriptor, void const* data, std::size_t n);

}  // namespace poisson
