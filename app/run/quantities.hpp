#pragma once

#include "app/config/run_config.hpp"
#include "app/io/results_directory.hpp"
#include "assembly/discretization.hpp"

#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// The names and values of `quantities` in result.json, in their order. Most are numbers; points and vectors are arrays of three.
/// Those that are not finite are null.
using QuantityTable = std::vector<std::pair<std::string, nlohmann::ordered_json>>;

/// What a configuration asks for besides the fields: probes, lines, and quantities of its own.
class RequestedQuantities {
public:
  /// Finds the points and checks the expressions before anything is solved. Throws InputError for a probe or a whole line outside
  /// the mesh, and for wrong expressions. Both arguments must outlive this.
  RequestedQuantities(RunConfig const& config, assembly::Discretization const& discretization);

  /// All quantities of a finite solution, those of the user last.
  [[nodiscard]] QuantityTable evaluate(assembly::Quantities const& of_solution, double integral_f, std::span<double const> u) const;
  /// Writes the lines (.csv, .png).
  void write_lines(std::span<double const> u, ResultsDirectory& directory) const;

private:
  [[nodiscard]] QuantityTable table(assembly::Quantities const& of_solution, double integral_f,
                                    std::vector<assembly::PointValues> const& at_probes) const;

  RunConfig const& config_;
  assembly::Discretization const& discretization_;
  std::vector<assembly::LocatedPoint> probes_;
  std::vector<std::vector<assembly::LocatedPoint>> lines_;
};

/// The names of the files that write_lines writes.
[[nodiscard]] std::vector<std::string> line_files(RunConfig const& config);

}  // namespace poisson::app
