#include "app/results/quantities.hpp"

#include "app/io/console.hpp"
#include "app/io/csv.hpp"
#include "assembly/expression/expression.hpp"
#include "assembly/system/data_check.hpp"
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
#include <set>
#include <string_view>

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

/// Adds the user's own quantities. `more`: what expressions may use besides the quantities in the table, which come first.
void add_own(RunConfig const& config, assembly::Constants const& more, QuantityTable& table) {
  assembly::Constants constants = constants_of(table);
  constants.insert(more.begin(), more.end());
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

/// What there is of every material, and but for the last of every boundary.
constexpr std::array<std::string_view, 5> part_quantities{"min", "max", "mean", "integral_u", "energy"};

/// u in a material, or on a boundary.
struct OnPart {
  std::string name;           ///< or its id
  std::vector<unsigned> ids;  ///< by which configurations may call it
  double size = 0, integral_u = 0, energy = 0;
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();
};

/// Collects u on every group, by its label. Groups may overlap.
class OnParts {
public:
  template <class Values, class SizeOf>
  OnParts(assembly::IdGroups const& groups, std::map<unsigned, Values> const& of_ids, SizeOf const& size_of) {
    std::set<unsigned> ids;
    for (auto const& [id, values] : of_ids)
      ids.insert(id);
    for (auto const& group : groups.labelled(ids)) {
      OnPart& part = list.emplace_back(OnPart{group.label, {}});
      for (unsigned const id : groups.ids_of(group.parts))
        if (groups.with_id(id, ids) == group.parts)
          part.ids.push_back(id);
      for (unsigned const id : group.parts) {
        Values const& values = of_ids.at(id);
        part.size += size_of(id, values);
        part.integral_u += values.integral_u;
        if constexpr (requires { values.energy; })
          part.energy += values.energy;
        part.min = std::min(part.min, values.min);
        part.max = std::max(part.max, values.max);
      }
    }
  }
  [[nodiscard]] bool has_name(std::string const& name) const {
    return std::any_of(list.begin(), list.end(), [&](OnPart const& part) { return part.name == name; });
  }
  [[nodiscard]] bool has_id(unsigned id) const {
    return std::any_of(list.begin(), list.end(),
                       [&](OnPart const& part) { return std::find(part.ids.begin(), part.ids.end(), id) != part.ids.end(); });
  }

  std::vector<OnPart> list;
};

/// The groups of boundaries, and of surfaces inside the mesh.
assembly::IdGroups groups_of_faces(assembly::MeshSummary const& mesh) {
  assembly::IdGroups groups = mesh.boundary_groups;
  for (assembly::IdGroup const& group : mesh.inner_groups.list())
    groups.add(group);
  return groups;
}

std::map<unsigned, assembly::BoundaryFlux> with_surfaces(assembly::Quantities const& of_solution) {
  auto faces = of_solution.boundaries;
  for (auto const& [id, surface] : of_solution.surfaces)
    faces[id].add(surface);
  return faces;
}

/// If there are more boundaries and materials than this, the record does not have u on each of them. Expressions may use them all
/// the same.
constexpr std::size_t most_parts_in_record = 20;

/// Adds min, max, mean and integral_u of every material and boundary, and the energy of materials, as max.NAME; where a boundary
/// and a material have one name, as max.boundary.NAME and max.material.NAME, which expressions may always use. `more` gets what the
/// table does not have.
void add_parts(assembly::MeshSummary const& mesh, assembly::Quantities const& of_solution, QuantityTable& table,
               assembly::Constants& more) {
  OnParts const materials(mesh.material_groups, of_solution.materials,
                          [&](unsigned id, auto const&) { return of_solution.volumes.at(id); });
  OnParts const boundaries(groups_of_faces(mesh), with_surfaces(of_solution),
                           [](unsigned, auto const& values) { return values.area; });
  bool const all = materials.list.size() + boundaries.list.size() <= most_parts_in_record;
  // A material without a name that is the whole mesh has the quantities of the mesh.
  bool const whole = materials.list.size() == 1 && mesh.material_groups.names().empty();
  auto const add = [&](std::string const& what, std::string const& kind, double OnPart::*value, OnParts const& own,
                       OnParts const& others) {
    for (OnPart const& part : own.list) {
      bool const in_record = all && !(whole && &own == &materials);
      // Boundaries have no energy.
      bool const shared = value != &OnPart::energy && others.has_name(part.name) && !(whole && &others == &materials);
      std::string const name = what + "." + (shared ? kind + "." : "") + part.name;
      double const number = part.*value / (what == "mean" ? part.size : 1);
      if (in_record)
        table.emplace_back(name, number);
      else if (!(whole && &own == &materials && others.has_name(part.name)))
        more.emplace(name, number);
      more.emplace(what + "." + kind + "." + part.name, number);
      for (unsigned const id : part.ids) {
        more.emplace(what + "." + kind + "." + std::to_string(id), number);
        if (!others.has_id(id) || (whole && &others == &materials))
          more.emplace(what + "." + std::to_string(id), number);
      }
    }
  };
  constexpr std::array values{&OnPart::min, &OnPart::max, &OnPart::integral_u, &OnPart::integral_u, &OnPart::energy};
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const value = values[i];
    std::string const what(part_quantities[i]);
    add(what, "material", value, materials, boundaries);
    if (value != &OnPart::energy)
      add(what, "boundary", value, boundaries, materials);
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

Balance balance_of(assembly::Quantities const& quantities, double integral_f, double tolerance) {
  double sum = -integral_f, range = quantities.max - quantities.min;
  Balance result;
  result.scale = std::abs(integral_f);
  for (auto const& [id, boundary] : quantities.boundaries) {
    sum += boundary.flux;
    result.scale = std::max(result.scale, std::abs(boundary.flux));
  }
  if (range > 0)
    result.scale = std::max(result.scale, 2 * quantities.energy / range);
  result.relative = result.scale > 0 ? std::abs(sum) / result.scale : 0;
  double const largest = std::max(std::abs(quantities.max), std::abs(quantities.min));
  result.judged = range > std::max(1e-12, 10 * tolerance) * largest;
  return result;
}

bool is_of_part(std::string_view name) {
  return std::any_of(part_quantities.begin(), part_quantities.end(), [&](std::string_view what) {
    return name.size() > what.size() && name.starts_with(what) && name[what.size()] == '.';
  });
}

std::vector<Point> requested_points(RunConfig const& config) {
  std::vector<Point> points;
  for (ProbeSpec const& probe : config.output.probes)
    points.push_back(probe.at);
  auto const add = [&](auto const& specs) {
    for (auto const& spec : specs) {
      auto const more = points_of(spec);
      points.insert(points.end(), more.begin(), more.end());
    }
  };
  add(config.output.lines);
  add(config.output.circles);
  add(config.output.planes);
  return points;
}

namespace {

/// Calls body(key, first, end) for every line, circle and plane, which has these of the requested points.
template <class Body>
void for_each_set(RunConfig const& config, Body const& body) {
  std::size_t next = config.output.probes.size();
  auto const visit = [&](char const* what, auto const& specs, auto const& count_of) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      std::size_t const first = next;
      next += static_cast<std::size_t>(count_of(specs[i]));
      body("output." + std::string(what) + "[" + std::to_string(i) + "]", first, next);
    }
  };
  visit("lines", config.output.lines, [](LineSpec const& line) { return line.points; });
  visit("circles", config.output.circles, [](CircleSpec const& circle) { return circle.points; });
  visit("planes", config.output.planes, [](PlaneSpec const& plane) { return plane.points[0] * plane.points[1]; });
}

std::string text_of_k(std::array<double, 6> const& k) {
  std::string text = number_text(k[0], 6);
  auto const [xx, yy, zz, xy, xz, yz] = k;
  if (xx == yy && xx == zz && xy == 0 && xz == 0 && yz == 0)
    return text;
  for (std::size_t e = 1; e < (xy == 0 && xz == 0 && yz == 0 ? 3U : 6U); ++e)
    text += ", " + number_text(k[e], 6);
  return "[" + text + "]";
}

}  // namespace

