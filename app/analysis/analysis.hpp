#pragma once

#include "app/config/run_config.hpp"
#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "assembly/discretization.hpp"
#include "gpu/formats/matrix.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// Input of the analyses of a run.
struct AnalysisInput {
  RunConfig const& config;
  assembly::Discretization const& discretization;
  assembly::LinearSystem const& system;  ///< without its matrix
  CsrMatrix const& matrix;               ///< the assembled matrix
  Matrix const& stored;                  ///< the same in the format of the solve, on the context's backend
  std::span<double const> u;             ///< the solution, one value per unknown
  SolverResult const& result;
  Context& context;
};

/// Output of one entry of analysis.svd: files, messages, record.
struct AnalysisOutput {
  ResultsDirectory& directory;
  Console& console;
  std::string prefix;            ///< of its files, "svd0_operator"
  nlohmann::ordered_json& json;  ///< its part of result.json

  [[nodiscard]] std::string file(char const* name) const { return prefix + "_" + name; }
};

void analyse_operator(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output);
void analyse_field(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output);

/// Runs entry `index`. An exception of `body` becomes `error` in its record and a line on the console; the first one also becomes
/// `failure`, with the key named. Interrupted is passed on.
void try_analysis(std::size_t index, AnalysisSpec const& spec, AnalysisOutput const& output, std::exception_ptr& failure,
                  std::function<void()> const& body);

/// Runs all entries of analysis.svd that belong to one run, into `records`, files and the console. One that fails costs neither
/// the others nor the run: its record has `error`, and the first such failure is returned, to be thrown when all is written. Throws
/// Interrupted between the steps of an analysis; finished parts stay in the record.
[[nodiscard]] std::exception_ptr analyse(AnalysisInput const& input, ResultsDirectory& directory,
                                         std::vector<nlohmann::ordered_json>& records, Console& console);

/// "svd0_operator"
[[nodiscard]] std::string analysis_prefix(std::size_t index, AnalysisSpec const& spec);

}  // namespace poisson::app
