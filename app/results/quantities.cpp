#include "app/results/quantities.hpp"

#include "app/io/console.hpp"
#include "assembly/expression/expression.hpp"
#include "assembly/system/data_check.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>

namespace poisson::app {
namespace {

using Point = std::array<double, 3>;
constexpr std::array<char const*, 3> axis_names{"x", "y", "z"};

/// The numbers of a table by the names that expressions have for them. `more`: what else there is; the table comes first.
assembly::Constants constants_of(QuantityTable const& table, assembly::Constants const& more) {
  assembly::Constants constants;
  for (auto const& [name, value] : table)
    if (value.is_number())
      constants[name] = value;
    else if (value.is_null())
      constants[name] = std::numeric_limits<double>::quiet_NaN();
    else
      for (std::size_t d = 0; d < 3; ++d)
        constants[name + "." + axis_names[d]] = value[d];
  constants.insert(more.begin(), more.end());
  return constants;
}

/// The user's own quantities, from all others.
std::vector<std::pair<std::string, double>> own_values(RunConfig const& config, assembly::Constants constants) {
  std::vector<std::pair<std::string, double>> result;
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
    result.emplace_back(name, value);
  }
  return result;
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

}  // namespace

Balance balance_of(assembly::Quantities const& quantities, double integral_f, double tolerance) {
  double sum = -integral_f, range = quantities.max - quantities.min, largest_flux = 0;
  for (auto const& [id, boundary] : quantities.boundaries) {
    sum += boundary.flux;
    largest_flux = std::max(largest_flux, std::abs(boundary.flux));
  }
  // Where u is constant to its last digits, its gradient is rounding; so are fluxes, unless there are sources.
  double const largest = std::max(std::abs(quantities.max), std::abs(quantities.min));
  double const through = range > std::max(1e-12, 10 * tolerance) * largest ? 2 * quantities.energy / range : 0;
  Balance result;
  result.scale = std::max({std::abs(integral_f), largest_flux, through});
  result.relative = result.scale > 0 ? std::abs(sum) / result.scale : 0;
  // Where u is constant on each part of the mesh, the energy is the square of rounding.
  bool const flows = through > 1e-12 * result.scale, is_fed = integral_f != 0 && std::abs(integral_f) >= 0.5 * largest_flux;
  result.judged = flows || is_fed;
  return result;
}

std::string point_text(Point const& x) {
  return "(" + number_text(x[0], 6) + ", " + number_text(x[1], 6) + ", " + number_text(x[2], 6) + ")";
}

bool is_of_part(std::string_view name) {
  return std::any_of(part_quantities.begin(), part_quantities.end(), [&](std::string_view what) {
    return name.size() > what.size() && name.starts_with(what) && name[what.size()] == '.';
  });
}

std::vector<Point> requested_points(RunConfig const& config, PointSets const& sets) {
  std::vector<Point> points;
  for (ProbeSpec const& probe : config.output.probes)
    points.push_back(probe.at);
  for (PointSet const* const set : sets)
    points.insert(points.end(), set->points.begin(), set->points.end());
  return points;
}

namespace {

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

KeyWarnings warnings_of_sides(RunConfig const& config, PointSets const& sets, assembly::MeshSummary const& mesh,
                              std::vector<assembly::ChosenSide> const& sides) {
  std::vector<assembly::ChosenSide> jumps;  // ascending by point
  std::copy_if(sides.begin(), sides.end(), std::back_inserter(jumps), [](auto const& chosen) { return chosen.other.has_value(); });
  KeyWarnings warnings;
  if (jumps.empty())
    return warnings;
  std::vector<Point> const points = requested_points(config, sets);
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
                          "the point " + point_text(points[i]) + " lies " + between(*next) +
                              ": its gradient and flux are those in " + name_of(next->side, *next->other) +
                              "; move it by a little into " + name_of(*next->other, next->side) + " for those there");
  }
  for (PointSet const* const set : sets) {
    auto const first = next;
    std::size_t const n_points = set->points.size(), end = set->first + n_points;
    next = std::find_if(first, jumps.end(), [&](auto const& of) { return of.side.point >= static_cast<std::int64_t>(end); });
    auto const count = static_cast<std::size_t>(next - first);
    // A curve that crosses such a face has a point there; one that runs along it sees one side only.
    if (2 * count < n_points)
      continue;
    std::string const where = point_text(points[static_cast<std::size_t>(first->side.point)]) + " " + between(*first);
    warnings.emplace_back(set->key,
                          std::to_string(count) + " of " + std::to_string(n_points) +
                              " points lie where the gradient jumps, the first of them " + where +
                              ": its gradient and flux are those in " + name_of(first->side, *first->other) +
                              ", and so on: where two materials meet those in the one with the lower id; move them by a little "
                              "for those on the other side");
  }
  return warnings;
}

