#include "app/run/quantities.hpp"

#include "app/io/console.hpp"
#include "app/io/csv.hpp"
#include "assembly/expression/expression.hpp"
#include "gpu/core/error.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <numbers>

namespace poisson::app {
namespace {

using Point = std::array<double, 3>;
constexpr std::array<char const*, 3> axis_names{"x", "y", "z"};

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
        constants[name + "." + axis_names[d]] = value[d];
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

std::vector<Point> points_of(CircleSpec const& circle) {
  double const length = std::hypot(circle.normal[0], circle.normal[1], circle.normal[2]);
  Point n{}, first{};
  for (std::size_t d = 0; d < 3; ++d)
    n[d] = circle.normal[d] / length;
  // Angles begin in the direction of x, or of y where x is normal to the circle.
  std::size_t const axis = std::abs(n[0]) < 1 - 1e-10 ? 0 : 1;
  for (std::size_t d = 0; d < 3; ++d)
    first[d] = (d == axis ? 1 : 0) - n[axis] * n[d];
  double const of_first = std::hypot(first[0], first[1], first[2]);
  for (double& component : first)
    component /= of_first;
  Point const second{n[1] * first[2] - n[2] * first[1], n[2] * first[0] - n[0] * first[2], n[0] * first[1] - n[1] * first[0]};
  std::vector<Point> points;
  for (std::int64_t i = 0; i < circle.points; ++i) {
    double const angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(circle.points - 1);
    Point& x = points.emplace_back();
    for (std::size_t d = 0; d < 3; ++d)
      x[d] = circle.center[d] + circle.radius * (std::cos(angle) * first[d] + std::sin(angle) * second[d]);
  }
  return points;
}

/// Those along the first edge next to each other.
std::vector<Point> points_of(PlaneSpec const& plane) {
  std::vector<Point> points;
  for (std::int64_t j = 0; j < plane.points[1]; ++j)
    for (std::int64_t i = 0; i < plane.points[0]; ++i) {
      double const s = static_cast<double>(i) / static_cast<double>(plane.points[0] - 1);
      double const t = static_cast<double>(j) / static_cast<double>(plane.points[1] - 1);
      Point& x = points.emplace_back();
      for (std::size_t d = 0; d < 3; ++d)
        x[d] = plane.origin[d] + s * plane.first[d] + t * plane.second[d];
    }
  return points;
}

bool is_outside(assembly::LocatedPoint const& point) {
  return point.cell < 0;
}

/// Finds the points of every entry of a list. Throws InputError for one that is outside the mesh.
template <class Spec>
std::vector<std::vector<assembly::LocatedPoint>> locate_all(assembly::Discretization const& discretization,
                                                            std::vector<Spec> const& specs, std::string const& what) {
  std::vector<std::vector<assembly::LocatedPoint>> located;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    located.push_back(discretization.locate(points_of(specs[i])));
    if (std::all_of(located.back().begin(), located.back().end(), is_outside))
      throw InputError("output." + what + "s[" + std::to_string(i) + "]", "no point of this " + what + " is in the mesh");
  }
  return located;
}

}  // namespace

