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
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

constexpr char const* surface_of_materials = "void_surface";

/// Points of a cell, at places in [0, 1]^3.
class CellPoints {
public:
  explicit CellPoints(Mesh const& mesh) {
    if (mesh.curved_cells)
      image_.emplace(*mesh.curved_cells);
  }
  [[nodiscard]] dealii::Point<3> at(dealii::Triangulation<3>::active_cell_iterator const& cell, dealii::Point<3> const& place) {
    if (image_)
      return (*image_)(cell->active_cell_index(), {place[0], place[1], place[2]});
    dealii::Point<3> x;
    for (unsigned v = 0; v < 8; ++v)
      x += cell->vertex(v) * dealii::GeometryInfo<3>::d_linear_shape_function(place, v);
    return x;
  }

private:
  std::optional<CurvedImages> image_;
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
  for (auto const& [label, name] : spec.image.names)  // of which there may be no voxel
    known.insert(name);
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

/// The vertices of what is left, in parts: cells that share one belong to one part.
class Parts {
public:
  explicit Parts(std::size_t n_vertices) : parent_(n_vertices) { std::iota(parent_.begin(), parent_.end(), 0U); }
  [[nodiscard]] unsigned of(unsigned vertex) {
    while (parent_[vertex] != vertex)
      vertex = parent_[vertex] = parent_[parent_[vertex]];
    return vertex;
  }
  void join(unsigned a, unsigned b) { parent_[of(a)] = of(b); }

private:
  std::vector<unsigned> parent_;
};

/// Which condition holds on the faces with an id or the name of a place, by its number in the list; -1: none.
class ConditionsOnFaces {
public:
  ConditionsOnFaces(ConditionEffects const& effects, IdGroups const& groups, std::set<unsigned> const& ids) : list_(effects.list) {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      for (unsigned const id : list_[i].ids)
        for (unsigned const part : groups.with_id(id, ids))
          of_id_.emplace(part, i);
      for (std::string const& name : list_[i].names)
        for (unsigned const part : groups.with_name(name))
          of_id_.emplace(part, i);
      if (list_[i].all_ids)
        rest_ = static_cast<int>(i);
    }
  }
  [[nodiscard]] int of_id(unsigned id) const {
    auto const found = of_id_.find(id);
    return found == of_id_.end() ? rest_ : static_cast<int>(found->second);
  }
  /// Without `ids: all`, which is not for surfaces inside the mesh.
  [[nodiscard]] int of_inner(unsigned id) const { return of_id_.contains(id) ? of_id(id) : -1; }
  [[nodiscard]] int of_place(std::string const& name) const {
    for (std::size_t i = 0; i < list_.size(); ++i)
      if (std::find(list_[i].names.begin(), list_[i].names.end(), name) != list_[i].names.end())
        return static_cast<int>(i);
    return rest_;
  }

private:
  std::vector<ConditionEffects::OfCondition> const& list_;
  std::map<unsigned, std::size_t> of_id_;
  int rest_ = -1;
};