KeyWarnings warnings_of_moved(RunConfig const& config, PointSets const& sets, std::vector<double> const& moved) {
  KeyWarnings warnings;
  for (std::size_t i = 0; i < config.output.probes.size(); ++i)
    if (moved[i] > 0)
      warnings.emplace_back("output.probes[" + std::to_string(i) + "].at", "the point " + point_text(config.output.probes[i].at) +
                                                                               " is outside the mesh by " +
                                                                               number_text(moved[i], 3) + "; it was moved onto it");
  for (PointSet const* const set : sets) {
    std::int64_t count = 0;
    double farthest = 0;
    for (std::size_t k = set->first; k < set->first + set->points.size(); ++k) {
      count += moved[k] > 0 ? 1 : 0;
      farthest = std::max(farthest, moved[k]);
    }
    if (count > 0)
      warnings.emplace_back(set->key, std::to_string(count) + (count == 1 ? " point is" : " points are") +
                                          " outside the mesh, by " + number_text(farthest, 3) + " at most; " +
                                          (count == 1 ? "it was" : "they were") + " moved onto it");
  }
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
                            "the point " + point_text(config.problem.point_sources[i].at) + " is outside the mesh by " + distance +
                                "; it was moved onto it");
    else
      warnings.emplace_back("problem.line_sources[" + std::to_string(i - n_points) + "]",
                            "the line is partly outside the mesh, by " + distance + " at most; this part was moved onto the mesh");
  }
  return warnings;
}