namespace {

/// Throws InputError where all corners of the mesh's bounding box are on one side of the plane.
void require_in_mesh(SliceSpec const& slice, std::string const& key, assembly::Extent const& extent) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (unsigned corner = 0; corner < 8; ++corner) {
    double distance = 0;
    for (unsigned d = 0; d < 3; ++d)
      distance += slice.normal[d] * (((corner >> d & 1U) != 0 ? extent.high[d] : extent.low[d]) - slice.origin[d]);
    low = std::min(low, distance);
    high = std::max(high, distance);
  }
  if (low > 0 || high < 0)
    throw InputError(key,
                     "the plane does not meet the mesh, which extends from " + text_of(extent.low) + " to " + text_of(extent.high));
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
  lines_ = locate_all(discretization, config.output.lines, "line");
  circles_ = locate_all(discretization, config.output.circles, "circle");
  planes_ = locate_all(discretization, config.output.planes, "plane");
  for (std::size_t i = 0; i < config.output.slices.size(); ++i)
    require_in_mesh(config.output.slices[i], "output.slices[" + std::to_string(i) + "]", discretization.extent());
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

RequestedQuantities::Table RequestedQuantities::table_at(std::vector<assembly::LocatedPoint> const& points,
                                                         std::span<double const> u) const {
  double const nothing = std::numeric_limits<double>::quiet_NaN();
  std::vector<assembly::LocatedPoint> inside;
  std::copy_if(points.begin(), points.end(), std::back_inserter(inside), [](auto const& point) { return !is_outside(point); });
  auto const values = discretization_.values_at(u, inside);
  Table table{{"x", "y", "z", "u", "gradient_x", "gradient_y", "gradient_z", "flux_x", "flux_y", "flux_z"}, {}};
  if (config_.problem.exact)
    table.names.emplace_back("exact");
  table.columns.resize(table.names.size());
  std::size_t next = 0;
  for (auto const& point : points) {
    assembly::PointValues const* const at = is_outside(point) ? nullptr : &values[next++];
    std::vector<double> row(point.x.begin(), point.x.end());
    row.push_back(at ? at->u : nothing);
    for (std::size_t d = 0; d < 3; ++d)
      row.push_back(at ? at->gradient[d] : nothing);
    for (std::size_t d = 0; d < 3; ++d)
      row.push_back(at ? at->flux[d] : nothing);
    row.push_back(at ? at->exact : nothing);
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      table.columns[c].push_back(row[c]);
  }
  return table;
}

void RequestedQuantities::write_curve(std::string const& name, Table const& table, std::string const& title,
                                      ResultsDirectory& directory) const {
  std::vector<CsvColumn> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    columns.push_back({table.names[c], table.columns[c]});
  directory.try_write(name + ".csv",
                      [&](std::filesystem::path const& path) { output::write_text_file(path, csv_text("point", 0, columns)); });
  if (!config_.output.picture || !output::pictures_built())
    return;
  constexpr std::size_t u_column = 4;  // after the place on the curve and x, y, z
  std::vector<output::Curve> curves{{"u", table.columns[0], table.columns[u_column]}};
  if (config_.problem.exact)
    curves.push_back({"exact", table.columns[0], table.columns.back()});
  output::PlotOptions options;
  options.title = title;
  options.x_label = table.names[0];
  options.y_label = "u";
  options.y_log = false;
  directory.try_write(name + ".png", [&](std::filesystem::path const& path) { output::write_plot(path, curves, options); });
}

void RequestedQuantities::write_plane(PlaneSpec const& plane, std::vector<assembly::LocatedPoint> const& points, Table const& table,
                                      ResultsDirectory& directory) const {
  std::vector<CsvColumn> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    columns.push_back({table.names[c], table.columns[c]});
  directory.try_write("plane_" + plane.name + ".csv",
                      [&](std::filesystem::path const& path) { output::write_text_file(path, csv_text("point", 0, columns)); });
  // Columns x, y, z; u; gradient; flux; exact, as table_at makes them.
  auto const vectors = [&](std::size_t first) {
    std::vector<double> values;
    for (std::size_t i = 0; i < points.size(); ++i)
      for (std::size_t d = 0; d < 3; ++d)
        values.push_back(table.columns[first + d][i]);
    return values;
  };
  std::vector<double> const x = vectors(0), gradient = vectors(4), flux = vectors(7);
  std::vector<output::Field> fields{{"u", 1, table.columns[3], {}}, {"gradient", 3, gradient, {}}, {"flux", 3, flux, {}}};
  if (config_.problem.exact)
    fields.push_back({"exact", 1, table.columns.back(), {}});
  std::vector<unsigned char> hidden;
  for (auto const& point : points)
    hidden.push_back(is_outside(point) ? 1 : 0);
  directory.try_write("plane_" + plane.name + ".vts", [&](std::filesystem::path const& path) {
    output::write_vts(path, plane.points, x, hidden, fields, config_.output.vtk);
  });
  if (!config_.output.picture || !output::pictures_built())
    return;
  output::PictureOptions options;
  options.title = plane.name + ": u on a plane from " + text_of(plane.origin);
  options.quantity = "u";
  options.shrink = true;
  directory.try_write("plane_" + plane.name + ".png", [&](std::filesystem::path const& path) {
    output::write_text_file(path,
                            output::plane_png({plane.points, plane.origin, plane.first, plane.second, table.columns[3]}, options));
  });
}

void RequestedQuantities::write_files(std::span<double const> u, ResultsDirectory& directory) const {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    LineSpec const& line = config_.output.lines[i];
    std::vector<double> distance;
    for (auto const& point : lines_[i])
      distance.push_back(std::hypot(point.x[0] - line.from[0], point.x[1] - line.from[1], point.x[2] - line.from[2]));
    Table table = table_at(lines_[i], u);
    table.insert_first("distance", std::move(distance));
    write_curve("line_" + line.name, table, line.name + ": " + text_of(line.from) + " to " + text_of(line.to), directory);
  }
  for (std::size_t i = 0; i < circles_.size(); ++i) {
    CircleSpec const& circle = config_.output.circles[i];
    std::vector<double> angle;
    for (std::int64_t j = 0; j < circle.points; ++j)
      angle.push_back(360 * static_cast<double>(j) / static_cast<double>(circle.points - 1));
    Table table = table_at(circles_[i], u);
    table.insert_first("angle", std::move(angle));
    write_curve("circle_" + circle.name, table,
                circle.name + ": radius " + number_text(circle.radius, 6) + " around " + text_of(circle.center), directory);
  }
  for (std::size_t i = 0; i < planes_.size(); ++i)
    write_plane(config_.output.planes[i], planes_[i], table_at(planes_[i], u), directory);
}