KeyWarnings warnings_of_sides(RunConfig const& config, assembly::MeshSummary const& mesh,
                              std::vector<assembly::ChosenSide> const& sides) {
  std::vector<assembly::ChosenSide> jumps;  // ascending by point
  std::copy_if(sides.begin(), sides.end(), std::back_inserter(jumps), [](auto const& chosen) { return chosen.other.has_value(); });
  KeyWarnings warnings;
  if (jumps.empty())
    return warnings;
  std::vector<Point> const points = requested_points(config);
  auto const is_between_sides = [](assembly::PointSide const& a, assembly::PointSide const& b) {
    return a.surface != 0 && b.surface != 0 && a.surface != b.surface;
  };
  auto const name_of = [&](assembly::PointSide const& side, assembly::PointSide const& other) {
    std::string const label = mesh.material_groups.label(side.material);
    if (side.material == other.material && is_between_sides(side, other))
      return std::string("the cell at its side of ") + (side.surface == 1 ? "smaller" : "larger") + " x (of y or z along x)";
    if (side.material == other.material)
      return "the cell with k = " + text_of_k(side.k);
    return mesh.material_groups.names().empty() ? "material " + label : "'" + label + "'";
  };
  auto const between = [&](assembly::ChosenSide const& chosen) {
    auto const& [side, other] = chosen;
    if (side.material == other->material && is_between_sides(side, *other))
      return std::string("on a surface with a condition, where the gradient jumps");
    if (side.material == other->material)
      return "where k jumps from " + text_of_k(side.k) + " to " + text_of_k(other->k) + " between two cells";
    return "between " + name_of(side, *other) + " (k = " + text_of_k(side.k) + ") and " + name_of(*other, side) +
           " (k = " + text_of_k(other->k) + ")";
  };
  auto next = jumps.begin();
  for (; next != jumps.end() && next->side.point < static_cast<std::int64_t>(config.output.probes.size()); ++next) {
    auto const i = static_cast<std::size_t>(next->side.point);
    warnings.emplace_back("output.probes[" + std::to_string(i) + "].at",
                          "the point " + text_of(points[i]) + " lies " + between(*next) + ": its gradient and flux are those in " +
                              name_of(next->side, *next->other) + "; move it by a little into " +
                              name_of(*next->other, next->side) + " for those there");
  }
  for_each_set(config, [&](std::string const& key, std::size_t begin, std::size_t end) {
    auto const first = next;
    next = std::find_if(first, jumps.end(), [&](auto const& of) { return of.side.point >= static_cast<std::int64_t>(end); });
    auto const count = static_cast<std::size_t>(next - first);
    // A curve that crosses such a face has a point there; one that runs along it sees one side only.
    if (2 * count < end - begin)
      return;
    std::string const where = text_of(points[static_cast<std::size_t>(first->side.point)]) + " " + between(*first);
    warnings.emplace_back(key,
                          std::to_string(count) + " of " + std::to_string(end - begin) +
                              " points lie where the gradient jumps, the first of them " + where +
                              ": its gradient and flux are those in " + name_of(first->side, *first->other) +
                              ", and so on: where two materials meet those in the one with the lower id; move them by a little "
                              "for those on the other side");
  });
  return warnings;
}