KeyWarnings warnings_of_quantities(RunConfig const& config, QuantityTable const& table, bool solved_effective) {
  KeyWarnings warnings;
  for (auto const& [name, value] : table) {
    bool finite = true;
    for (auto const& part : value.is_array() ? value : nlohmann::ordered_json::array({value}))
      finite = finite && part.is_number() && std::isfinite(part.get<double>());
    if (finite || (name.starts_with("effective.") && !solved_effective))
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

std::vector<std::string> check_requests(RunConfig const& config, PointSets const& sets, assembly::MeshSummary const& mesh,
                                        std::vector<bool> const& inside, Point const& nearest) {
  std::vector<std::string> notes;
  std::size_t const n_probes = config.output.probes.size();
  for (std::size_t i = 0; i < n_probes; ++i)
    if (!inside[i]) {
      Point const& at = config.output.probes[i].at;
      throw InputError("output.probes[" + std::to_string(i) + "].at",
                       "the point " + point_text(at) + " is outside the mesh; the nearest node is " +
                           number_text(std::hypot(at[0] - nearest[0], at[1] - nearest[1], at[2] - nearest[2]), 4) + " away, at " +
                           point_text(nearest));
    }
  for (PointSet const* const set : sets) {
    std::size_t const n = set->points.size();
    auto const first = inside.begin() + static_cast<std::ptrdiff_t>(set->first);
    auto const outside = static_cast<std::size_t>(std::count(first, first + static_cast<std::ptrdiff_t>(n), false));
    if (outside == n)
      throw InputError(set->key, "no point of this " + set->kind + " is in the mesh");
    if (outside > 0)
      notes.push_back(set->kind + " '" + set->name + "': " + with_thousands(static_cast<std::int64_t>(outside)) + " of " +
                      with_thousands(static_cast<std::int64_t>(n)) + " points are outside the mesh");
  }
  check_quantities(config, mesh);
  return notes;
}

void check_quantities(RunConfig const& config, assembly::MeshSummary const& mesh) {
  if (config.output.quantities.empty())
    return;
  // The names are known now, the numbers are not.
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
  std::optional<EffectiveResult> effective;
  if (config.effective.is_asked())
    effective = expected_effective(config, mesh);
  std::vector<assembly::PointValues> const at_probes(config.output.probes.size());
  static_cast<void>(quantity_table(config, mesh, of_solution, 1, at_probes, effective));
}

QuantityTable quantity_table(RunConfig const& config, assembly::MeshSummary const& mesh, assembly::Quantities const& of_solution,
                             double integral_f, std::span<assembly::PointValues const> at_points,
                             std::optional<EffectiveResult> const& effective) {
  return named_quantities(config, mesh, of_solution, integral_f, at_points, effective).table;
}

NamedQuantities named_quantities(RunConfig const& config, assembly::MeshSummary const& mesh,
                                 assembly::Quantities const& of_solution, double integral_f,
                                 std::span<assembly::PointValues const> at_points,
                                 std::optional<EffectiveResult> const& effective) {
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
  assembly::IdGroups const groups = groups_of_faces(mesh);
  auto const faces = with_surfaces(of_solution);
  add("flux", groups, faces, [](auto const& boundary) { return boundary.flux; });
  add("area", groups, faces, [](auto const& boundary) { return boundary.area; });
  add("volume", mesh.material_groups, of_solution.volumes, [](double volume) { return volume; });
  auto const& own = config.output.quantities;
  if (std::none_of(own.begin(), own.end(), [](auto const& quantity) { return quantity.name == "balance"; })) {  // theirs counts
    Balance const balance = balance_of(of_solution, integral_f, 0);
    table.emplace_back("balance", balance.judged ? balance.relative : 0);
  }
  for (std::size_t i = 0; i < config.output.probes.size(); ++i) {
    std::string const name = "probe." + config.output.probes[i].name;
    table.emplace_back(name, at_points[i].u);
    table.emplace_back(name + ".gradient", at_points[i].gradient);
    table.emplace_back(name + ".flux", at_points[i].flux);
    if (config.problem.exact)
      table.emplace_back(name + ".exact", at_points[i].exact);
  }
  if (effective)
    for (auto const& [name, value] : effective_quantities(*effective))
      table.emplace_back(name, value);
  assembly::Constants more;
  for (auto const& [alias, name] : by_id)
    for (auto const& [known, value] : table)
      if (known == name && value.is_number())
        more.emplace(alias, value);
  add_parts(mesh, of_solution, table, more);
  for (auto& [name, value] : own_values(config, constants_of(table, more)))
    table.emplace_back(std::move(name), value);
  return {std::move(table), std::move(more)};
}

nlohmann::ordered_json const* NamedQuantities::value_of(std::string const& name) const {
  auto const found = std::find_if(table.begin(), table.end(), [&](auto const& entry) { return entry.first == name; });
  return found == table.end() ? nullptr : &found->second;
}

std::optional<double> NamedQuantities::number(std::string const& name) const {
  if (auto const* const value = value_of(name); value != nullptr && value->is_number())
    return value->get<double>();
  auto const found = more.find(name);
  return found == more.end() ? std::nullopt : std::optional(found->second);
}

std::map<std::string, double> derivatives_of(RunConfig const& config, NamedQuantities const& quantities, std::string const& own) {
  QuantityTable others = quantities.table;
  std::erase_if(others, [&](auto const& entry) {
    return std::any_of(config.output.quantities.begin(), config.output.quantities.end(),
                       [&](QuantitySpec const& of) { return of.name == entry.first; });
  });
  assembly::Constants constants = constants_of(others, quantities.more);
  auto const value = [&] {
    for (auto const& [name, number] : own_values(config, constants))
      if (name == own)
        return number;
    return std::numeric_limits<double>::quiet_NaN();
  };
  std::map<std::string, double> result;
  constexpr double relative_step = 1e-5;  // near the third root of the rounding, where a central difference has most digits
  for (auto& [name, number] : constants) {
    double const at = number, step = relative_step * (at != 0 && std::isfinite(at) ? std::abs(at) : 1);
    number = at + step;
    double const above = value();
    number = at - step;
    double const below = value();
    number = at;
    if (above != below)
      result[name] = (above - below) / (2 * step);
  }
  return result;
}

}  // namespace poisson::app
