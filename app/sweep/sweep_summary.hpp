#pragma once

#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "app/sweep/sweep_cases.hpp"
#include "app/sweep/sweep_statistics.hpp"

#include <nlohmann/json.hpp>

#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// What a sweep says when its cases are done: sweep.csv, sweep.json, the list for ParaView, and the tables on the terminal.
namespace poisson::app {

/// What was found over all cases: by the analyses of snapshots, with the first that failed, and of a sample.
struct SweepAnalysis {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  std::exception_ptr failure;
  double seconds = 0;
  std::vector<SampleStatistics> statistics{};
  nlohmann::ordered_json greedy{};  ///< GreedySweep::json and text, where the sweep has `greedy`
  std::string greedy_text{};
};

/// "converged", or why a case has no such status: "failed", "running", "not run", "left out".
[[nodiscard]] std::string status_of(SweepCase const& c);

/// Why cases have no result, each reason once, with their numbers.
[[nodiscard]] std::vector<std::pair<std::string, std::vector<std::size_t>>> reasons_of_failures(std::span<SweepCase const> cases);
/// The same as texts: "cases 3-5 failed: ...".
[[nodiscard]] std::vector<std::string> failures_text(std::span<SweepCase const> cases);

/// How the sweep ended, as sweep.json has it.
struct SweepEnd {
  bool complete;
  int exit_code;
};
/// Writes sweep.csv, sweep.json, report.html and the list of the solutions, `collection`. Throws nothing for what cannot be
/// written: see ResultsDirectory::try_write.
void write_summary(std::vector<SweepCase> const& cases, RunConfig const& config, std::string const& configuration,
                   SweepEnd const& end, std::string const& collection, SweepAnalysis const& analysis, ResultsDirectory& directory);
/// The table of the cases, with the user's own quantities behind the swept keys, and what their quantities tend to.
void print_summary(std::vector<SweepCase> const& cases, RunConfig const& config, SweepAnalysis const& analysis, Console& console);

}  // namespace poisson::app
