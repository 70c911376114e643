#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "app/run/run.hpp"

#include <nlohmann/json.hpp>

#include <exception>
#include <optional>
#include <string>
#include <vector>

/// What a sweep says when its cases are done: sweep.csv, sweep.json, the list for ParaView, and the tables on the terminal.
namespace poisson::app {

/// A case of a sweep that is run.
struct RunningCase {
  std::vector<std::string> values;  ///< one per axis
  std::string fingerprint;
  std::string directory;  ///< relative to the sweep's
  std::string error;      ///< why there is no result
  int exit_code = -1;     ///< -1: not run
  bool reused = false;
  double seconds = 0;
  std::optional<Configuration> configuration;
  nlohmann::ordered_json result;  ///< result.json, or null
};

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
/// "cells = [8, 8, 8], order = 2"
[[nodiscard]] std::string values_text(RunningCase const& c, std::vector<SweepAxis> const& axes);

/// How the sweep ended, as sweep.json has it.
struct SweepEnd {
  bool complete;
  int exit_code;
};
/// Writes sweep.csv, sweep.json, report.html and the list of the solutions, `collection`. Throws nothing for what cannot be
/// written: see ResultsDirectory::try_write.
void write_summary(std::vector<RunningCase> const& cases, RunConfig const& config, std::string const& configuration,
                   SweepEnd const& end, std::string const& collection, SweepAnalysis const& analysis, ResultsDirectory& directory);
/// The table of the cases, and what their quantities tend to.
void print_summary(std::vector<RunningCase> const& cases, SweepSpec const& sweep, Console& console);

}  // namespace poisson::app
