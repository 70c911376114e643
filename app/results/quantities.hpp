#pragma once

#include "app/analysis/effective.hpp"
#include "app/config/run_config.hpp"
#include "assembly/discretization.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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
  bool judged = false;  ///< u is more than a constant on each part of the mesh, and the solver's error
};

/// `tolerance`: of the solver.
[[nodiscard]] Balance balance_of(assembly::Quantities const& quantities, double integral_f, double tolerance);

/// The names and values of `quantities` in result.json, in their order. Most are numbers; points and vectors are arrays of three.
/// Those that are not finite are null.
using QuantityTable = std::vector<std::pair<std::string, nlohmann::ordered_json>>;

/// They, and what else expressions of the user's own quantities may use: u in parts that the record leaves out, and other names.
struct NamedQuantities {
  QuantityTable table;
  assembly::Constants more{};

  /// Null: there is none of this name in the table.
  [[nodiscard]] nlohmann::ordered_json const* value_of(std::string const& name) const;
  /// Nothing: no number has this name.
  [[nodiscard]] std::optional<double> number(std::string const& name) const;
};

/// Whether this is the name of a quantity of u in one material or on one boundary: max.NAME.
[[nodiscard]] bool is_of_part(std::string_view name);

/// "(x, y, z)"
[[nodiscard]] std::string point_text(std::array<double, 3> const& x);

/// Points at which an output takes the solution.
struct PointSet {
  std::string key;   ///< of the configuration: "output.lines[0]"
  std::string kind;  ///< "line"
  std::string name;
  std::vector<std::array<double, 3>> points;
  std::size_t first = 0;  ///< of `points` among requested_points
};
/// In the order of their points.
using PointSets = std::vector<PointSet const*>;

/// The points where a configuration asks for the solution: probes, then those of sets.
[[nodiscard]] std::vector<std::array<double, 3>> requested_points(RunConfig const& config, PointSets const& sets);

/// Checks points and expressions before anything is solved. `inside` says which of requested_points are in the mesh, and `nearest`
/// is the node nearest to the first probe that is not. Returns how many points are outside, for every set that has some. Throws
/// InputError for a probe or a whole set outside the mesh, and for wrong expressions.
[[nodiscard]] std::vector<std::string> check_requests(RunConfig const& config, PointSets const& sets,
                                                      assembly::MeshSummary const& mesh, std::vector<bool> const& inside,
                                                      std::array<double, 3> const& nearest);

/// Throws InputError for an expression of output.quantities that is wrong, or names what the mesh has not.
void check_quantities(RunConfig const& config, assembly::MeshSummary const& mesh);

/// All quantities of a finite solution, those of the user last. `at_points` begins with the solution at probes. `effective`: those
/// of analysis.effective, where that is asked for.
[[nodiscard]] NamedQuantities named_quantities(RunConfig const& config, assembly::MeshSummary const& mesh,
                                               assembly::Quantities const& of_solution, double integral_f,
                                               std::span<assembly::PointValues const> at_points,
                                               std::optional<EffectiveResult> const& effective = {});
/// Its table.
[[nodiscard]] QuantityTable quantity_table(RunConfig const& config, assembly::MeshSummary const& mesh,
                                           assembly::Quantities const& of_solution, double integral_f,
                                           std::span<assembly::PointValues const> at_points,
                                           std::optional<EffectiveResult> const& effective = {});
/// The derivatives of one of the user's own quantities with respect to all others that it is made of, by central differences; those
/// that are not 0, and no number where one is not finite.
[[nodiscard]] std::map<std::string, double> derivatives_of(RunConfig const& config, NamedQuantities const& quantities,
                                                           std::string const& own);

/// A key of the configuration, and what is to be said about it.
using KeyWarnings = std::vector<std::pair<std::string, std::string>>;
/// Which of requested_points were moved onto the mesh, how far each.
[[nodiscard]] KeyWarnings warnings_of_moved(RunConfig const& config, PointSets const& sets, std::vector<double> const& moved);
/// Which sources were moved onto the mesh, how far each at most: PointLoads::moved.
[[nodiscard]] KeyWarnings warnings_of_moved_sources(RunConfig const& config, std::vector<double> const& moved);
/// Which probes lie where the gradient jumps (at a jump of k, or on a surface with a condition), and which sets of points for the
/// most part, and from which side their gradients are.
[[nodiscard]] KeyWarnings warnings_of_sides(RunConfig const& config, PointSets const& sets, assembly::MeshSummary const& mesh,
                                            std::vector<assembly::ChosenSide> const& sides);
/// Which quantities are not finite. Those of analysis.effective are left out where its problems were not all solved.
[[nodiscard]] KeyWarnings warnings_of_quantities(RunConfig const& config, QuantityTable const& table, bool solved_effective);

/// What the data and the range of the solution give reason to say.
[[nodiscard]] KeyWarnings warnings_of_data(RunConfig const& config, assembly::DataFindings const& data,
                                           assembly::Quantities const& of_solution);

}  // namespace poisson::app
