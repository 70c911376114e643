#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "app/run/exit_code.hpp"
#include "app/run/rank_team.hpp"
#include "app/run/result_record.hpp"
#include "app/run/run.hpp"
#include "app/run/solution_fields.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/formats/rank_matrix.hpp"

#include <array>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// The index of the first value that is not finite; values.size() if all are finite.
[[nodiscard]] std::size_t first_not_finite(std::span<double const> values);

/// What a run says of a pure Neumann problem.
[[nodiscard]] std::string pure_neumann_note(double compatibility_defect);

/// What `poisson run` and `poisson solve` share: results directory, backend, record, and the stages from the CSR matrix on. Call
/// convert, solve, verify, output, analysis and finish in this order.
///
/// With ranks (InternalRunOptions::team) all of them make one and call its functions alike. The first alone has the results
/// directory, so that `attempt` does nothing on others; records are merged by `finish`.
class Stages {
public:
  /// Throws InputError (there are results already), EnvironmentError (directory, device).
  Stages(RunConfig const& config, RunOptions const& options, Console& console, std::string const& title,
         InternalRunOptions const& internal = {});

  ResultRecord record;

  /// Prints a line about a finished stage.
  void report_stage(Stage stage, std::string const& what) {
    console_.stage(std::string(name_of(stage)), record.clock.seconds(stage), what);
  }

  /// Calls write(), which is collective and throws the same on all ranks. An EnvironmentError is stored, so that the other files
  /// and the record are still written; finish() throws the first one.
  template <class Write>
  void attempt_together(Write&& write) {
    try {
      write();
    } catch (EnvironmentError const&) {
      if (!team_.agreed())
        throw;
      team_.caught();
      keep(std::current_exception());
    } catch (std::bad_alloc const&) {
      if (!team_.agreed())
        throw;
      keep(std::make_exception_ptr(OutOfMemoryError("out of memory while the results were written")));
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
      keep(std::make_exception_ptr(OutOfMemoryError("out of memory while the results were written")));
    }
  }

  /// Calls `body`, which runs the stages. An interrupt ends it and is noted in the record.
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

  /// Calls `body`, which follows the solve. An interrupt ends it and is noted in the record with its time, and the run goes on: the
  /// solution is there, and is written.
  template <class Body>
  void unless_interrupted(char const* when, Body&& body) {
    try {
      body();
    } catch (Interrupted const&) {  // thrown on all ranks
      clear_interrupt();
      record.status = SolverStatus::interrupted;
      record.reason = std::string("interrupted ") + when + "; the solution is complete";
    }
  }

  [[nodiscard]] Backend backend() const { return backend_; }
  [[nodiscard]] Communicator& ranks() const { return team_.communicator(); }
  /// The results directory, on every rank. Collective.
  [[nodiscard]] std::filesystem::path shared_path() {
    if (directory_)
      directory_->ensure_writable();
    return team_.of_first(directory_ ? std::filesystem::absolute(directory_->path()).string() : "");
  }
  /// Waits until it is there.
  [[nodiscard]] Context& context();

  /// Takes a matrix that was assembled in its format, in the memory of context(), in place of `convert`. `choice` is what `auto`
  /// decided from.
  void adopt(std::unique_ptr<Matrix> matrix, std::optional<FormatChoice> choice);

  /// Converts the matrix to the format of the configuration, in the backend's memory.
  void convert(std::shared_ptr<CsrMatrix const> matrix);

  /// Takes the rows of this rank, and converts those of its own block. `blocks`: of a box of order 1 who has which nodes, else
  /// null.
  void convert(RankRows rows, std::shared_ptr<RankBlocks const> blocks);
  /// Takes the rows of this rank of a box, or of lattices, assembled in the memory of context(), in place of `convert`. One of
  /// `blocks` and `lattices` is null.
  void adopt(BlockSystem block, std::vector<RankNeighbor> neighbors, std::shared_ptr<RankBlocks const> blocks,
             std::shared_ptr<RankLattices const> lattices, std::optional<FormatChoice> choice);

  /// The matrix as it is solved with: that which was assembled, or what its format gives back (Matrix::to_csr).
  [[nodiscard]] std::shared_ptr<CsrMatrix const> csr() const;

  /// The matrix in its format, of one rank.
  [[nodiscard]] Matrix const& stored() const { return *stored_; }

  /// The rows of this rank, with the same entries.
  [[nodiscard]] RankRows rank_rows() const;