KeyWarnings warnings_of_moved(RunConfig const& config, std::vector<double> const& moved) {
  KeyWarnings warnings;
  for (std::size_t i = 0; i < config.output.probes.size(); ++i)
    if (moved[i] > 0)
      warnings.emplace_back("output.probes[" + std::to_string(i) + "].at", "the point " + text_of(config.output.probes[i].at) +
                                                                               " is outside the mesh by " +
                                                                               number_text(moved[i], 3) + "; it was moved onto it");
  for_each_set(config, [&](std::string const& key, std::size_t first, std::size_t end) {
    std::int64_t count = 0;
    double farthest = 0;
    for (std::size_t k = first; k < end; ++k) {
      count += moved[k] > 0 ? 1 : 0;
      farthest = std::max(farthest, moved[k]);
    }
    if (count > 0)
      warnings.emplace_back(key, std::to_string(count) + (count == 1 ? " point is" : " points are") + " outside the mesh, by " +
                                     number_text(farthest, 3) + " at most; " + (count == 1 ? "it was" : "they were") +
                                     " moved onto it");
  });
  return warnings;
}

KeyWarnings warnings_of_moved_sources(RunConfig const& config, std::vector<double> const& moved) {
  KeyWarnings warnings;
  std::size_t const n_points = config.problem.point_sources.size();
  for (std::size_t i = 0; i < moved.size(); ++i) {
    if (!(moved[i] > 0))
      continue;
    std::string const distance = number_text(moved[i], 3);
    if (i < n_points)
      warnings.emplace_back("problem.point_sources[" + std::to_string(i) + "].at",
                            "the point " + text_of(config.problem.point_sources[i].at) + " is outside the mesh by " + distance +
                                "; it was moved onto it");
    else
      warnings.emplace_back("problem.line_sources[" + std::to_string(i - n_points) + "]",
                            "the line is partly outside the mesh, by " + distance + " at most; this part was moved onto the mesh");
  }
  return warnings;
}

