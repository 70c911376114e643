#pragma once

#include "app/config/config.hpp"
#include "app/io/results_directory.hpp"
#include "app/launch/exit_code.hpp"
#include "app/launch/run_options.hpp"
#include "app/launch/team.hpp"
#include "app/results/run_log.hpp"
#include "app/results/solution_fields.hpp"
#include "gpu/core/error.hpp"

#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// The results of a run or a solve: the directory, which the first rank has, and what went wrong with its files. All ranks call the
/// functions alike.
class Results {
public:
  /// `names`: the files that may be written besides the record, the configuration, the convergence history, the page and analyses;
  /// as ResultsDirectory takes them. `writers`: the ranks that call attempt_together, output and analysis: those of `internal`, or
  /// the first one alone. Collective. Throws InputError (there are results already), EnvironmentError.
  Results(RunConfig const& config, RunOptions const& options, InternalRunOptions const& internal, std::vector<std::string> names,
          Team& writers);

  /// Calls write(), which is collective and throws the same on all ranks. An EnvironmentError is stored, so that the other files
  /// and the record are still written; finish() throws the first one.
  template <class Write>
  void attempt_together(Write&& write) {
    try {
      write();
    } catch (EnvironmentError const&) {
      if (!writers_.agreed())
        throw;
      writers_.caught();
      keep(std::current_exception());
    } catch (std::bad_alloc const&) {
      if (!writers_.agreed())
        throw;
      keep_lack_of_memory();
    }
  }

  /// Calls write(results directory) on the first rank alone. Errors are stored likewise.
  template <class Write>
  void attempt(Write&& write) {
    if (!directory_)
      return;
    directory_->ensure_writable();
    try {
      write(*directory_);
    } catch (EnvironmentError const&) {
      keep(std::current_exception());
    } catch (std::bad_alloc const&) {
      keep_lack_of_memory();
    }
  }

  /// Writes the convergence history, calls make(folder of the results), which is collective, and write(directory) on the first
  /// rank. An interrupt of make() is noted in the record. Plots come after the solution: a library that draws may end the program
  /// where memory is short.
  template <class Make, class Write>
  void output(RunLog& log, Make&& make, Write&& write) {
    log.record.clock.time(Stage::output, [&] {
      attempt([&](ResultsDirectory& directory) { write_residuals(log.record, directory); });
      log.unless_interrupted("after the solve", [&] { attempt_together([&] { make(path_of(writers_)); }); });
      attempt([&](ResultsDirectory& directory) { plot_residuals(log.record, config_.output, directory); });
      attempt(write);
    });
    log.report(Stage::output, directory_ ? directory_->path().string() : "");
  }

  /// Calls run(directory), the analyses, after the solution was written; on ranks but the first the directory is null. It returns
  /// the first failure (or null), which finish() throws, and throws Interrupted on all ranks or none.
  template <class Run>
  void analysis(RunLog& log, Run&& run) {
    log.unless_interrupted("in the analysis", [&] {
      if (directory_)
        directory_->ensure_writable();
      keep(log.record.clock.time(Stage::analysis, [&] { return run(directory_ ? &*directory_ : nullptr); }));
    });
    log.console.end_progress();
    log.report(Stage::analysis, std::to_string(log.record.analysis.size()) + " of singular values");
  }

  /// The path of the directory, on every rank. Collective.
  [[nodiscard]] std::filesystem::path shared_path() { return path_of(team_); }

  /// Writes the record and prints the table of results. Then throws the first stored error, or returns the exit code: the same on
  /// all ranks. Collective.
  [[nodiscard]] ExitCode finish(RunLog& log);

private:
  void keep(std::exception_ptr failure) {
    if (!failure_)
      failure_ = std::move(failure);
  }
  void keep_lack_of_memory() { keep(std::make_exception_ptr(OutOfMemoryError("out of memory while the results were written"))); }
  [[nodiscard]] std::filesystem::path path_of(Team& team);
  void gather_figures(ResultRecord& record) const;
  [[nodiscard]] ExitCode finish_on_first(RunLog& log);

  RunConfig const& config_;
  Team &team_, &writers_;
  std::optional<ResultsDirectory> directory_;  ///< of the first rank
  std::exception_ptr failure_;
};

/// Writes the configuration, as it was given and with every key, beside the results.
void write_configuration(Configuration const& configuration, Results& results);

}  // namespace poisson::app