  /// Of a box whose matrix comes from a file; see SolverOptions.
  std::array<std::int64_t, 3> box_nodes{};

  /// Solves A x = b with the converted matrix. `constant_null_space`: the constant vector spans the null space of A. With ranks:
  /// `row_numbers` makes NumberedRows::numbers.
  [[nodiscard]] HostVector<double> solve(std::span<double const> b, bool constant_null_space, OrderOneProvider order_one = {},
                                         RankNestedProvider nested_spaces = {},
                                         std::function<std::vector<std::int64_t>()> row_numbers = {});

  /// Computes ||b - A x|| / ||b||, and that scaled by the diagonal, in double-double arithmetic into the record. Where that is more
  /// than twice the tolerance the solver's own residual was rounding, and x is corrected once; if that is not enough the status is
  /// not `converged`. With ranks, b and x are those of this rank's rows.
  void verify(std::span<double const> b, std::span<double> x);

  /// Computes the norms of the record from a residual of own rows.
  void record_residual(HostVector<double> r, std::span<double const> b);

  /// The solution d of A d = r, by the solver's options but for the tolerance, or what was nearest to it. Precondition: solve was
  /// called.
  [[nodiscard]] HostVector<double> correction(std::span<double const> r, double tolerance);

  /// Writes the convergence history, calls make(folder of the results), which is collective, and write_solution(directory) on the
  /// first rank. An interrupt of make() is noted in the record.
  template <class Make, class WriteSolution>
  void output(Make&& make, WriteSolution&& write_solution) {
    record.clock.time(Stage::output, [&] {
      attempt([&](ResultsDirectory& directory) { write_residual_files(record, config_.output, directory); });
      unless_interrupted("after the solve", [&] { attempt_together([&] { make(shared_path()); }); });
      attempt(write_solution);
    });
    report_stage(Stage::output, directory_ ? directory_->path().string() : "");
  }

  /// Calls run(context, directory), the analyses, after the solution was written; on ranks but the first the directory is null. It
  /// returns the first failure (or null), which finish() throws. With ranks run() throws Interrupted on all.
  template <class Run>
  void analysis(Run&& run) {
    unless_interrupted("in the analysis", [&] {
      if (directory_)
        directory_->ensure_writable();
      keep(record.clock.time(Stage::analysis, [&] { return run(*context_, directory_ ? &*directory_ : nullptr); }));
    });
    console_.end_progress();
    report_stage(Stage::analysis, std::to_string(record.analysis.size()) + " of singular values");
  }

  /// Writes the configuration, as it was given and with every key, beside the results.
  void write_configuration(Configuration const& configuration);

  /// Writes the record and prints the table of results. Then throws the first stored error, or returns the exit code. With ranks
  /// all return or throw the same.
  [[nodiscard]] ExitCode finish();

private:
  [[nodiscard]] MultiPrecisionOperator const& solved_matrix() const {
    return rank_matrix_ ? static_cast<MultiPrecisionOperator const&>(*rank_matrix_) : *stored_;
  }
  [[nodiscard]] HostVector<double> true_residual_of(std::span<double const> b, std::span<double const> x);
  void measure_residual(std::span<double const> b, std::span<double const> x) { record_residual(true_residual_of(b, x), b); }
  void keep(std::exception_ptr failure) {
    if (!output_error_)
      output_error_ = std::move(failure);
  }
  void measure_bandwidth();
  void gather_figures();
  [[nodiscard]] ExitCode finish_on_first();
  [[nodiscard]] std::unique_ptr<Matrix> store();

  void record_matrix();
  void record_devices();
  void record_matrix_of_ranks();
  void tell_choice(FormatChoice const& choice);

  RunConfig const& config_;
  Console& console_;
  RankTeam& team_;
  std::optional<ResultsDirectory> directory_;  ///< of the first rank
  Backend backend_{};
  std::exception_ptr output_error_;
  std::future<std::unique_ptr<Context>> future_context_;
  std::unique_ptr<Context> context_;
  std::shared_ptr<CsrMatrix const> matrix_;  ///< null when the matrix was not assembled into CSR
  std::unique_ptr<Matrix> stored_;
  RankRows rows_;  ///< with ranks; without a matrix where that was assembled in its format
  SplitRows rim_;  ///< then the rim's rows, and the whole of them
  CsrMatrix rim_rows_;
  std::shared_ptr<RankBlocks const> blocks_;
  std::unique_ptr<RankMatrix> rank_matrix_;
  SolverOptions solver_;  ///< of the solve
};

}  // namespace poisson::app
