#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace poisson::app {

/// The folder that a run or a sweep writes to. Files of an earlier run stay untouched until the new ones replace them.
class ResultsDirectory {
public:
  /// `record` is the file that marks a finished run ("result.json", "sweep.json").
  /// Throws InputError when an earlier run is there and `overwrite` is false; EnvironmentError when the folder cannot be made or
  /// written to, found out now and not after the solve.
  ResultsDirectory(std::filesystem::path path, std::string const& record, bool overwrite);
  ResultsDirectory(ResultsDirectory const&) = delete;
  ResultsDirectory& operator=(ResultsDirectory const&) = delete;
  ~ResultsDirectory();  ///< removes the folder again if it was made for this run and nothing was written

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  /// Calls `writer` with the path of a file of this run; the file is listed in `files()` once it is written.
  template <class Writer>
  void write(std::string const& name, Writer&& writer) {
    writer(path_ / name);
    listed(name);
  }
  void listed(std::string const& name);
  [[nodiscard]] std::vector<std::string> const& files() const noexcept { return files_; }
  /// Removes what the overwritten run had listed and this one did not write. Call it when the new record is in place.
  void remove_stale() const;

private:
  std::filesystem::path path_;
  std::vector<std::string> files_;
  std::vector<std::string> earlier_;
  bool created_ = false;
};

}  // namespace poisson::app
