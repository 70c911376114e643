#include "assembly/dealii/sources.hpp"
#include "assembly/expression/expression.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deal.II/grid/grid_tools.h>
#include <deal.II/grid/manifold_lib.h>
#include <deal.II/grid/tria.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_description.h>
#include <deal.II/grid/tria_iterator.h>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

constexpr char const* surface_of_materials = "void_surface";

/// Points of a cell, at places in [0, 1]^3.
class CellPoints {
public:
  explicit CellPoints(Mesh const& mesh) : mesh_(mesh) {
    if (mesh.curved_cells)
      for (auto& values : values_)
        values.resize(static_cast<std::size_t>(mesh.curved_cells->order + 1));
  }
  [[nodiscard]] dealii::Point<3> at(dealii::Triangulation<3>::active_cell_iterator const& cell, dealii::Point<3> const& place) {
    dealii::Point<3> x;
    if (!mesh_.curved_cells) {
      for (unsigned v = 0; v < 8; ++v)
        x += cell->vertex(v) * dealii::GeometryInfo<3>::d_linear_shape_function(place, v);
      return x;
    }
    for (unsigned d = 0; d < 3; ++d)
      lagrange_values(mesh_.curved_cells->order, place[d], values_[d]);
    std::size_t node = 0;
    auto const nodes = mesh_.curved_cells->of_cell(cell->active_cell_index());
    for (double const z : values_[2])
      for (double const y : values_[1])
        for (double const value : values_[0])
          x += nodes[node++] * (value * y * z);
    return x;
  }

private:
  Mesh const& mesh_;
  std::array<std::vector<double>, 3> values_;
};

/// What takes a cell out: a region that is void, or a material.
struct Finding {
  std::vector<std::string> surface;  ///< by cell: the name of the surface that it leaves; empty: it stays
  std::vector<std::string> notes;
};

