#pragma once

#include "gpu/core/error.hpp"
#include "output/files/directory_lock.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// The directory that a run or a sweep writes to; it is locked against other runs for as long as this object exists. Files of an
/// earlier run of this program, which its record lists in `files`, stay until new ones replace them. Other files are never
/// replaced.
class ResultsDirectory {
public:
  struct Failure {
    std::string file;    ///< name in the folder
    std::string reason;  ///< the whole message
  };

  /// `record` is the name of the record, which marks a finished run ("result.json", "sweep.json"). `names` are all files that may
  /// be written; a '*' at the end of a name matches any text. Throws InputError when another run writes there, when there are
  /// results of an earlier run and `overwrite` is false, or when a file of these names exists that no earlier run has written;
  /// EnvironmentError when the directory cannot be created or written to. So these errors occur before the solve and not after it.
  /// `own`: the program created the directory for itself, as those of a sweep's cases. Files of these names in it may then be
  /// replaced whether a record lists them or not, and something has just been written there, as a case's log.
  ResultsDirectory(std::filesystem::path path, std::string record, std::vector<std::string> names, bool overwrite,
                   bool own = false);
  ResultsDirectory(ResultsDirectory const&) = delete;
  ResultsDirectory& operator=(ResultsDirectory const&) = delete;
  ~ResultsDirectory();  ///< removes the directory if it was created for this run and nothing was written

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  /// Calls `writer` with the path of the file `name`. The file is listed in files() when it is written, and in failures() when
  /// `writer` throws EnvironmentError, which is rethrown.
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
  /// The same, but an EnvironmentError is stored as failure() instead, so that other files can still be written. Returns whether
  /// the file was written.
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
  /// To be called before a stage that writes, which costs nothing right after another one has written. If the directory was removed
  /// meanwhile, creates it again; if that fails, or it is not writable any more, continues in a temporary directory. Both set
  /// failure(), which tells the user where the results are.
  void ensure_writable();
  /// Writes the record, after all other files, and brings the names of all to disk. If that fails, removes the record of an earlier
  /// run, which is no longer valid. Returns whether it was written.
  bool write_record(std::string const& text);

  /// Names of the files that were written, in order, the record included.
  [[nodiscard]] std::vector<std::string> const& files() const noexcept { return files_; }
  [[nodiscard]] std::vector<Failure> const& failures() const noexcept { return failures_; }
  /// The first stored error; null: none.
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
  int descriptor_ = -1;                              ///< of the folder, to know it again
  std::chrono::steady_clock::time_point written_{};  ///< when something was last written there
  bool created_ = false;
};

/// [{"file": name, "reason": text}]
[[nodiscard]] nlohmann::ordered_json json_of(std::vector<ResultsDirectory::Failure> const& failures);

/// Names of the files in a directory that earlier runs of this program wrote: the `files` of their records, and those that a killed
/// run was writing (DirectoryLock). Empty without such a run.
[[nodiscard]] std::vector<std::string> files_of_earlier_run(std::filesystem::path const& folder);

}  // namespace poisson::app
