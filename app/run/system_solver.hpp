#pragma once

#include "app/config/run_config.hpp"
#include "app/launch/team.hpp"
#include "app/results/run_log.hpp"
#include "app/run/checkpoints.hpp"
#include "app/run/run_device.hpp"
#include "app/run/shared_matrix.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/solvers/solver.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

class SolvesOnRanks;

/// Stores the matrix of a run or a solve in its format, solves with it, and verifies the solution; all into the record. Call
/// convert or adopt, solve and verify in this order. Vectors are those of own rows. All functions are collective.
class SystemSolver {
public:
  using RowNumbers = std::function<std::vector<std::int64_t>()>;

  /// The arguments outlive this.
  SystemSolver(RunConfig const& config, Team& team, RunDevice& device, RunLog& log)
      : config_(config), team_(team), device_(device), log_(log) {}

  /// Takes the rows of this rank, and converts own rows among themselves to the format of the configuration, in the backend's
  /// memory. `blocks`: of a box of order 1 who has which nodes; null elsewhere, and where one rank has all. `numbers` makes
  /// NumberedRows::numbers, where they are needed; empty: rows follow each other from rank to rank. Errors: InputError where the
  /// format does not take the whole matrix, unless it is known to.
  void convert(RankRows rows, std::shared_ptr<RankBlocks const> blocks = nullptr, RowNumbers const& numbers = {},
               bool whole_is_taken = false);
  /// Takes a matrix that was assembled in its format, in the memory of the device's context, in place of `convert`. `choice` is
  /// what `auto` decided from. One of `blocks` and `lattices` is null.
  void adopt(BlockSystem block, std::vector<RankNeighbor> neighbors, std::shared_ptr<RankBlocks const> blocks,
             std::shared_ptr<SharedLattices const> lattices, std::optional<FormatChoice> choice);

  /// Before convert or adopt: what these would make is there, and what they are given is dropped. The matrix has the same entries,
  /// and the keys of matrix and solver are the same. It is of a rank without others, and of this device's context.
  void use(std::unique_ptr<StoredMatrix> matrix) { stored_ = std::move(matrix); }
  [[nodiscard]] bool has_matrix() const { return stored_ != nullptr; }
  /// Before solve: the preconditioner stays with the matrix, for its later solves.
  void keep_setup() { keeps_setup_ = true; }
  /// Gives the matrix away, with what is kept of it. It is last.
  [[nodiscard]] std::unique_ptr<StoredMatrix> take_matrix() { return std::move(stored_); }

  /// The caller sets these for a box whose matrix comes from a file; see SolverOptions.
  std::array<std::int64_t, 3> box_nodes{};
  /// The caller sets it for a matrix from a file that `solver.method: auto` must not take cg for.
  bool needs_any_method = false;
  /// The caller sets it to where iterations may begin, see SolverOptions. It is not used where it is of another size or context.
  Array<double> const* start = nullptr;

  /// The caller sets it where several ranks solve what this one alone has, and others wait in SolvesOnRanks::lead; null: nowhere.
  /// The matrix is then there for them only, unless the caller says `keeps_matrix`.
  SolvesOnRanks* on_ranks = nullptr;
  bool keeps_matrix = false;
  /// The caller clears it, on all ranks, where another solver of the run has told whose devices there are.
  bool tells_devices = true;

  /// The caller sets it where the state of `solve` is to be left, or to go on from; null: nowhere. Not of other solves.
  Checkpoints* checkpoints = nullptr;

  /// Solves A x = b. `constant_null_space`: the constant vector spans the null space of A. `row_numbers` makes
  /// NumberedRows::numbers.
  [[nodiscard]] FieldPair solve(Field const& b, bool constant_null_space, OrderOneProvider order_one = {},
                                RankNestedProvider nested_spaces = {}, RowNumbers row_numbers = {});

  /// Computes ||b - A x|| / ||b||, and that scaled by the diagonal, in double-double arithmetic into the record. Where that is more
  /// than twice the tolerance the solver's own residual was rounding, and x is corrected once; if that is not enough the status is
  /// not `converged`.
  void verify(Field const& b, FieldPair& x);

  /// The solution of one of several systems with the matrix, and ||b - A x|| / ||b||, recomputed as `verify` does.
  struct Solved {
    FieldPair x;
    SolverResult result;
    double residual_true = 0;
  };
  /// Solves A x = b for further right-hand sides, together, by the options of `solve`; with keep_setup by its preconditioner. Each
  /// is verified as `verify` does. Precondition: solve was called. Throws Interrupted.
  [[nodiscard]] std::vector<Solved> solve_more(std::vector<Array<double>> b);

  /// Computes the norms of the record from a residual.
  [[nodiscard]] ResidualNorms norms_of(Field const& r, Field const& b) const;
  void record_residual(Field const& r, Field const& b);

  /// The solution d of A d = r, by the solver's options but for the tolerance, or what was nearest to it. Precondition: solve was
  /// called.
  [[nodiscard]] Field correction(Field const& r, double tolerance);

  [[nodiscard]] SharedMatrix const& matrix() const { return stored_->matrix; }
  [[nodiscard]] Team& team() const { return team_; }
  [[nodiscard]] RunLog& log() const { return log_; }

private:
  [[nodiscard]] std::unique_ptr<Matrix> converted(std::shared_ptr<CsrMatrix const> const& own, Format format, bool chosen);
  void measure_bandwidth();
  void record_matrix();
  void tell_stored();
  void report_matrix();
  void record_devices();

  RunConfig const& config_;
  Team& team_;
  RunDevice& device_;
  RunLog& log_;
  std::unique_ptr<StoredMatrix> stored_;
  bool keeps_setup_ = false;
  SolverOptions solver_;  ///< of the solve
};

}  // namespace poisson::app
