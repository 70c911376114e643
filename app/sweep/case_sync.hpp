#pragma once

#include <chrono>
#include <filesystem>
#include <future>
#include <optional>

/// How the files of a sweep's cases come to disk. What a process has written survives its end, however that comes; only the end of
/// the machine, as by a loss of power, can lose what is not on disk. To bring every file there would take longer than a small case,
/// so jobs do it for all files together, about once a second. Meanwhile a file in the folder of the cases, `.syncing`, tells of the
/// start of the machine, and by its own time when the last of these passes began.
namespace poisson::app {

/// The part of the sweep.
class CasesToDisk {
public:
  /// Before the first case: makes that file, where a sweep that was killed has not left one. If the machine was started since then,
  /// removes the records of cases that may be damaged. Throws EnvironmentError.
  explicit CasesToDisk(std::filesystem::path cases);
  CasesToDisk(CasesToDisk const&) = delete;
  CasesToDisk& operator=(CasesToDisk const&) = delete;
  ~CasesToDisk();
  /// After the last case: brings all to disk, and removes the file. Throws EnvironmentError where anything that was written since
  /// the beginning has not come to disk, no matter by whom; the file then stays.
  void finish();

private:
  std::filesystem::path cases_;
  int descriptor_ = -1;  ///< of the folder, open since before the first case
};

/// Records of cases with this time or a later one are of no use: the machine was started again before they were on disk. None: all
/// records are good.
[[nodiscard]] std::optional<std::filesystem::file_time_type> lost_since(std::filesystem::path const& cases);

/// Brings cases to disk beside the next ones, for a job.
class CaseSync {
public:
  explicit CaseSync(std::filesystem::path cases) : cases_(std::move(cases)) {}
  /// Begins a pass in a thread, if the last one is over, and began a second ago.
  void case_has_ended();

private:
  std::filesystem::path cases_;
  std::future<void> pass_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace poisson::app