KeyWarnings warnings_of_quantities(RunConfig const& config, QuantityTable const& table) {
  KeyWarnings warnings;
  for (auto const& [name, value] : table) {
    bool finite = true;
    for (auto const& part : value.is_array() ? value : nlohmann::ordered_json::array({value}))
      finite = finite && part.is_number() && std::isfinite(part.get<double>());
    if (finite)
      continue;
    bool const own = std::any_of(config.output.quantities.begin(), config.output.quantities.end(),
                                 [&, &name = name](QuantitySpec const& entry) { return entry.name == name; });
    warnings.emplace_back(own ? "output.quantities." + name : "output",
                          "the quantity '" + name + "' is not a finite number" +
                              (own ? "; look for a division by 0 or a root of a negative number in its expression" : ""));
  }
  return warnings;
}

KeyWarnings warnings_of_data(RunConfig const& config, assembly::DataFindings const& data, assembly::Quantities const& of_solution) {
  KeyWarnings warnings = data.warnings(config.problem.boundary.size(), config.problem.point_sources.size());
  // A solution to a coarse tolerance leaves the range by as much.
  bool const close = config.solver.tolerance <= 1e-9 && !config.solver.to_discretization;
  if (std::string text = data.range_warning(of_solution.min, of_solution.min_at, of_solution.max, of_solution.max_at);
      close && !text.empty())
    warnings.emplace_back("problem.mesh", std::move(text));
  return warnings;
}

RequestedQuantities::RequestedQuantities(RunConfig const& config, assembly::MeshSummary const& mesh, assembly::Extent const& extent,
                                         std::vector<bool> inside, NearestNode const& nearest_node)
    : config_(config), mesh_(mesh), points_(requested_points(config)), inside_(std::move(inside)) {
  std::size_t const n_probes = config.output.probes.size();
  for (std::size_t i = 0; i < n_probes; ++i)
    if (!inside_[i]) {
      Point const &at = points_[i], nearest = nearest_node(at);
      throw InputError("output.probes[" + std::to_string(i) + "].at",
                       "the point " + text_of(at) + " is outside the mesh; the nearest node is " +
                           number_text(std::hypot(at[0] - nearest[0], at[1] - nearest[1], at[2] - nearest[2]), 4) + " away, at " +
                           text_of(nearest));
    }
  std::size_t first = n_probes;
  auto const find = [&](char const* what, auto const& specs, auto const& count_of) {
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      Range const range{first, first + static_cast<std::size_t>(count_of(specs[i]))};
      first = range.end;
      if (count_outside(range) == static_cast<std::int64_t>(range.end - range.begin))
        throw InputError("output." + std::string(what) + "s[" + std::to_string(i) + "]",
                         "no point of this " + std::string(what) + " is in the mesh");
      ranges.push_back(range);
    }
    return ranges;
  };
  lines_ = find("line", config.output.lines, [](LineSpec const& line) { return line.points; });
  circles_ = find("circle", config.output.circles, [](CircleSpec const& circle) { return circle.points; });
  planes_ = find("plane", config.output.planes, [](PlaneSpec const& plane) { return plane.points[0] * plane.points[1]; });
  for (std::size_t i = 0; i < config.output.slices.size(); ++i)
    require_in_mesh(config.output.slices[i], "output.slices[" + std::to_string(i) + "]", extent);
  // The names are known now, the numbers are not.
  if (!config.output.quantities.empty()) {
    assembly::Quantities of_solution;
    for (unsigned const id : mesh.boundary_ids)
      of_solution.boundaries[id].area = of_solution.boundaries[id].flux = 1;
    for (unsigned const id : mesh.inner_ids)
      if (!mesh.boundary_ids.contains(id))
        of_solution.surfaces[id].area = of_solution.surfaces[id].flux = 1;
    for (unsigned const id : mesh.material_ids) {
      of_solution.volumes[id] = 1;
      of_solution.materials[id] = {};
    }
    static_cast<void>(table(of_solution, 1, std::vector<assembly::PointValues>(n_probes)));
  }
}

std::int64_t RequestedQuantities::count_outside(Range const& range) const {
  return std::count(inside_.begin() + static_cast<std::ptrdiff_t>(range.begin),
                    inside_.begin() + static_cast<std::ptrdiff_t>(range.end), false);
}

