#pragma once

#include "app/config/run_config.hpp"
#include "app/io/results_directory.hpp"
#include "assembly/discretization.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::app {

/// Whether what flows through the boundary is what sources give.
struct Balance {
  double relative = 0;  ///< |sum of all fluxes - integral of f| / scale; 0 where the scale is 0
  double scale = 0;     ///< the largest of all |fluxes|, |integral of f| and the flux that the energy stands for, 2 E / (max - min)
  bool judged = false;  ///< u is more than a constant and the solver's error
};

/// `tolerance`: of the solver.
[[nodiscard]] Balance balance_of(assembly::Quantities const& quantities, double integral_f, double tolerance);

/// The names and values of `quantities` in result.json, in their order. Most are numbers; points and vectors are arrays of three.
/// Those that are not finite are null.
using QuantityTable = std::vector<std::pair<std::string, nlohmann::ordered_json>>;

/// Whether this is the name of a quantity of u in one material or on one boundary: max.NAME.
[[nodiscard]] bool is_of_part(std::string_view name);

/// The points where a configuration asks for the solution: of probes, then of lines, circles and planes.
[[nodiscard]] std::vector<std::array<double, 3>> requested_points(RunConfig const& config);
/// What a configuration asks for besides the fields: probes, lines, circles, planes, and quantities of its own. Here `at_points`
/// is the solution at requested_points, of which those outside the mesh do not count.
class RequestedQuantities {
public:
  using NearestNode = std::function<std::array<double, 3>(std::array<double, 3> const& x)>;
  /// Checks points and expressions before anything is solved. `inside` says which of requested_points are in the mesh. Throws
  /// InputError for a probe, or a whole line, circle, plane or slice, outside the mesh, and for wrong expressions. The first two
  /// arguments must outlive this.
  RequestedQuantities(RunConfig const& config, assembly::MeshSummary const& mesh, assembly::Extent const& extent,
                      std::vector<bool> inside, NearestNode const& nearest_node);

  /// All quantities of a finite solution, those of the user last.
  [[nodiscard]] QuantityTable evaluate(assembly::Quantities const& of_solution, double integral_f,
                                       std::span<assembly::PointValues const> at_points) const;
  /// Writes lines and circles (.csv, .png) and planes (.csv, .vts, .png).
  void write_files(std::span<assembly::PointValues const> at_points, ResultsDirectory& directory) const;
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
  /// Some of the points.
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  [[nodiscard]] std::int64_t count_outside(Range const& range) const;
  /// x, y, z, u, its gradient, the flux and, where it is known, the exact solution. NaN outside the mesh.
  [[nodiscard]] Table table_at(Range const& range, std::span<assembly::PointValues const> at_points) const;
  /// The first column is the place on the curve.
  void write_curve(std::string const& name, Table const& table, std::string const& title, ResultsDirectory& directory) const;
  void write_plane(PlaneSpec const& plane, Range const& range, Table const& table, ResultsDirectory& directory) const;
  [[nodiscard]] QuantityTable table(assembly::Quantities const& of_solution, double integral_f,
                                    std::span<assembly::PointValues const> at_probes) const;

  RunConfig const& config_;
  assembly::MeshSummary const& mesh_;
  std::vector<std::array<double, 3>> points_;
  std::vector<bool> inside_;
  std::vector<Range> lines_, circles_, planes_;
};

/// A key of the configuration, and what is to be said about it.
using KeyWarnings = std::vector<std::pair<std::string, std::string>>;
/// Which of requested_points were moved onto the mesh, how far each.
[[nodiscard]] KeyWarnings warnings_of_moved(RunConfig const& config, std::vector<double> const& moved);
/// Which sources were moved onto the mesh, how far each at most: PointLoads::moved.
[[nodiscard]] KeyWarnings warnings_of_moved_sources(RunConfig const& config, std::vector<double> const& moved);
/// Which probes lie where the gradient jumps (at a jump of k, or on a surface with a condition), and which sets of points for the
/// most part, and from which side their gradients are.
[[nodiscard]] KeyWarnings warnings_of_sides(RunConfig const& config, assembly::MeshSummary const& mesh,
                                            std::vector<assembly::ChosenSide> const& sides);
/// Which quantities are not finite.
[[nodiscard]] KeyWarnings warnings_of_quantities(RunConfig const& config, QuantityTable const& table);

/// What the data and the range of the solution give reason to say.
[[nodiscard]] KeyWarnings warnings_of_data(RunConfig const& config, assembly::DataFindings const& data,
                                           assembly::Quantities const& of_solution);

/// The names of the files that write_files writes.
[[nodiscard]] std::vector<std::string> quantity_files(RunConfig const& config);

}  // namespace poisson::app