/// Takes parts of what is left out, too, that no condition fixes, and tells so; and whether none joins two boundaries that are
/// fixed. `id_of_surface`: of void.
void leave_out_parts(Mesh& mesh, MeshSpec const& spec, ExpressionNames const& names,
                     std::map<std::string, unsigned> const& id_of_surface, Finding& found) {
  dealii::Triangulation<3> const& all = *mesh.triangulation;
  std::vector<ConditionEffects::OfCondition> const& list = spec.conditions->list;
  IdGroups groups = mesh.boundary_groups;
  std::set<unsigned> ids;
  for (unsigned const id : all.get_boundary_ids())
    ids.insert(id);
  std::map<std::pair<int, int>, unsigned> id_of_inner;
  for (Mesh::InnerFace const& face : mesh.inner_faces) {
    id_of_inner[{face.cell, face.face}] = face.id;
    ids.insert(face.id);
  }
  for (IdGroup const& group : mesh.inner_groups.list())
    groups.add(group);
  for (auto const& [name, id] : id_of_surface) {
    groups.add({id, name, {id}});
    ids.insert(id);
  }
  ConditionsOnFaces const conditions(*spec.conditions, groups, ids);
  std::vector<Expression> places;
  for (std::size_t i = 0; i < spec.boundaries.size(); ++i)
    places.emplace_back(spec.boundaries[i].where, "problem.mesh.boundaries[" + std::to_string(i) + "].where", names);

  Parts parts(all.n_vertices());
  for (auto const& cell : all.active_cell_iterators())
    if (found.surface[cell->active_cell_index()].empty())
      for (unsigned v = 1; v < 8; ++v)
        parts.join(cell->vertex_index(0), cell->vertex_index(v));
  struct Part {
    std::set<std::pair<unsigned, std::string>> fixed;  ///< boundaries, by their id or the name of a place
    bool bound = false;
    std::int64_t cells = 0;
    double volume = 0;
    [[nodiscard]] bool is_free() const { return fixed.empty() && !bound; }
  };
  std::map<unsigned, Part> by_root;
  CellPoints points(mesh);
  int const n = 1 << std::min(spec.refinements, 4);  // faces of the refined mesh in a direction, whose centres places hold
  for (auto const& cell : all.active_cell_iterators()) {
    std::size_t const c = cell->active_cell_index();
    if (!found.surface[c].empty())
      continue;
    Part& part = by_root[parts.of(cell->vertex_index(0))];
    ++part.cells;
    part.volume += cell->measure();
    auto const touch = [&](int condition, unsigned id, std::string const& place) {
      if (condition < 0)
        return;
      auto const& of = list[static_cast<std::size_t>(condition)];
      part.bound = part.bound || of.binds;
      if (of.fixes)
        part.fixed.emplace(id, place);
    };
    for (unsigned const f : cell->face_indices()) {
      bool const outside = cell->face(f)->at_boundary();
      std::string const beyond = outside ? "" : found.surface[cell->neighbor(f)->active_cell_index()];
      std::optional<unsigned> inner;
      if (!outside && !id_of_inner.empty()) {
        auto const neighbor = static_cast<int>(cell->neighbor(f)->active_cell_index());
        auto const known =
            id_of_inner.find(static_cast<int>(c) < neighbor ? std::pair(static_cast<int>(c), static_cast<int>(f))
                                                            : std::pair(neighbor, static_cast<int>(cell->neighbor_of_neighbor(f))));
        if (known != id_of_inner.end())
          inner = known->second;
      }
      if (!outside && beyond.empty()) {
        if (inner)
          touch(conditions.of_inner(*inner), *inner, "");
        continue;
      }
      unsigned const id = outside ? cell->face(f)->boundary_id() : inner ? *inner : id_of_surface.at(beyond);
      if (places.empty()) {
        touch(conditions.of_id(id), id, "");
        continue;
      }
      for (int i = 0; i < n * n; ++i) {
        dealii::Point<3> at;
        unsigned const d = f / 2;
        at[d] = f % 2;
        at[d == 0 ? 1 : 0] = (i % n + 0.5) / n;
        at[d == 2 ? 1 : 2] = (i / n + 0.5) / n;
        dealii::Point<3> const x = points.at(cell, at);
        std::size_t place = places.size();
        while (place > 0 && places[place - 1](x[0], x[1], x[2]) == 0)
          --place;
        if (place > 0)
          touch(conditions.of_place(spec.boundaries[place - 1].name), 0, spec.boundaries[place - 1].name);
        else
          touch(conditions.of_id(id), id, "");
      }
    }
  }
  std::set<std::pair<unsigned, std::string>> fixed;
  bool joins = false, any_bound = false;
  for (auto const& [root, part] : by_root) {
    fixed.insert(part.fixed.begin(), part.fixed.end());
    joins = joins || part.fixed.size() > 1;
    any_bound = any_bound || part.bound;
  }
  if (fixed.size() > 1 && !joins && !any_bound && !spec.conditions->has_source)
    found.notes.push_back(
        "no part of what is left of the mesh joins two of the boundaries with fixed values: nothing flows between them");
  if (fixed.empty() || spec.conditions->has_source)
    return;  // u is determined up to a constant, or nowhere; who assembles tells
  for (auto const& [root, part] : by_root)
    if (part.is_free()) {
      ++mesh.left_out.parts;
      mesh.left_out.cells += part.cells;
      mesh.left_out.volume += part.volume;
    }
  if (mesh.left_out.parts == 0)
    return;
  for (auto const& cell : all.active_cell_iterators()) {
    std::string& surface = found.surface[cell->active_cell_index()];
    if (!surface.empty() || !by_root.at(parts.of(cell->vertex_index(0))).is_free())
      continue;
    for (unsigned const f : cell->face_indices())
      if (cell->face(f)->at_boundary())
        mesh.left_out_ids.insert(cell->face(f)->boundary_id());
      else if (auto const id = id_of_surface.find(found.surface[cell->neighbor(f)->active_cell_index()]); id != id_of_surface.end())
        mesh.left_out_ids.insert(id->second);
    surface = "left out";  // which no face of another part has
  }
  std::ostringstream text;
  text.precision(6);
  text << mesh.left_out.parts << (mesh.left_out.parts == 1 ? " part" : " parts") << " of what is left of the mesh ("
       << mesh.left_out.cells << (mesh.left_out.cells == 1 ? " cell" : " cells") << " of volume " << mesh.left_out.volume << ") "
       << (mesh.left_out.parts == 1 ? "touches" : "touch") << " no boundary where u is fixed, and "
       << (mesh.left_out.parts == 1 ? "is" : "are") << " left out";
  found.notes.push_back(text.str());
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
  Finding found = find_void(mesh, spec, names);
  dealii::Triangulation<3> const& old = *mesh.triangulation;
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
  if (spec.conditions)
    leave_out_parts(mesh, spec, names, id_of_surface, found);
  mesh.notes.insert(mesh.notes.end(), found.notes.begin(), found.notes.end());

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
  for (unsigned const id : boundaries)
    mesh.left_out_ids.erase(id);
  for (auto const& [name, id] : id_of_surface)
    if (mesh.left_out_ids.contains(id))
      mesh.left_out_names.insert(name);
  for (IdGroup const& group : mesh.boundary_groups.list()) {
    auto const is_in = [&](std::set<unsigned> const& ids) {
      return std::any_of(group.parts.begin(), group.parts.end(), [&](unsigned part) { return ids.contains(part); });
    };
    if (is_in(mesh.left_out_ids) && !is_in(boundaries)) {
      mesh.left_out_ids.insert(group.id);
      mesh.left_out_names.insert(group.name);
    }
  }
  mesh.boundary_groups.keep(boundaries);
  mesh.material_groups.keep(left);
  mesh.inner_groups.keep(inside);
}

}  // namespace poisson::assembly