QuantityTable RequestedQuantities::table(assembly::Quantities const& of_solution, double integral_f,
                                         std::span<assembly::PointValues const> at_probes) const {
  QuantityTable table{{"min", of_solution.min},
                      {"max", of_solution.max},
                      {"mean", of_solution.mean},
                      {"energy", of_solution.energy},
                      {"integral_u", of_solution.integral_u},
                      {"integral_f", integral_f},
                      {"min_at", of_solution.min_at},
                      {"max_at", of_solution.max_at}};
  std::vector<std::pair<std::string, std::string>> by_id;  // what expressions may write for a quantity whose id has a name
  // A group is the sum of its parts, so that groups may overlap; several ids may have one name.
  auto const add = [&](char const* what, assembly::IdGroups const& groups, auto const& of_parts, auto const& value_of) {
    std::set<unsigned> parts;
    for (auto const& [part, value] : of_parts)
      parts.insert(part);
    for (auto const& group : groups.labelled(parts)) {
      double sum = 0;
      for (unsigned const part : group.parts)
        sum += value_of(of_parts.at(part));
      std::string const name = std::string(what) + "." + group.label;
      table.emplace_back(name, sum);
      for (unsigned const id : groups.ids_of(group.parts))
        if (groups.with_id(id, parts) == group.parts)
          by_id.emplace_back(std::string(what) + "." + std::to_string(id), name);
    }
  };
  assembly::MeshSummary const& mesh = mesh_;
  assembly::IdGroups const groups = groups_of_faces(mesh);
  auto const faces = with_surfaces(of_solution);
  add("flux", groups, faces, [](auto const& boundary) { return boundary.flux; });
  add("area", groups, faces, [](auto const& boundary) { return boundary.area; });
  add("volume", mesh.material_groups, of_solution.volumes, [](double volume) { return volume; });
  auto const& own = config_.output.quantities;
  if (std::none_of(own.begin(), own.end(), [](auto const& quantity) { return quantity.name == "balance"; })) {  // theirs counts
    Balance const balance = balance_of(of_solution, integral_f, 0);
    table.emplace_back("balance", balance.judged ? balance.relative : 0);
  }
  for (std::size_t i = 0; i < at_probes.size(); ++i) {
    std::string const name = "probe." + config_.output.probes[i].name;
    table.emplace_back(name, at_probes[i].u);
    table.emplace_back(name + ".gradient", at_probes[i].gradient);
    table.emplace_back(name + ".flux", at_probes[i].flux);
    if (config_.problem.exact)
      table.emplace_back(name + ".exact", at_probes[i].exact);
  }
  assembly::Constants more;
  for (auto const& [alias, name] : by_id)
    for (auto const& [known, value] : table)
      if (known == name && value.is_number())
        more.emplace(alias, value);
  add_parts(mesh, of_solution, table, more);
  add_own(config_, more, table);
  return table;
}

QuantityTable RequestedQuantities::evaluate(assembly::Quantities const& of_solution, double integral_f,
                                            std::span<assembly::PointValues const> at_points) const {
  return table(of_solution, integral_f, at_points.first(config_.output.probes.size()));
}

