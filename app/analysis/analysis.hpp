#pragma once

#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "app/config/run_config.hpp"
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

/// What the analyses of a run look at.
struct AnalysisInput {
  RunConfig const& config;
  assembly::Discretization const& discretization;
  assembly::LinearSystem const& system;  ///< without its matrix, which is
  CsrMatrix const& matrix;     ///< this
  Matrix const& stored;        ///< and this in the format that was solved with, on the context's backend
  std::span<double const> u;   ///< the solution, one value per unknown
  SolverResult const& result;
  Context& context;
};

/// One entry of analysis.svd at work: where its files go and what it says.
struct AnalysisOutput {
  ResultsDirectory& directory;
  Console& console;
  std::string prefix;            ///< of its files, "svd0_operator"
  nlohmann::ordered_json& json;  ///< its part of result.json

  [[nodiscard]] std::string file(char const* name) const { return prefix + "_" + name; }
};

void analyse_operator(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output);
void analyse_field(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output);

/// Entry `index` at work: what `body` throws becomes its record's `error` and a line, and the first such becomes `failure`, which
/// names the key. Interrupted goes on its way.
void try_analysis(std::size_t index, AnalysisSpec const& spec, AnalysisOutput const& output, std::exception_ptr& failure,
                  std::function<void()> const& body);

/// All entries of analysis.svd that belong to one run, into `records`, files and the console. One that fails costs neither
/// the others nor the run: its record has `error`, and the first such failure is returned, to be thrown when all is written. Throws
/// Interrupted between the steps of an analysis; what was finished stays in the record.
[[nodiscard]] std::exception_ptr analyse(AnalysisInput const& input, ResultsDirectory& directory,
                                         std::vector<nlohmann::ordered_json>& records, Console& console);

/// "svd0_operator"
[[nodiscard]] std::string analysis_prefix(std::size_t index, AnalysisSpec const& spec);

}  // namespace poisson::app
