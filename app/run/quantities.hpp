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

/// What a configuration asks for besides the fields: probes, lines, circles, planes, and quantities of its own.
class RequestedQuantities {
public:
  /// Finds the points and checks the expressions before anything is solved. Throws InputError for a probe, or a whole line,
  /// circle or plane, outside the mesh, and for wrong expressions. Both arguments must outlive this.
  RequestedQuantities(RunConfig const& config, assembly::Discretization const& discretization);

  /// All quantities of a finite solution, those of the user last.
  [[nodiscard]] QuantityTable evaluate(assembly::Quantities const& of_solution, double integral_f, std::span<double const> u) const;
  /// Writes lines and circles (.csv, .png) and planes (.csv, .vts, .png).
  void write_files(std::span<double const> u, ResultsDirectory& directory) const;
  /// How many points are outside the mesh, for every line, circle and plane that has some.
  [[nodiscard]] std::vector<std::string> notes() const;

private:
  /// Columns of one length.
  struct Table {
    std::vector<std::string> names;
    std::vector<std::vector<double>> columns;
    void insert_first(std::string name, std::vector<double> column) {
      names.insert(names.begin(), std::move(name));
      columns.insert(columns.begin(), std::move(column));
    }
  };
  /// x, y, z, u, its gradient, the flux and, where it is known, the exact solution. NaN outside the mesh.
  [[nodiscard]] Table table_at(std::vector<assembly::LocatedPoint> const& points, std::span<double const> u) const;
  /// The first column is the place on the curve.
  void write_curve(std::string const& name, Table const& table, std::string const& title, ResultsDirectory& directory) const;
  void write_plane(PlaneSpec const& plane, std::vector<assembly::LocatedPoint> const& points, Table const& table,
                   ResultsDirectory& directory) const;
  [[nodiscard]] QuantityTable table(assembly::Quantities const& of_solution, double integral_f,
                                    std::vector<assembly::PointValues> const& at_probes) const;

  RunConfig const& config_;
  assembly::Discretization const& discretization_;
  std::vector<assembly::LocatedPoint> probes_;
  std::vector<std::vector<assembly::LocatedPoint>> lines_, circles_, planes_;
};

/// The names of the files that write_files writes.
[[nodiscard]] std::vector<std::string> quantity_files(RunConfig const& config);

}  // namespace poisson::app