RequestedQuantities::Table RequestedQuantities::table_at(Range const& range,
                                                         std::span<assembly::PointValues const> at_points) const {
  double const nothing = std::numeric_limits<double>::quiet_NaN();
  Table table{{"x", "y", "z", config_.output.name, "gradient_x", "gradient_y", "gradient_z", "flux_x", "flux_y", "flux_z"}, {}};
  if (config_.problem.exact)
    table.names.emplace_back("exact");
  table.columns.resize(table.names.size());
  for (std::size_t i = range.begin; i < range.end; ++i) {
    assembly::PointValues const* const at = inside_[i] ? &at_points[i] : nullptr;
    std::vector<double> row(points_[i].begin(), points_[i].end());
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
  std::vector<output::Curve> curves{{config_.output.name, table.columns[0], table.columns[u_column]}};
  if (config_.problem.exact)
    curves.push_back({"exact", table.columns[0], table.columns.back()});
  output::PlotOptions options;
  options.title = title;
  options.x_label = table.names[0];
  options.y_label = config_.output.label();
  options.y_log = false;
  for (std::string const& ending : config_.output.picture_endings())
    directory.try_write(name + ending, [&](std::filesystem::path const& path) { output::write_plot(path, curves, options); });
}

void RequestedQuantities::write_plane(PlaneSpec const& plane, Range const& range, Table const& table,
                                      ResultsDirectory& directory) const {
  std::vector<CsvColumn> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    columns.push_back({table.names[c], table.columns[c]});
  directory.try_write("plane_" + plane.name + ".csv",
                      [&](std::filesystem::path const& path) { output::write_text_file(path, csv_text("point", 0, columns)); });
  // Columns x, y, z; u; gradient; flux; exact, as table_at makes them.
  auto const vectors = [&](std::size_t first) {
    std::vector<double> values;
    for (std::size_t i = 0; i < range.end - range.begin; ++i)
      for (std::size_t d = 0; d < 3; ++d)
        values.push_back(table.columns[first + d][i]);
    return values;
  };
  std::vector<double> const x = vectors(0), gradient = vectors(4), flux = vectors(7);
  std::vector<output::Field> fields{
      {config_.output.name, 1, table.columns[3], {}}, {"gradient", 3, gradient, {}}, {"flux", 3, flux, {}}};
  if (config_.problem.exact)
    fields.push_back({"exact", 1, table.columns.back(), {}});
  std::vector<unsigned char> hidden;
  for (std::size_t i = range.begin; i < range.end; ++i)
    hidden.push_back(inside_[i] ? 0 : 1);
  directory.try_write("plane_" + plane.name + ".vts", [&](std::filesystem::path const& path) {
    output::write_vts(path, plane.points, x, hidden, fields, config_.output.vtk);
  });
  if (!config_.output.picture || !output::pictures_built())
    return;
  output::PictureOptions options;
  options.title = plane.name + ": " + config_.output.name + " on a plane from " + text_of(plane.origin);
  options.quantity = config_.output.label();
  options.shrink = true;
  for (std::string const& ending : config_.output.picture_endings()) {
    options.format = *parse_name<output::PictureFormat>(ending.substr(1));
    directory.try_write("plane_" + plane.name + ending, [&](std::filesystem::path const& path) {
      output::write_text_file(
          path, output::plane_png({plane.points, plane.origin, plane.first, plane.second, table.columns[3]}, options));
    });
  }
}

void RequestedQuantities::write_files(std::span<assembly::PointValues const> at_points, ResultsDirectory& directory) const {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    LineSpec const& line = config_.output.lines[i];
    std::vector<double> distance;
    for (std::size_t j = lines_[i].begin; j < lines_[i].end; ++j)
      distance.push_back(std::hypot(points_[j][0] - line.from[0], points_[j][1] - line.from[1], points_[j][2] - line.from[2]));
    Table table = table_at(lines_[i], at_points);
    table.insert_first("distance", std::move(distance));
    write_curve("line_" + line.name, table, line.name + ": " + text_of(line.from) + " to " + text_of(line.to), directory);
  }
  for (std::size_t i = 0; i < circles_.size(); ++i) {
    CircleSpec const& circle = config_.output.circles[i];
    std::vector<double> angle;
    for (std::int64_t j = 0; j < circle.points; ++j)
      angle.push_back(360 * static_cast<double>(j) / static_cast<double>(circle.points - 1));
    Table table = table_at(circles_[i], at_points);
    table.insert_first("angle", std::move(angle));
    write_curve("circle_" + circle.name, table,
                circle.name + ": radius " + number_text(circle.radius, 6) + " around " + text_of(circle.center), directory);
  }
  for (std::size_t i = 0; i < planes_.size(); ++i)
    write_plane(config_.output.planes[i], planes_[i], table_at(planes_[i], at_points), directory);
}

std::vector<std::string> RequestedQuantities::notes() const {
  std::vector<std::string> notes;
  auto const add = [&](char const* what, std::string const& name, Range const& range) {
    if (auto const n = count_outside(range); n > 0)
      notes.push_back(std::string(what) + " '" + name + "': " + with_thousands(n) + " of " +
                      with_thousands(static_cast<std::int64_t>(range.end - range.begin)) + " points are outside the mesh");
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
      for (std::string const& ending : config.output.picture_endings())
        names.push_back(name + ending);
  };
  for (LineSpec const& line : config.output.lines)
    add_curve("line_" + line.name);
  for (CircleSpec const& circle : config.output.circles)
    add_curve("circle_" + circle.name);
  for (PlaneSpec const& plane : config.output.planes) {
    names.push_back("plane_" + plane.name + ".csv");
    names.push_back("plane_" + plane.name + ".vts");
    if (config.output.picture && output::pictures_built())
      for (std::string const& ending : config.output.picture_endings())
        names.push_back("plane_" + plane.name + ending);
  }
  for (SliceSpec const& slice : config.output.slices)
    names.push_back("slice_" + slice.name + ".vtp");
  for (ContourSpec const& contour : config.output.contours)
    names.push_back("contour_" + contour.name + ".vtp");
  return names;
}

}  // namespace poisson::app
