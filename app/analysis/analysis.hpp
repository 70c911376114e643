#pragma once

#include "app/config/run_config.hpp"
#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "assembly/discretization.hpp"
#include "gpu/formats/matrix.hpp"
#include "output/picture/picture.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// The system that analyses decompose, of the whole mesh.
struct AnalysedSystem {
  CsrMatrix const& matrix;              ///< as assembled
  Matrix const& stored;                 ///< the same in some format, in the memory of AnalysisInput::context
  std::span<std::uint8_t const> fixed;  ///< 1 for unknowns that are given or tied to others, 0 for free ones
  bool is_singular;                     ///< the constant vector spans the null space of the matrix
};

/// What the analyses of a run read. What functions return is made when they are called, since several ranks gather it first; they
/// throw EnvironmentError, Interrupted.
struct AnalysisInput {
  RunConfig const& config;
  SolverResult const& result;
  Context& context;
  assembly::Extent extent;                                                     ///< of the mesh
  std::function<HostVector<double>(assembly::Lattice const& lattice)> sample;  ///< the solution, as Discretization::sample
  std::function<AnalysedSystem()> system;
  std::function<assembly::Discretization const&()> discretization;  ///< of the whole mesh
};

/// Where one entry of analysis.svd writes files, messages and its record.
struct AnalysisOutput {
  ResultsDirectory& directory;
  Console& console;
  std::string prefix;            ///< of its files, "svd0_operator"
  nlohmann::ordered_json& json;  ///< its part of result.json

  [[nodiscard]] std::string file(std::string const& name) const { return prefix + "_" + name; }
};

/// Writes a plot in every format of output.picture_formats: PREFIX_NAME.png and so on, where output.picture is set and the build
/// has pictures. Throws EnvironmentError.
void write_plots(AnalysisOutput const& output, OutputSpec const& formats, std::string const& name,
                 std::vector<output::Curve> const& curves, output::PlotOptions const& options);

/// Singular values, condition and modes of the matrix of the free unknowns; with more than spec.max_dense of them, estimates of the
/// extreme eigenvalues. Throws InputError (no free unknown; too large and not symmetric), EnvironmentError (memory, files),
/// Interrupted.
void analyse_operator(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output);
/// Low-rank approximation of u sampled on a lattice. Throws what analyse_operator throws.
void analyse_field(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output);

/// Calls `body`, the analysis of entry `index`. An InputError or EnvironmentError is recorded as `error` and printed; if `failure`
/// is null, it is stored there with the entry's key. Interrupted is passed on.
void try_analysis(std::size_t index, AnalysisSpec const& spec, AnalysisOutput const& output, std::exception_ptr& failure,
                  std::function<void()> const& body);

/// Runs all entries of analysis.svd of one run, and appends a record for each. A failed entry affects neither the others nor the
/// run: its record has `error`, and the first failure is returned (else null), for the caller to throw when everything is written.
/// Throws Interrupted between the steps of an analysis; the record keeps finished parts.
[[nodiscard]] std::exception_ptr analyse(AnalysisInput const& input, ResultsDirectory& directory,
                                         std::vector<nlohmann::ordered_json>& records, Console& console);

/// The prefix of an entry's files: "svd0_operator".
[[nodiscard]] std::string analysis_prefix(std::size_t index, AnalysisSpec const& spec);

}  // namespace poisson::app
