#pragma once

#include "gpu/core/error.hpp"
#include "output/files/directory_lock.hpp"

#include <nlohmann/json.hpp>

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// The folder that a run or a sweep writes to, locked against other runs while it does. Files of an earlier run of this program,
/// known by its record's `files`, stay untouched until new ones replace them; files of anybody else are never replaced.
class ResultsDirectory {
public:
  struct Failure {
    std::string file;    ///< name in the folder
    std::string reason;  ///< the whole message
  };

  /// `record` is the file that marks a finished run ("result.json", "sweep.json"); `names` are all files that may be written, where
  /// a '*' at the end stands for anything. Throws InputError when another run writes there, when an earlier run is there and
  /// `overwrite` is false, or when one of the names is a file that no earlier run has written; EnvironmentError when the folder
  /// cannot be made or written to. All of this is found out now and not after the solve.
  /// With `own` the folder is one that this program made for itself, as those of a sweep's cases: files of these names in it are
  /// ours, whether a record lists them or not.
  ResultsDirectory(std::filesystem::path path, std::string record, std::vector<std::string> names, bool overwrite,
                   bool own = false);
  ResultsDirectory(ResultsDirectory const&) = delete;
  ResultsDirectory& operator=(ResultsDirectory const&) = delete;
  ~ResultsDirectory();  ///< removes the folder again if it was made for this run and nothing was written

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  /// Calls `writer` with the path of a file of this run; the file is listed in `files()` once it is written, in `failures()`
  /// when `writer` throws EnvironmentError, which goes on its way.
  template <class Writer>
  void write(std::string const& name, Writer&& writer) {
    try {
      require_free(name);
      writer(path_ / name);
    } catch (EnvironmentError const& error) {
      failed(name, error.what());
      throw;
    }
    listed(name);
  }
  /// The same, but an EnvironmentError is kept as failure(): the file costs no other. Returns whether it was written.
  template <class Writer>
  bool try_write(std::string const& name, Writer&& writer) {
    try {
      write(name, writer);
      return true;
    } catch (EnvironmentError const&) {
      keep(std::current_exception());
      return false;
    }
  }
  /// Before a stage that writes: when the folder has vanished since, it is made anew; when it cannot be, or cannot be written to
  /// any more, a folder for temporary files takes its place. Either becomes failure(), so that nobody misses where the results are.
  void ensure_writable();
  /// The record, last of all. Where that fails, an earlier run's record, which no longer tells what is here, is removed.
  bool write_record(std::string const& text);

  /// What was written, in order, and the record once it is.
  [[nodiscard]] std::vector<std::string> const& files() const noexcept { return files_; }
  [[nodiscard]] std::vector<Failure> const& failures() const noexcept { return failures_; }
  /// The first error that was kept; null: none.
  [[nodiscard]] std::exception_ptr failure() const noexcept { return failure_; }

private:
  void open(bool overwrite, bool own);
  void require_free(std::string const& name) const;
  void listed(std::string const& name);
  void failed(std::string const& name, std::string const& reason);
  void keep(std::exception_ptr failure);
  /// Removes what the overwritten run had listed and this one did not write.
  void remove_stale() const;
  void watch();

  std::filesystem::path path_;
  std::string record_;
  std::vector<std::string> names_;
  std::vector<std::string> files_;
  std::vector<Failure> failures_;
  std::exception_ptr failure_;
  std::vector<std::string> earlier_;  ///< files here that an earlier run of ours has written
  std::optional<output::DirectoryLock> lock_;
  int descriptor_ = -1;  ///< of the folder, to know it again
  bool created_ = false;
};

/// [{"file": name, "reason": text}]
[[nodiscard]] nlohmann::ordered_json json_of(std::vector<ResultsDirectory::Failure> const& failures);

/// Names in a folder that an earlier run of this program has written there: the `files` of its records, and what a run that was
/// killed was writing. Nothing where there is no such run.
[[nodiscard]] std::vector<std::string> files_of_earlier_run(std::filesystem::path const& folder);

}  // namespace poisson::app
