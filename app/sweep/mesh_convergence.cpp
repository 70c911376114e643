#include "app/sweep/mesh_convergence.hpp"

#include "app/io/console.hpp"
#include "app/results/quantities.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>

namespace poisson::app {
namespace {

using assembly::MeshSpec;
using Json = nlohmann::ordered_json;

bool is_mesh_size(std::string const& path) {
  return path == "problem.mesh.cells" || path == "problem.mesh.refinements";
}

/// Cells of the box in its three directions; of other meshes those that one coarse cell has become.
std::array<double, 3> cells_of(RunConfig const& config) {
  std::array<double, 3> cells{};
  for (std::size_t d = 0; d < 3; ++d)
    cells[d] = std::ldexp(config.problem.mesh.file.empty() && config.problem.mesh.generator == "box"
                              ? static_cast<double>(config.problem.mesh.cells[d])
                              : 1.,
                          config.problem.mesh.refinements);
  return cells;
}

/// Whether one mesh is the other with all its cells cut into the same number of parts in all directions.
bool similar(std::array<double, 3> const& a, std::array<double, 3> const& b) {
  return a[0] * b[1] == a[1] * b[0] && a[0] * b[2] == a[2] * b[0];
}

MeshConvergence convergence_of(std::vector<CaseOnMesh const*> cases) {
  MeshConvergence group;
  std::stable_sort(cases.begin(), cases.end(),
                   [](CaseOnMesh const* a, CaseOnMesh const* b) { return cells_of(*a->config)[0] < cells_of(*b->config)[0]; });
  std::vector<double> h;
  for (CaseOnMesh const* c : cases) {
    auto const cells = cells_of(*c->config);
    group.cases.push_back(c->number);
    h.push_back(1 / cells[0]);
    if (!similar(cells, cells_of(*cases.front()->config)))
      group.note = "the numbers of cells do not grow by one factor in all directions";
    else if (MeshSpec const& mesh = c->config->problem.mesh, &first = cases.front()->config->problem.mesh;
             mesh.is_graded() && mesh.cells != first.cells)
      group.note = "other cells of a graded box are no refinement; sweep over problem.mesh.refinements, which halves every cell";
    else if (h.size() > 1 && !(h.back() < h[h.size() - 2]))
      group.note = "two cases have the same mesh";
  }
  if (!group.note.empty())
    return group;
  for (auto const& [name, value] : cases.back()->quantities->items()) {
    std::vector<double> q;
    for (CaseOnMesh const* c : cases)
      if (auto const found = c->quantities->find(name); found != c->quantities->end() && found->is_number())
        q.push_back(found->get<double>());
    if (q.size() == cases.size())
      group.quantities.emplace_back(name, assembly::extrapolate(h, q));
  }
  return group;
}

/// Null for what is not finite.
Json number_or_null(double x) {
  return std::isfinite(x) ? Json(x) : Json();
}

}  // namespace

std::vector<MeshConvergence> mesh_convergence(std::vector<SweepAxis> const& axes, std::vector<CaseOnMesh> const& cases) {
  std::vector<MeshConvergence> groups;
  if (std::none_of(axes.begin(), axes.end(), [](SweepAxis const& axis) { return is_mesh_size(axis.path); }))
    return groups;
  std::map<std::vector<std::string>, std::vector<CaseOnMesh const*>> by_parameters;
  std::vector<std::vector<std::string>> in_order;
  for (CaseOnMesh const& c : cases) {
    std::vector<std::string> parameters;
    for (std::size_t a = 0; a < axes.size(); ++a)
      if (!is_mesh_size(axes[a].path))
        parameters.push_back(c.values[a]);
    auto& list = by_parameters[parameters];
    if (list.empty())
      in_order.push_back(parameters);
    list.push_back(&c);
  }
  for (auto const& parameters : in_order) {
    auto const& list = by_parameters[parameters];
    if (list.size() < 2)
      continue;
    groups.push_back(convergence_of(list));
    std::size_t next = 0;
    for (SweepAxis const& axis : axes)
      if (!is_mesh_size(axis.path))
        groups.back().parameters.emplace_back(axis.path, parameters[next++]);
  }
  return groups;
}

Json to_json(std::vector<MeshConvergence> const& groups) {
  Json list = Json::array();
  for (MeshConvergence const& group : groups) {
    Json parameters = Json::object(), quantities = Json::object();
    for (auto const& [path, value] : group.parameters)
      parameters[path] = value;
    for (auto const& [name, found] : group.quantities) {
      quantities[name] = {
          {"value", number_or_null(found.value)}, {"order", number_or_null(found.order)}, {"error", number_or_null(found.error)}};
      if (!found.note.empty())
        quantities[name]["note"] = found.note;
    }
    list.push_back({{"parameters", parameters}, {"cases", group.cases}, {"quantities", quantities}});
    if (!group.note.empty())
      list.back()["note"] = group.note;
  }
  return list;
}

std::vector<std::vector<std::string>> table_of(MeshConvergence const& group) {
  std::vector<std::vector<std::string>> rows{{"quantity", "extrapolated", "order", "error of the finest", ""}};
  for (auto const& [name, found] : group.quantities) {
    if (found.note == "does not change" || is_of_part(name))  // those are in sweep.json
      continue;
    bool const known = std::isfinite(found.order);
    rows.push_back({name, known ? number_text(found.value, 8) : "-", known ? number_text(found.order, 3) : "-",
                    known ? number_text(found.error, 2) : "-", found.note});
  }
  return rows;
}

}  // namespace poisson::app
