#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace poisson::output {

/// One process at a time writes to a directory: it holds a lock (flock) on the file `.poisson.lock` there, which the system
/// releases when the process ends, however that happens. The file says who holds it and which files are being written, so that the
/// files of a process that was killed are known. Where locks or the file cannot be had (some network file systems) there is
/// no lock, and no error.
class DirectoryLock {
public:
  static constexpr char const* file_name = ".poisson.lock";

  /// Tries to take the lock. When its holder on this machine has ended and only its children still work, waits some seconds for
  /// them.
  explicit DirectoryLock(std::filesystem::path const& directory);
  DirectoryLock(DirectoryLock const&) = delete;
  DirectoryLock& operator=(DirectoryLock const&) = delete;
  ~DirectoryLock();  ///< without release() the file stays, and says which files were being written

  /// Who has the lock instead: "process 12 on HOST since 2026-01-31 12:00:00 +0000"; empty: nobody else.
  [[nodiscard]] std::string const& holder() const noexcept { return holder_; }
  /// What an earlier holder announced and did not release.
  [[nodiscard]] std::vector<std::string> const& left_over() const noexcept { return left_over_; }
  /// Whether the lock is held; false also where there are no locks.
  [[nodiscard]] bool held() const noexcept { return held_; }

  /// Writes who holds the lock, and the names of files that it is going to write. A disk that is full is no error.
  void announce(std::vector<std::string> const& names) noexcept;
  /// Removes the file, when all is written.
  void release() noexcept;

private:
  std::filesystem::path path_;
  std::string holder_;
  std::vector<std::string> left_over_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace poisson::output
