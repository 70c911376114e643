#pragma once

#include "app/config/run_config.hpp"
#include "app/io/results_directory.hpp"
#include "app/results/quantities.hpp"
#include "app/results/stage_clock.hpp"
#include "assembly/discretization.hpp"
#include "gpu/formats/cost.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/solvers/solver.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// A figure that every rank has its own of.
struct RankFigures {
  double smallest = 0, largest = 0, mean = 0;

  RankFigures() = default;
  /// Finds the figures of all ranks, on all of them. Collective.
  RankFigures(Communicator& ranks, double mine);
};

/// A mesh of adaptive refinement, and what was found on it.
struct AdaptiveCycle {
  std::int64_t cells = 0, dofs = 0, levels = 0;  ///< levels: refinements of the smallest cells
  double value = 0;                              ///< of the target; or the energy norm of u
  double estimate = 0;                           ///< of its error
  double raised = 1;                             ///< by how much, as values of the cycles before differ by more than estimates
  bool guaranteed = false;                       ///< whether the estimate is a proven bound
  std::string why_not;                           ///< of the estimator that makes bounds, where it is none
  std::optional<double> error;                   ///< where the exact solution tells it
  std::int64_t iterations = 0;
  double seconds = 0;  ///< since the cycle before
  /// "12.3 +- 0.4 (guaranteed)"
  [[nodiscard]] std::string answer() const;
};

/// An order of elements that problem.mesh.adaptive.orders has tried, and what it takes to reach the tolerance with it.
struct TriedOrder {
  int order = 1;
  std::int64_t dofs = 0;   ///< of the mesh where the error was estimated
  double estimate = 0;     ///< there
  double dofs_needed = 0;  ///< predicted
  double work = 0;         ///< predicted, in unknowns of elements of order 1
};

/// What became of problem.mesh.adaptive.
struct AdaptiveRecord {
  /// What it ended by where it was interrupted before the error on the last mesh was estimated.
  static constexpr char const* not_judged = "interrupted";
  std::string target;
  ErrorGoal tolerance;
  std::string ended = not_judged, reason;
  std::vector<AdaptiveCycle> cycles;
  std::vector<TriedOrder> orders;  ///< where the order was chosen
};

/// From which checkpoint a solve went on.
struct ResumedSolve {
  std::int64_t iteration = 0;
  bool exact = false;  ///< with its state; else iterations began anew at its x
};

/// The contents of result.json (docs/result_json.md); filled as the run proceeds. Times in seconds, sizes in bytes.
struct ResultRecord {
  SolverStatus status = SolverStatus::interrupted;
  std::string reason;                 ///< why the status is not `converged`
  int exit_code = 0;                  ///< of the run
  nlohmann::ordered_json provenance;  ///< provenance_of
  std::string error;                  ///< the error of exit code 1 or 3, if there are results nevertheless
  std::string configuration_file, fingerprint;
  std::string name = "u", unit, title;  ///< of the solution, as OutputSpec
  std::optional<SystemSpec> system;     ///< only for a system from files, which has no configuration file, mesh or order
  assembly::MeshSummary mesh;
  assembly::Extent extent;  ///< of its nodes
  int order = 1;
  std::int64_t dofs = 0, nnz = 0;  ///< rows and stored entries of the full matrix
  Format format{};
  std::string format_reason;
  std::int64_t matrix_bytes = 0, csr_bytes = 0;
  double padding_ratio = 1;
  std::optional<FormatChoice> choice;  ///< the estimates of `auto`; none with a given format
  std::string backend, device;
  int threads = 0;  ///< of each rank
  int ranks = 1;
  RankFigures rows_of_ranks, bytes_of_ranks, host_peak_of_ranks;  ///< with several ranks; bytes: of the matrix
  std::vector<std::string> devices_of_ranks;                      ///< their names
  std::vector<std::pair<Stage, RankFigures>> seconds_of_ranks{};
  SolverOptions solver;
  std::optional<std::string> neighbour;  ///< the case at whose solution iterations began
  std::optional<ResumedSolve> resumed;
  SolverResult result;
  double residual_true = std::numeric_limits<double>::quiet_NaN();
  double residual_scaled = std::numeric_limits<double>::quiet_NaN();  ///< ResidualNorms::scaled
  std::int64_t corrections = 0, correction_iterations = 0;            ///< solves for what was left, and their iterations
  double copy_bandwidth = 0;                                          ///< bytes per second, measured in this run; 0: not measured
  std::optional<assembly::ErrorNorms> errors;
  std::optional<AdaptiveRecord> adaptive;    ///< of problem.mesh.adaptive
  std::optional<EffectiveResult> effective;  ///< of analysis.effective
  QuantityTable quantities;                  ///< of a finite solution of a problem; else empty
  double integral_f = 0;
  std::vector<std::string> warnings;
  std::optional<double> compatibility_defect;    ///< pure Neumann only
  std::vector<nlohmann::ordered_json> analysis;  ///< one for each entry of analysis.svd that was started
  StageClock clock;
  std::int64_t host_peak_bytes = 0, device_peak_bytes = 0;
  std::vector<std::string> files;
  std::map<std::string, std::string> captions;  ///< of pictures, for the report
  std::vector<ResultsDirectory::Failure> files_failed;

  /// Compulsory memory traffic of the iterations, in bytes per second; 0 without iterations.
  [[nodiscard]] double bandwidth() const {
    return result.seconds > 0 ? result.bytes_per_iteration * static_cast<double>(result.iterations) / result.seconds : 0;
  }
};

/// The text of result.json; numbers that are not finite become null.
[[nodiscard]] std::string to_json(ResultRecord const& record);

}  // namespace poisson::app
