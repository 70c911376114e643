#pragma once

#include "app/config/run_config.hpp"
#include "app/io/checkpoint_files.hpp"
#include "app/launch/exit_code.hpp"
#include "app/launch/run_options.hpp"
#include "app/launch/team.hpp"
#include "app/results/run_log.hpp"
#include "gpu/core/array.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// What the results directory holds of earlier runs, for `--resume`.
struct EarlierRun {
  std::optional<ExitCode> finished;              ///< the same run has ended there, with this code; nothing is to be done
  bool is_asked_for = false;                     ///< --resume is about this run, not about a sweep of it
  bool goes_on = false;                          ///< what is there is of this run, which replaces it
  std::optional<CheckpointManifest> checkpoint;  ///< to go on from
  std::vector<std::string> damaged;              ///< what is wrong with checkpoints that are newer than that one
};

/// Looks what is in the results directory. `own_folder`: as InternalRunOptions has it. Collective. Without --resume and --overwrite
/// throws InputError where there are checkpoints, which nobody wants to lose by a slip; with --resume where the newest is of
/// another configuration, or where all are damaged.
[[nodiscard]] EarlierRun find_earlier_run(RunConfig const& config, RunOptions const& options, bool own_folder, Team& team);

/// "'out' holds the finished results of this configuration ..."
void tell_finished(RunConfig const& config, Console& console);
/// The options with --overwrite where what is there is of the run that goes on.
[[nodiscard]] RunOptions options_after(RunOptions options, EarlierRun const& earlier);

/// The checkpoints of a run: when they are due, where they are, and from which one it goes on. Two are kept. A checkpoint that
/// cannot be written is a warning; the run goes on. All functions are collective.
class Checkpoints final : public SolverCheckpoints {
public:
  /// Removes what is not to go on from. `results`: the results directory, which is locked. The references outlive this.
  Checkpoints(RunConfig const& config, EarlierRun earlier, std::filesystem::path const& results, Team& team, RunLog& log);

  /// Whether any are asked for, or there is one to go on from.
  [[nodiscard]] bool are_used() const { return config_.checkpoint.is_asked() || earlier_.has_value(); }
  /// To be called before each solve whose state is to be kept, and no other. `rows`: of this rank. `numbers`: makes those of own
  /// rows in the whole; empty: rows follow each other from rank to rank. Returns x to begin at where the checkpoint is of another
  /// number of ranks, backend or program.
  [[nodiscard]] std::optional<Array<double>> begin_solve(Context& context, std::int64_t rows,
                                                         std::function<std::vector<std::int64_t>()> const& numbers);
  /// Removes them where the run has come to its end.
  void end(ExitCode code);

  [[nodiscard]] bool is_due(std::int64_t iteration, bool ends) override;
  void save(std::int64_t iteration, double relative_residual, Write const& solution, Write const& state) override;
  [[nodiscard]] StateStream* saved() override { return reader_ ? &*reader_ : nullptr; }

private:
  using Clock = std::chrono::steady_clock;

  /// Of own rows in the whole; empty where rows follow each other from rank to rank.
  [[nodiscard]] std::vector<std::int64_t> row_numbers() const;
  [[nodiscard]] std::optional<std::vector<double>> saved_solution(std::int64_t rows) const;

  RunConfig const& config_;
  Team& team_;
  RunLog& log_;
  std::filesystem::path folder_;
  std::optional<CheckpointManifest> earlier_;  ///< until its solve begins
  std::string problem_;
  std::vector<std::int64_t> kept_;  ///< numbers, oldest first
  std::int64_t next_ = 1;
  std::int64_t solve_ = 0;
  std::int64_t last_iteration_ = 0;  ///< of the checkpoint before, in this solve
  bool is_saved_ = false;            ///< there is one
  Clock::time_point last_ = Clock::now();
  std::function<std::vector<std::int64_t>()> numbers_;
  std::int64_t rows_ = 0, first_row_ = 0;  ///< of this rank; the second if they follow each other
  std::string backend_;
  std::optional<PieceReader> reader_;
  std::string told_;  ///< why the last one could not be written
};

}  // namespace poisson::app
