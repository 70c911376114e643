#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "app/run/exit_code.hpp"
#include "app/run/result_record.hpp"
#include "app/run/run.hpp"
#include "app/run/solution_files.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/formats/matrix.hpp"

#include <exception>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <string>

namespace poisson::app {

/// The first index whose value is not finite; the size when all are.
[[nodiscard]] std::size_t first_not_finite(std::span<double const> values);

/// What every solve shares, wherever its matrix comes from: the results directory, the backend, the record, and the stages from
/// the assembled matrix on.
class Stages {
public:
  /// Throws InputError (results are there already), EnvironmentError (directory, device).
  Stages(RunConfig const& config, RunOptions const& options, Console& console, std::string const& title,
         RunHooks const& hooks = {});

  ResultRecord record;

  /// A line on the console about a stage that is done.
  void tell(Stage stage, std::string const& what) {
    console_.stage(std::string(name_of(stage)), record.clock.seconds(stage), what);
  }

  /// A file that cannot be written costs neither the other files nor the record; the first such error ends the run, after them.
  template <class Write>
  void attempt(Write&& write) {
    directory_.ensure_writable();
    try {
      write(directory_);
    } catch (EnvironmentError const&) {
      keep(std::current_exception());
    } catch (std::bad_alloc const&) {
      keep(std::make_exception_ptr(OutOfMemoryError("out of memory while the results were written")));
    }
  }

  /// All stages; after an interrupt the record tells which of them there were.
  template <class Body>
  void unless_interrupted(Body&& body) {
    try {
      body();
    } catch (Interrupted const&) {
      if (record.result.history.empty())
        record.reason = "interrupted before the solve";
      record.status = SolverStatus::interrupted;
    }
  }

  /// The matrix in the format of the configuration, in the backend's memory.
  void convert(std::shared_ptr<CsrMatrix const> matrix);

  /// The solution of A x = b for the matrix that was converted.
  [[nodiscard]] HostVector<double> solve(std::span<double const> b, bool constant_null_space);

  /// The true residual of x.
  void verify(std::span<double const> b, std::span<double const> x);

  /// The history, and `write_solution(directory)`.
  template <class WriteSolution>
  void output(WriteSolution&& write_solution) {
    record.clock.time(Stage::output, [&] {
      attempt([&](ResultsDirectory& directory) { write_residual_files(record, config_.output.picture, directory); });
      attempt(write_solution);
    });
    tell(Stage::output, directory_.path().string());
  }

  /// What `run(stored matrix, context, directory)` finds in the solution, which is written by now. It returns a failure that is to
  /// end the run when all else is done.
  template <class Run>
  void analysis(Run&& run) {
    try {
      directory_.ensure_writable();
      keep(record.clock.time(Stage::analysis, [&] { return run(*stored_, *context_, directory_); }));
    } catch (Interrupted const&) {
      clear_interrupt();
      record.status = SolverStatus::interrupted;
      record.reason = "interrupted in the analysis; the solution is complete";
    }
    console_.end_progress();
    tell(Stage::analysis, std::to_string(record.analysis.size()) + " of singular values");
  }

  /// The record and the closing table; then throws what an attempt threw.
  [[nodiscard]] ExitCode finish();

private:
  void keep(std::exception_ptr failure) {
    if (!output_error_)
      output_error_ = std::move(failure);
  }
  void measure_bandwidth();
  [[nodiscard]] std::unique_ptr<Matrix> store();

  RunConfig const& config_;
  Console& console_;
  ResultsDirectory directory_;
  std::exception_ptr output_error_;
  std::future<std::unique_ptr<Context>> future_context_;
  std::unique_ptr<Context> context_;
  std::shared_ptr<CsrMatrix const> matrix_;
  std::unique_ptr<Matrix> stored_;
};

}  // namespace poisson::app
