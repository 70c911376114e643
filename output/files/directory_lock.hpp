#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace poisson::output {

/// Lets one process at a time write to a directory. The process holds a lock (flock) on the file `.poisson.lock` there, which the
/// kernel releases when the process and its children have ended, also when they are killed. The file names the holder and the files
/// that it writes, so that incomplete results of a killed process are known. Where the file system has no locks, or the file cannot
/// be created, there is no lock and no error.
class DirectoryLock {
public:
  static constexpr char const* file_name = ".poisson.lock";

  /// Tries to take the lock, without waiting. Only if the holder was a process of this machine that has ended, while its children
  /// still hold the lock, it waits for them, at most 30 s.
  explicit DirectoryLock(std::filesystem::path const& directory);
  DirectoryLock(DirectoryLock const&) = delete;
  DirectoryLock& operator=(DirectoryLock const&) = delete;
  ~DirectoryLock();  ///< without release() the file stays, and still lists the files that were being written

  /// The process that holds the lock instead: "process 12 on HOST since 2026-01-31 12:00:00 +0000"; empty: none.
  [[nodiscard]] std::string const& holder() const noexcept { return holder_; }
  /// The files that an earlier holder announced without a later release().
  [[nodiscard]] std::vector<std::string> const& left_over() const noexcept { return left_over_; }
  /// Whether this object holds the lock; false also where there are no locks.
  [[nodiscard]] bool held() const noexcept { return held_; }

  /// Writes the holder and the names of the files that it is going to write into the lock file. A full disk is no error.
  void announce(std::vector<std::string> const& names) noexcept;
  /// Removes the lock file and releases the lock; for when all files are complete.
  void release() noexcept;

private:
  std::filesystem::path path_;
  std::string holder_;
  std::vector<std::string> left_over_;
  int descriptor_ = -1;
  bool held_ = false;
};

/// The process that writes to the directory now, as DirectoryLock::holder(); empty: none, as far as the file system tells.
[[nodiscard]] std::string writer_of(std::filesystem::path const& directory);

}  // namespace poisson::output
