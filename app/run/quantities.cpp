#include "app/run/quantities.hpp"

#include "app/io/console.hpp"
#include "app/io/csv.hpp"
#include "assembly/expression/expression.hpp"
#include "gpu/core/error.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

namespace poisson::app {
namespace {

using Point = std::array<double, 3>;
constexpr std::array<char const*, 3> axes{"x", "y", "z"};

std::string text_of(Point const& x) {
  return "(" + number_text(x[0], 6) + ", " + number_text(x[1], 6) + ", " + number_text(x[2], 6) + ")";
}

/// The numbers of a table by the names that expressions have for them.
assembly::Constants constants_of(QuantityTable const& table) {
  assembly::Constants constants;
  for (auto const& [name, value] : table)
    if (value.is_number())
      constants[name] = value;
    else if (value.is_null())
      constants[name] = std::numeric_limits<double>::quiet_NaN();
    else
      for (std::size_t d = 0; d < 3; ++d)
        constants[name + "." + axes[d]] = value[d];
  return constants;
}

/// Adds the user's own quantities.
void add_own(RunConfig const& config, QuantityTable& table) {
  assembly::Constants constants = constants_of(table);
  constants.insert(config.problem.parameters.begin(), config.problem.parameters.end());
  for (auto const& [name, text] : config.output.quantities) {
    std::string const key = "output.quantities." + name;
    if (constants.contains(name))
      throw InputError(key, "'" + name + "' is the name of " +
                                (config.problem.parameters.contains(name) ? "a parameter" : "another quantity") +
                                " already; choose another one");
    assembly::Expression const expression(text, key, constants);
    if (!expression.is_constant())
      throw InputError(key, "a quantity is one number; x, y and z have no meaning here");
    double const value = constants[name] = expression(0, 0, 0);
    table.emplace_back(name, value);
  }
}

std::vector<Point> points_of(LineSpec const& line) {
  std::vector<Point> points;
  for (std::int64_t i = 0; i < line.points; ++i) {
    double const t = static_cast<double>(i) / static_cast<double>(line.points - 1);
    Point& x = points.emplace_back();
    for (std::size_t d = 0; d < 3; ++d)
      x[d] = (1 - t) * line.from[d] + t * line.to[d];
  }
  return points;
}

}  // namespace

RequestedQuantities::RequestedQuantities(RunConfig const& config, assembly::Discretization const& discretization)
    : config_(config), discretization_(discretization) {
  std::vector<Point> at;
  for (ProbeSpec const& probe : config.output.probes)
    at.push_back(probe.at);
  probes_ = discretization.locate(at);
  for (std::size_t i = 0; i < probes_.size(); ++i)
    if (probes_[i].cell < 0) {
      Point const nearest = discretization.nearest_node(at[i]);
      throw InputError("output.probes[" + std::to_string(i) + "].at",
                       "the point " + text_of(at[i]) + " is outside the mesh; the nearest node is " +
                           number_text(std::hypot(at[i][0] - nearest[0], at[i][1] - nearest[1], at[i][2] - nearest[2]), 4) +
                           " away, at " + text_of(nearest));
    }
  for (std::size_t i = 0; i < config.output.lines.size(); ++i) {
    lines_.push_back(discretization.locate(points_of(config.output.lines[i])));
    auto const outside = [](assembly::LocatedPoint const& point) { return point.cell < 0; };
    if (std::all_of(lines_.back().begin(), lines_.back().end(), outside))
      throw InputError("output.lines[" + std::to_string(i) + "]", "no point of this line is in the mesh");
  }
  // The names are known now, the numbers are not.
  if (!config.output.quantities.empty()) {
    assembly::Quantities of_solution;
    for (unsigned const id : discretization.summary().boundary_ids)
      of_solution.boundaries[id] = {1, 1};
    for (unsigned const id : discretization.summary().material_ids)
      of_solution.volumes[id] = 1;
    static_cast<void>(table(of_solution, 1, std::vector<assembly::PointValues>(probes_.size())));
  }
}

QuantityTable RequestedQuantities::table(assembly::Quantities const& of_solution, double integral_f,
                                         std::vector<assembly::PointValues> const& at_probes) const {
  QuantityTable table{{"min", of_solution.min},
                      {"max", of_solution.max},
                      {"mean", of_solution.mean},
                      {"energy", of_solution.energy},
                      {"integral_u", of_solution.integral_u},
                      {"integral_f", integral_f},
                      {"min_at", of_solution.min_at},
                      {"max_at", of_solution.max_at}};
  // Several ids may have one name; they are added up.
  auto const add = [&](char const* what, assembly::IdNames const& names, unsigned id, double value) {
    auto const named = names.find(id);
    std::string const name = std::string(what) + "." + (named == names.end() ? std::to_string(id) : named->second);
    auto const there = std::find_if(table.begin(), table.end(), [&](auto const& entry) { return entry.first == name; });
    if (there == table.end())
      table.emplace_back(name, value);
    else
      there->second = there->second.get<double>() + value;
  };
  assembly::MeshSummary const& mesh = discretization_.summary();
  for (auto const& [id, boundary] : of_solution.boundaries)
    add("flux", mesh.boundary_names, id, boundary.flux);
  for (auto const& [id, boundary] : of_solution.boundaries)
    add("area", mesh.boundary_names, id, boundary.area);
  for (auto const& [id, volume] : of_solution.volumes)
    add("volume", mesh.material_names, id, volume);
  for (std::size_t i = 0; i < at_probes.size(); ++i) {
    std::string const name = "probe." + config_.output.probes[i].name;
    table.emplace_back(name, at_probes[i].u);
    table.emplace_back(name + ".gradient", at_probes[i].gradient);
    table.emplace_back(name + ".flux", at_probes[i].flux);
    if (config_.problem.exact)
      table.emplace_back(name + ".exact", at_probes[i].exact);
  }
  add_own(config_, table);
  return table;
}

QuantityTable RequestedQuantities::evaluate(assembly::Quantities const& of_solution, double integral_f,
                                            std::span<double const> u) const {
  return table(of_solution, integral_f, discretization_.values_at(u, probes_));
}

void RequestedQuantities::write_lines(std::span<double const> u, ResultsDirectory& directory) const {
  double const nothing = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t l = 0; l < lines_.size(); ++l) {
    LineSpec const& line = config_.output.lines[l];
    std::vector<assembly::LocatedPoint> inside;
    std::copy_if(lines_[l].begin(), lines_[l].end(), std::back_inserter(inside), [](auto const& point) { return point.cell >= 0; });
    auto const values = discretization_.values_at(u, inside);
    std::vector<std::string> names{"distance",   "x",          "y",      "z",      "u",     "gradient_x",
                                   "gradient_y", "gradient_z", "flux_x", "flux_y", "flux_z"};
    if (config_.problem.exact)
      names.emplace_back("exact");
    std::vector<std::vector<double>> columns(names.size());
    std::size_t next = 0;
    for (auto const& point : lines_[l]) {
      assembly::PointValues const* const at = point.cell >= 0 ? &values[next++] : nullptr;
      std::vector<double> row{std::hypot(point.x[0] - line.from[0], point.x[1] - line.from[1], point.x[2] - line.from[2])};
      row.insert(row.end(), point.x.begin(), point.x.end());
      row.push_back(at ? at->u : nothing);
      for (std::size_t d = 0; d < 3; ++d)
        row.push_back(at ? at->gradient[d] : nothing);
      for (std::size_t d = 0; d < 3; ++d)
        row.push_back(at ? at->flux[d] : nothing);
      row.push_back(at ? at->exact : nothing);
      for (std::size_t c = 0; c < columns.size(); ++c)
        columns[c].push_back(row[c]);
    }
    std::vector<CsvColumn> table;
    for (std::size_t c = 0; c < columns.size(); ++c)
      table.push_back({names[c], columns[c]});
    directory.try_write("line_" + line.name + ".csv",
                        [&](std::filesystem::path const& path) { output::write_text_file(path, csv_text("point", 0, table)); });
    if (!config_.output.picture || !output::pictures_built())
      continue;
    std::vector<output::Curve> curves{{"u", columns[0], columns[4]}};
    if (config_.problem.exact)
      curves.push_back({"exact", columns[0], columns.back()});
    output::PlotOptions options;
    options.title = line.name + ": " + text_of(line.from) + " to " + text_of(line.to);
    options.x_label = "distance";
    options.y_label = "u";
    options.y_log = false;
    directory.try_write("line_" + line.name + ".png",
                        [&](std::filesystem::path const& path) { output::write_plot(path, curves, options); });
  }
}

std::vector<std::string> line_files(RunConfig const& config) {
  std::vector<std::string> names;
  for (LineSpec const& line : config.output.lines) {
    names.push_back("line_" + line.name + ".csv");
    if (config.output.picture && output::pictures_built())
      names.push_back("line_" + line.name + ".png");
  }
  return names;
}

}  // namespace poisson::app