/// The materials of the mesh that are void by the name or id of a group. Names may be those of regions, too.
std::set<unsigned> void_materials(Mesh const& mesh, MeshSpec const& spec) {
  std::set<unsigned> all, found;
  for (auto const& cell : mesh.triangulation->active_cell_iterators())
    all.insert(cell->material_id());
  std::string ids;
  for (unsigned const id : mesh.material_groups.ids_of(all))
    ids += (ids.empty() ? "" : ", ") + std::to_string(id);
  for (int const id : spec.void_ids) {
    auto const parts = mesh.material_groups.with_id(static_cast<unsigned>(id), all);
    if (parts.empty())
      throw InputError("problem.coefficient[" + std::to_string(id) + "]",
                       "the mesh has no material " + std::to_string(id) + " to be void; it has: " + ids);
    found.insert(parts.begin(), parts.end());
  }
  std::set<std::string> known = mesh.material_groups.names();
  for (NamedPlace const& region : spec.regions)
    known.insert(region.name);
  for (std::string const& name : spec.void_names) {
    if (!known.contains(name)) {
      std::string const near = nearest_name(name, known);
      throw InputError("problem.coefficient." + name, "the mesh has no material named '" + name + "' to be void" +
                                                          (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    auto const parts = mesh.material_groups.with_name(name);
    found.insert(parts.begin(), parts.end());
  }
  return found;
}

/// A region takes the cells whose centre it holds and no later region does; so do regions that give materials.
Finding find_void(Mesh const& mesh, MeshSpec const& spec, ExpressionNames const& names) {
  constexpr double cut_share = 0.25;  // as for other places
  auto const key = [](std::size_t i) { return "problem.mesh.regions[" + std::to_string(i) + "]"; };
  std::vector<Expression> where;
  for (std::size_t i = 0; i < spec.regions.size(); ++i)
    where.emplace_back(spec.regions[i].where, key(i) + ".where", names);
  std::set<unsigned> const materials = void_materials(mesh, spec);
  Finding found;
  found.surface.resize(mesh.triangulation->n_active_cells());
  std::vector<std::int64_t> taken(spec.regions.size()), cut(spec.regions.size());
  CellPoints points(mesh);
  for (auto const& cell : mesh.triangulation->active_cell_iterators()) {
    std::string& surface = found.surface[cell->active_cell_index()];
    auto const holds = [&](std::size_t i, dealii::Point<3> const& x) { return where[i](x[0], x[1], x[2]) != 0; };
    dealii::Point<3> const centre = points.at(cell, {0.5, 0.5, 0.5});
    bool held = false;
    for (std::size_t i = where.size(); i-- > 0 && !held;) {
      held = holds(i, centre);
      if (!spec.is_void(spec.regions[i]))
        continue;
      int others = 0;
      for (unsigned v = 0; v < 8; ++v)
        others +=
            holds(i, points.at(cell, {(v & 1U) != 0 ? 0.75 : 0.25, (v & 2U) != 0 ? 0.75 : 0.25, (v & 4U) != 0 ? 0.75 : 0.25})) !=
            held;
      cut[i] += others > 8 * cut_share ? 1 : 0;
      if (held) {
        ++taken[i];
        surface = spec.regions[i].is_void ? spec.regions[i].name : surface_of_materials;
      }
    }
    if (!held && materials.contains(cell->material_id()))
      surface = surface_of_materials;
  }
  for (std::size_t i = 0; i < spec.regions.size(); ++i) {
    if (!spec.is_void(spec.regions[i]))
      continue;
    if (taken[i] == 0)
      throw InputError(key(i) + ".where", "no cell has its centre where '" + spec.regions[i].where + "' holds" +
                                              (i + 1 < spec.regions.size() ? ", or later entries hold them all" : "") +
                                              "; this region takes no cell out of the mesh");
    if (cut[i] > 0)
      found.notes.push_back(key(i) + ": '" + spec.regions[i].name + "' cuts " + std::to_string(cut[i]) +
                            " cells, of which more than a quarter is on the other side than the centre; each is taken out, or "
                            "left, as a whole");
  }
  return found;
}

/// Manifolds are those of the old triangulation. The transfinite ones interpolate between others, so they come last.
void copy_manifolds(dealii::Triangulation<3> const& from, dealii::Triangulation<3>& to) {
  using Transfinite = dealii::TransfiniteInterpolationManifold<3>;
  auto const each = [&](bool transfinite) {
    for (auto const id : from.get_manifold_ids()) {
      if (id == dealii::numbers::flat_manifold_id)
        continue;
      dealii::Manifold<3> const& manifold = from.get_manifold(id);
      if ((dynamic_cast<Transfinite const*>(&manifold) != nullptr) != transfinite)
        continue;
      if (!transfinite) {
        to.set_manifold(id, manifold);
        continue;
      }
      Transfinite renewed;
      renewed.initialize(to);
      to.set_manifold(id, renewed);
    }
  };
  each(false);
  each(true);
}

}  // namespace

void take_out_void(Mesh& mesh, MeshSpec const& spec, ExpressionNames const& names) {
  using dealii::numbers::internal_face_boundary_id;
  Finding const found = find_void(mesh, spec, names);
  dealii::Triangulation<3> const& old = *mesh.triangulation;
  mesh.notes.insert(mesh.notes.end(), found.notes.begin(), found.notes.end());
  if (std::none_of(found.surface.begin(), found.surface.end(), [](std::string const& surface) { return surface.empty(); }))
    throw InputError(spec.void_names.empty() && spec.void_ids.empty() ? "problem.mesh.regions" : "problem.coefficient",
                     "all " + std::to_string(old.n_active_cells()) + " cells of the mesh are void, and nothing is left of it");

  // Ids of surfaces: behind those of the mesh, in the order of the regions.
  unsigned next = 0;
  for (unsigned const id : old.get_boundary_ids())
    next = std::max(next, id + 1);
  for (IdGroups const* const groups : {&mesh.boundary_groups, &mesh.inner_groups})
    for (unsigned const id : groups->all_ids())
      next = std::max(next, id + 1);
  std::map<std::string, unsigned> id_of_surface;
  std::vector<std::string> surfaces;
  for (NamedPlace const& region : spec.regions)
    if (region.is_void)
      surfaces.push_back(region.name);
  if (!spec.void_names.empty() || !spec.void_ids.empty())
    surfaces.emplace_back(surface_of_materials);
  for (std::string const& name : surfaces) {
    if (mesh.boundary_groups.has_name(name) || mesh.inner_groups.has_name(name))
      throw InputError(name == surface_of_materials ? "problem.coefficient" : "problem.mesh.regions",
                       "the surface of what is void would be named '" + name +
                           "', and the mesh has a boundary of that name; choose another name for the region");
    id_of_surface[name] = next++;
  }

  std::vector<dealii::CellData<3>> cells;
  dealii::SubCellData parts;
  CurvedCells curved;
  std::set<unsigned> materials;
  std::set<std::array<unsigned, 2>> lines;
  std::set<unsigned> used, exposed;
  std::map<std::pair<int, int>, unsigned> id_of_inner;  // by the cell with the lower number, and its face
  for (Mesh::InnerFace const& face : mesh.inner_faces)
    id_of_inner[{face.cell, face.face}] = face.id;
  mesh.inner_faces.clear();
  for (auto const& cell : old.active_cell_iterators()) {
    materials.insert(cell->material_id());
    std::size_t const c = cell->active_cell_index();
    if (!found.surface[c].empty())
      continue;
    dealii::CellData<3>& kept = cells.emplace_back();
    for (unsigned v = 0; v < 8; ++v)
      kept.vertices[v] = cell->vertex_index(v);
    kept.material_id = cell->material_id();
    kept.manifold_id = cell->manifold_id();
    if (mesh.curved_cells) {
      auto const nodes = mesh.curved_cells->of_cell(c);
      curved.nodes.insert(curved.nodes.end(), nodes.begin(), nodes.end());
    }
    for (unsigned const f : cell->face_indices()) {
      auto const face = cell->face(f);
      std::string const beyond = face->at_boundary() ? "" : found.surface[cell->neighbor(f)->active_cell_index()];
      bool const at_boundary = face->at_boundary() || !beyond.empty();
      bool const is_first = at_boundary || c < cell->neighbor(f)->active_cell_index();  // of the two cells that have the face
      // A surface inside of the mesh keeps its id, also where it bounds what is left.
      std::optional<unsigned> inner;
      if (!face->at_boundary()) {
        auto const neighbor = static_cast<int>(cell->neighbor(f)->active_cell_index());
        bool const is_lower = static_cast<int>(c) < neighbor;
        auto const known = id_of_inner.find(is_lower ? std::pair(static_cast<int>(c), static_cast<int>(f))
                                                     : std::pair(neighbor, static_cast<int>(cell->neighbor_of_neighbor(f))));
        if (known != id_of_inner.end())
          inner = known->second;
        if (inner && !at_boundary && is_lower)
          mesh.inner_faces.push_back({static_cast<int>(cells.size()) - 1, static_cast<int>(f), *inner});
      }
      if (!is_first || (!at_boundary && face->manifold_id() == dealii::numbers::flat_manifold_id))
        continue;
      dealii::CellData<2>& quad = parts.boundary_quads.emplace_back();
      for (unsigned v = 0; v < 4; ++v)
        quad.vertices[v] = face->vertex_index(v);
      quad.manifold_id = face->manifold_id();
      quad.boundary_id = !at_boundary     ? internal_face_boundary_id
                         : beyond.empty() ? face->boundary_id()
                         : inner          ? *inner
                                          : id_of_surface.at(beyond);
      if (inner && at_boundary)
        exposed.insert(*inner);
      if (!beyond.empty() && !inner)
        used.insert(quad.boundary_id);
    }
    for (unsigned const l : cell->line_indices()) {
      auto const line = cell->line(l);
      std::array<unsigned, 2> ends{line->vertex_index(0), line->vertex_index(1)};
      if (line->manifold_id() == dealii::numbers::flat_manifold_id || !lines.insert(ends).second)
        continue;
      dealii::CellData<1>& edge = parts.boundary_lines.emplace_back();
      edge.vertices = {ends[0], ends[1]};
      edge.manifold_id = line->manifold_id();
      edge.boundary_id = internal_face_boundary_id;
    }
  }

  std::vector<dealii::Point<3>> vertices = old.get_vertices();
  dealii::GridTools::delete_unused_vertices(vertices, cells, parts);
  auto renewed = std::make_unique<dealii::Triangulation<3>>();
  renewed->create_triangulation(vertices, cells, parts);
  copy_manifolds(old, *renewed);
  mesh.triangulation = std::move(renewed);
  mesh.box.reset();
  if (mesh.curved_cells)
    mesh.curved_cells->nodes = std::move(curved.nodes);
  for (IdGroup group : mesh.inner_groups.list()) {
    std::erase_if(group.parts, [&](unsigned part) { return !exposed.contains(part); });
    if (!group.parts.empty())
      mesh.boundary_groups.add(std::move(group));
  }
  for (auto const& [name, id] : id_of_surface)
    if (used.contains(id)) {
      mesh.boundary_groups.add({id, name, {id}});
      mesh.void_surfaces.insert(id);
    }
  std::set<unsigned> boundaries, left, inside;
  for (unsigned const id : mesh.triangulation->get_boundary_ids())
    boundaries.insert(id);
  for (auto const& cell : cells)
    left.insert(cell.material_id);
  for (Mesh::InnerFace const& face : mesh.inner_faces)
    inside.insert(face.id);
  std::set_difference(materials.begin(), materials.end(), left.begin(), left.end(),
                      std::inserter(mesh.void_materials, mesh.void_materials.end()));
  mesh.boundary_groups.keep(boundaries);
  mesh.material_groups.keep(left);
  mesh.inner_groups.keep(inside);
}

}  // namespace poisson::assembly
