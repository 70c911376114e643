#pragma once

#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "app/sweep/sweep_cases.hpp"

#include <nlohmann/json.hpp>

#include <exception>
#include <string>
#include <vector>

/// What a sweep says when its cases are done: sweep.csv, sweep.json, the list for ParaView, and the tables on the terminal.
namespace poisson::app {

/// What the analyses of snapshots found, for sweep.json, and the first that failed.
struct SweepAnalysis {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  std::exception_ptr failure;
  double seconds = 0;
};

/// A number of a record; NaN where it has none there.
[[nodiscard]] double number_in(nlohmann::ordered_json const& result, char const* pointer);
/// A value of a record as text; empty where it has none there.
[[nodiscard]] std::string text_in(nlohmann::ordered_json const& result, char const* pointer);
/// "converged", or why a case has no such status: "failed", "running", "not run".
[[nodiscard]] std::string status_of(SweepCase const& c);

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
void print_summary(std::vector<SweepCase> const& cases, RunConfig const& config, Console& console);

}  // namespace poisson::app