std::vector<std::string> RequestedQuantities::notes() const {
  std::vector<std::string> notes;
  auto const add = [&](char const* what, std::string const& name, std::vector<assembly::LocatedPoint> const& points) {
    if (auto const n = std::count_if(points.begin(), points.end(), is_outside); n > 0)
      notes.push_back(std::string(what) + " '" + name + "': " + with_thousands(n) + " of " +
                      with_thousands(static_cast<std::int64_t>(points.size())) + " points are outside the mesh");
  };
  for (std::size_t i = 0; i < lines_.size(); ++i)
    add("line", config_.output.lines[i].name, lines_[i]);
  for (std::size_t i = 0; i < circles_.size(); ++i)
    add("circle", config_.output.circles[i].name, circles_[i]);
  for (std::size_t i = 0; i < planes_.size(); ++i)
    add("plane", config_.output.planes[i].name, planes_[i]);
  return notes;
}

std::vector<std::string> quantity_files(RunConfig const& config) {
  std::vector<std::string> names;
  auto const add_curve = [&](std::string const& name) {
    names.push_back(name + ".csv");
    if (config.output.picture && output::pictures_built())
      names.push_back(name + ".png");
  };
  for (LineSpec const& line : config.output.lines)
    add_curve("line_" + line.name);
  for (CircleSpec const& circle : config.output.circles)
    add_curve("circle_" + circle.name);
  for (PlaneSpec const& plane : config.output.planes) {
    names.push_back("plane_" + plane.name + ".csv");
    names.push_back("plane_" + plane.name + ".vts");
    if (config.output.picture && output::pictures_built())
      names.push_back("plane_" + plane.name + ".png");
  }
  for (SliceSpec const& slice : config.output.slices)
    names.push_back("slice_" + slice.name + ".vtp");
  for (ContourSpec const& contour : config.output.contours)
    names.push_back("contour_" + contour.name + ".vtp");
  return names;
}

}  // namespace poisson::app
