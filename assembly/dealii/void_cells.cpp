#include "assembly/dealii/mesh_cells.hpp"
#include "assembly/dealii/sources.hpp"
#include "assembly/expression/expression.hpp"
#include "assembly/parallel.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deal.II/grid/manifold_lib.h>
#include <deal.II/grid/tria.h>
#include <deal.II/grid/tria_description.h>
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

/// Which cells are taken out. Each cell has the number of the surface that it leaves, from 1 on; 0: it stays.
struct Finding {
  std::vector<std::uint16_t> surface;
  std::vector<std::string> names;  ///< of surfaces
  std::vector<std::string> notes;

  static constexpr std::uint16_t stays = 0, left_out = 65535;  ///< left_out: no face of another part is that of such a cell

  [[nodiscard]] std::uint16_t& of(std::int64_t cell) { return surface[static_cast<std::size_t>(cell)]; }
  [[nodiscard]] std::uint16_t of(std::int64_t cell) const { return surface[static_cast<std::size_t>(cell)]; }
  [[nodiscard]] std::uint16_t number(std::string const& name) {
    auto const at = std::find(names.begin(), names.end(), name);
    auto const result = static_cast<std::uint16_t>(at - names.begin() + 1);
    if (at == names.end())
      names.push_back(name);
    return result;
  }
};

/// The materials of the mesh that are void by the name or id of a group. Names may be those of regions, too.
std::set<unsigned> void_materials(Mesh const& mesh, MeshSpec const& spec, std::set<unsigned> const& all) {
  std::set<unsigned> found;
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
Finding find_void(Mesh const& mesh, MeshCells const& cells, MeshSpec const& spec, ExpressionNames const& names) {
  constexpr double cut_share = 0.25;  // as for other places
  auto const key = [](std::size_t i) { return "problem.mesh.regions[" + std::to_string(i) + "]"; };
  std::vector<Expression> where;
  for (std::size_t i = 0; i < spec.regions.size(); ++i)
    where.emplace_back(spec.regions[i].where, key(i) + ".where", names);
  std::set<unsigned> const materials = void_materials(mesh, spec, cells.materials());
  Finding found;
  found.surface.resize(static_cast<std::size_t>(cells.size()));
  std::vector<std::uint16_t> surface_of(spec.regions.size());
  for (std::size_t i = 0; i < spec.regions.size(); ++i)
    if (spec.regions[i].is_void)
      surface_of[i] = found.number(spec.regions[i].name);
  // Regions whose name is that of a void coefficient, and materials.
  std::uint16_t const other =
      spec.void_names.empty() && spec.void_ids.empty() ? Finding::stays : found.number(surface_of_materials);
  std::vector<std::int64_t> taken(spec.regions.size()), cut(spec.regions.size());
  for (std::int64_t cell = 0; cell < cells.size(); ++cell) {
    auto const holds = [&](std::size_t i, dealii::Point<3> const& x) { return where[i](x[0], x[1], x[2]) != 0; };
    bool held = false;
    dealii::Point<3> const centre = where.empty() ? dealii::Point<3>() : cells.at(cell, {0.5, 0.5, 0.5});
    for (std::size_t i = where.size(); i-- > 0 && !held;) {
      held = holds(i, centre);
      if (!spec.is_void(spec.regions[i]))
        continue;
      int others = 0;
      for (unsigned v = 0; v < 8; ++v)
        others +=
            holds(i, cells.at(cell, {(v & 1U) != 0 ? 0.75 : 0.25, (v & 2U) != 0 ? 0.75 : 0.25, (v & 4U) != 0 ? 0.75 : 0.25})) !=
            held;
      cut[i] += others > 8 * cut_share ? 1 : 0;
      if (held) {
        ++taken[i];
        found.of(cell) = spec.regions[i].is_void ? surface_of[i] : other;
      }
    }
    if (!held && !materials.empty() && materials.contains(cells.material(cell)))
      found.of(cell) = other;
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

/// The ids of faces between two cells that belong to groups of a file.
class InnerIds {
public:
  explicit InnerIds(Mesh const& mesh) {
    for (Mesh::InnerFace const& face : mesh.inner_faces)
      of_[{face.cell, static_cast<unsigned>(face.face)}] = face.id;
  }
  /// `neighbor`: of that face. Nothing where it belongs to none.
  [[nodiscard]] std::optional<unsigned> of(std::int64_t cell, unsigned face, MeshCells::Neighbor const& neighbor) const {
    if (of_.empty())
      return std::nullopt;
    auto const known = of_.find(cell < neighbor.cell ? std::pair(cell, face) : std::pair(neighbor.cell, neighbor.face));
    return known == of_.end() ? std::nullopt : std::optional(known->second);
  }

private:
  std::map<std::pair<std::int64_t, unsigned>, unsigned> of_;  ///< by the cell with the lower number, and its face
};

/// Takes parts of what is left out, too, that no condition fixes, and tells so; and whether none joins two boundaries that are
/// fixed. `first_id`: of the surfaces of void.
void leave_out_parts(Mesh& mesh, MeshCells const& cells, MeshSpec const& spec, ExpressionNames const& names, unsigned first_id,
                     Finding& found) {
  std::vector<ConditionEffects::OfCondition> const& list = spec.conditions->list;
  IdGroups groups = mesh.boundary_groups;
  std::set<unsigned> ids = cells.boundary_ids();
  for (Mesh::InnerFace const& face : mesh.inner_faces)
    ids.insert(face.id);
  InnerIds const inner_ids(mesh);
  for (IdGroup const& group : mesh.inner_groups.list())
    groups.add(group);
  for (std::size_t i = 0; i < found.names.size(); ++i) {
    unsigned const id = first_id + static_cast<unsigned>(i);
    groups.add({id, found.names[i], {id}});
    ids.insert(id);
  }
  ConditionsOnFaces const conditions(*spec.conditions, groups, ids);
  std::vector<Expression> places;
  for (std::size_t i = 0; i < spec.boundaries.size(); ++i)
    places.emplace_back(spec.boundaries[i].where, "problem.mesh.boundaries[" + std::to_string(i) + "].where", names);

  Parts parts(static_cast<std::size_t>(cells.n_vertices()));
  for (std::int64_t cell = 0; cell < cells.size(); ++cell)
    if (found.of(cell) == Finding::stays) {
      auto const vertices = cells.vertices(cell);
      for (unsigned v = 1; v < 8; ++v)
        parts.join(vertices[0], vertices[v]);
    }
  struct Part {
    std::set<std::pair<unsigned, std::string>> fixed;  ///< boundaries, by their id or the name of a place
    bool bound = false;
    std::int64_t cells = 0;
    double volume = 0;
    [[nodiscard]] bool is_free() const { return fixed.empty() && !bound; }
  };
  std::map<unsigned, Part> by_root;
  int const n = 1 << std::min(spec.refinements, 4);  // faces of the refined mesh in a direction, whose centres places hold
  for (std::int64_t cell = 0; cell < cells.size(); ++cell) {
    if (found.of(cell) != Finding::stays)
      continue;
    Part& part = by_root[parts.of(cells.vertices(cell)[0])];
    ++part.cells;
    part.volume += cells.volume(cell);
    auto const touch = [&](int condition, unsigned id, std::string const& place) {
      if (condition < 0)
        return;
      auto const& of = list[static_cast<std::size_t>(condition)];
      part.bound = part.bound || of.binds;
      if (of.fixes)
        part.fixed.emplace(id, place);
    };
    for (unsigned f = 0; f < 6; ++f) {
      MeshCells::Neighbor const neighbor = cells.neighbor(cell, f);
      bool const outside = neighbor.cell < 0;
      std::uint16_t const beyond = outside ? Finding::stays : found.of(neighbor.cell);
      std::optional<unsigned> const inner = outside ? std::nullopt : inner_ids.of(cell, f, neighbor);
      if (!outside && beyond == Finding::stays) {
        if (inner)
          touch(conditions.of_inner(*inner), *inner, "");
        continue;
      }
      unsigned const id = outside ? cells.boundary_id(cell, f) : inner ? *inner : first_id + beyond - 1;
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
        dealii::Point<3> const x = cells.at(cell, at);
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
  for (std::int64_t cell = 0; cell < cells.size(); ++cell) {
    if (found.of(cell) != Finding::stays || !by_root.at(parts.of(cells.vertices(cell)[0])).is_free())
      continue;
    for (unsigned f = 0; f < 6; ++f)
      if (MeshCells::Neighbor const neighbor = cells.neighbor(cell, f); neighbor.cell < 0)
        mesh.left_out_ids.insert(cells.boundary_id(cell, f));
      else if (std::uint16_t const beyond = found.of(neighbor.cell); beyond != Finding::stays && beyond != Finding::left_out)
        mesh.left_out_ids.insert(first_id + beyond - 1);
    found.of(cell) = Finding::left_out;
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

/// Numbers the vertices that cells have anew, in their order, and returns them.
std::vector<dealii::Point<3>> keep_used_vertices(MeshCells const& all, std::vector<dealii::CellData<3>>& cells,
                                                 dealii::SubCellData& parts) {
  constexpr unsigned unused = 0xffffffffU;
  std::vector<unsigned> number(static_cast<std::size_t>(all.n_vertices()), unused);
  for (auto const& cell : cells)
    for (unsigned const v : cell.vertices)
      number[v] = 0;
  std::vector<dealii::Point<3>> result;
  for (std::size_t v = 0; v < number.size(); ++v)
    if (number[v] != unused) {
      number[v] = static_cast<unsigned>(result.size());
      result.push_back(all.vertex(static_cast<unsigned>(v)));
    }
  auto const renumber = [&](auto& of) {
    for (auto& part : of)
      for (unsigned& v : part.vertices)
        v = number[v];
  };
  renumber(cells);
  renumber(parts.boundary_quads);
  renumber(parts.boundary_lines);
  return result;
}

/// Makes a triangulation of what is left of one, and returns the ids of surfaces inside of the mesh that are now on its boundary.
std::set<unsigned> keep_cells(Mesh& mesh, MeshCells const& all, Finding const& found, unsigned first_id) {
  using dealii::numbers::internal_face_boundary_id;
  std::vector<dealii::CellData<3>> cells;
  dealii::SubCellData parts;
  CurvedCells curved;
  std::set<std::array<unsigned, 2>> lines;
  std::set<unsigned> exposed;
  InnerIds const inner_ids(mesh);
  mesh.inner_faces.clear();
  for (std::int64_t cell = 0; cell < all.size(); ++cell) {
    if (found.of(cell) != Finding::stays)
      continue;
    dealii::CellData<3>& kept = cells.emplace_back();
    std::array<unsigned, 8> const vertices = all.vertices(cell);
    kept.vertices.assign(vertices.begin(), vertices.end());
    kept.material_id = all.material(cell);
    kept.manifold_id = all.manifold(cell);
    if (mesh.curved_cells) {
      auto const nodes = mesh.curved_cells->of_cell(static_cast<std::size_t>(cell));
      curved.nodes.insert(curved.nodes.end(), nodes.begin(), nodes.end());
    }
    for (unsigned f = 0; f < 6; ++f) {
      MeshCells::Neighbor const neighbor = all.neighbor(cell, f);
      bool const outside = neighbor.cell < 0;
      std::uint16_t const beyond = outside ? Finding::stays : found.of(neighbor.cell);
      bool const at_boundary = outside || beyond != Finding::stays;
      bool const is_first = at_boundary || cell < neighbor.cell;  // of the two cells that have the face
      // A surface inside of the mesh keeps its id, also where it bounds what is left.
      std::optional<unsigned> const inner = outside ? std::nullopt : inner_ids.of(cell, f, neighbor);
      if (inner && !at_boundary && is_first)
        mesh.inner_faces.push_back({static_cast<int>(cells.size()) - 1, static_cast<int>(f), *inner});
      dealii::types::manifold_id const manifold = all.manifold_of_face(cell, f);
      if (!is_first || (!at_boundary && manifold == dealii::numbers::flat_manifold_id))
        continue;
      dealii::CellData<2>& quad = parts.boundary_quads.emplace_back();
      for (unsigned v = 0; v < 4; ++v)
        quad.vertices[v] = vertices[dealii::GeometryInfo<3>::face_to_cell_vertices(f, v)];
      quad.manifold_id = manifold;
      quad.boundary_id = !at_boundary ? internal_face_boundary_id
                         : outside    ? all.boundary_id(cell, f)
                         : inner      ? *inner
                                      : first_id + beyond - 1;
      if (inner && at_boundary)
        exposed.insert(*inner);
    }
    for (dealii::CellData<1>& line : all.curved_lines(cell))
      if (lines.insert({line.vertices[0], line.vertices[1]}).second) {
        line.boundary_id = internal_face_boundary_id;
        parts.boundary_lines.push_back(std::move(line));
      }
  }

  std::vector<dealii::Point<3>> const vertices = keep_used_vertices(all, cells, parts);
  auto renewed = std::make_unique<dealii::Triangulation<3>>();
  renewed->create_triangulation(vertices, cells, parts);
  copy_manifolds(*mesh.triangulation, *renewed);
  mesh.triangulation = std::move(renewed);
  if (mesh.curved_cells)
    mesh.curved_cells->nodes = std::move(curved.nodes);
  return exposed;
}

/// What is left of a box. `labels`: as cells_of_box; `first_id`: of the surfaces in `found`.
BoxCells left_of_box(BoxGrid const& box, LabelImage const* labels, Finding const& found, unsigned first_id) {
  auto const [nx, ny, nz] = box.cells;
  std::array<std::int64_t, 3> const to_next{1, nx, nx * ny};
  BoxCells result;
  result.box = box;
  std::vector<std::int64_t> first(static_cast<std::size_t>(nz) + 1, 0);  // of what is left of every layer
  parallel_for(nz, [&](std::int64_t z) {
    auto const begin = found.surface.begin() + z * to_next[2];
    first[static_cast<std::size_t>(z) + 1] = std::count(begin, begin + to_next[2], Finding::stays);
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  result.numbers.resize(static_cast<std::size_t>(first.back()));
  result.materials.resize(static_cast<std::size_t>(first.back()));
  std::vector<std::vector<BoundaryFace>> faces(static_cast<std::size_t>(nz));
  // 6 bytes of a cell of the box are read, and 8 of what stays written.
  parallel_for(nz, [&, nx = nx, ny = ny, nz = nz](std::int64_t z) {
    std::int64_t number = first[static_cast<std::size_t>(z)];
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t x = 0; x < nx; ++x) {
        std::int64_t const cell = z * to_next[2] + y * to_next[1] + x;
        if (found.of(cell) != Finding::stays)
          continue;
        std::array<bool, 6> const outside{x == 0, x == nx - 1, y == 0, y == ny - 1, z == 0, z == nz - 1};
        for (unsigned f = 0; f < 6; ++f) {
          std::int64_t const step = to_next[f / 2];
          std::uint16_t const beyond = outside[f] ? Finding::stays : found.of(f % 2 == 0 ? cell - step : cell + step);
          if (outside[f] || beyond != Finding::stays)
            faces[static_cast<std::size_t>(z)].push_back(
                {static_cast<std::int32_t>(number), outside[f] ? f : first_id + beyond - 1, static_cast<int>(f)});
        }
        result.numbers[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(cell);
        result.materials[static_cast<std::size_t>(number)] = labels == nullptr ? 0 : labels->label(cell);
        ++number;
      }
  });
  std::size_t n_faces = 0;
  for (auto const& of_layer : faces)
    n_faces += of_layer.size();
  result.boundary_faces.reserve(n_faces);
  for (auto const& of_layer : faces)
    result.boundary_faces.insert(result.boundary_faces.end(), of_layer.begin(), of_layer.end());
  return result;
}

}  // namespace

void take_out_void(Mesh& mesh, MeshSpec const& spec, ExpressionNames const& names) {
  std::unique_ptr<MeshCells const> const all =
      mesh.triangulation != nullptr ? cells_of_triangulation(mesh) : cells_of_box(*mesh.box, spec.labels.get());
  // A surface of each cell, and a number of each vertex: its part, later its new one.
  check_memory(2 * all->size() + 4 * all->n_vertices(), "looking for the void cells of the mesh");
  Finding found = find_void(mesh, *all, spec, names);
  std::int64_t const n_left = std::count(found.surface.begin(), found.surface.end(), Finding::stays);
  if (n_left == 0)
    throw InputError(spec.void_names.empty() && spec.void_ids.empty() ? "problem.mesh.regions" : "problem.coefficient",
                     "all " + std::to_string(all->size()) + " cells of the mesh are void, and nothing is left of it");
  // Of a box: number, material and some faces of a cell that is left.
  check_memory(4 * all->n_vertices() + n_left * (mesh.triangulation != nullptr ? bytes_per_created_cell : 20), "the mesh");

  // Ids of surfaces: behind those of the mesh, in the order of the regions.
  unsigned first_id = 0;
  for (unsigned const id : all->boundary_ids())
    first_id = std::max(first_id, id + 1);
  for (IdGroups const* const groups : {&mesh.boundary_groups, &mesh.inner_groups})
    for (unsigned const id : groups->all_ids())
      first_id = std::max(first_id, id + 1);
  for (std::string const& name : found.names)
    if (mesh.boundary_groups.has_name(name) || mesh.inner_groups.has_name(name))
      throw InputError(name == surface_of_materials ? "problem.coefficient" : "problem.mesh.regions",
                       "the surface of what is void would be named '" + name +
                           "', and the mesh has a boundary of that name; choose another name for the region");
  if (spec.conditions)
    leave_out_parts(mesh, *all, spec, names, first_id, found);
  mesh.notes.insert(mesh.notes.end(), found.notes.begin(), found.notes.end());

  std::set<unsigned> const materials = all->materials();
  std::set<unsigned> exposed;
  if (mesh.triangulation != nullptr)
    exposed = keep_cells(mesh, *all, found, first_id);
  else
    mesh.box_cells = left_of_box(*mesh.box, spec.labels.get(), found, first_id);
  mesh.box.reset();
  describe(mesh);
  std::set<unsigned> const &boundaries = mesh.boundary_ids, &left = mesh.material_ids;
  for (IdGroup group : mesh.inner_groups.list()) {
    std::erase_if(group.parts, [&](unsigned part) { return !exposed.contains(part); });
    if (!group.parts.empty())
      mesh.boundary_groups.add(std::move(group));
  }
  for (std::size_t i = 0; i < found.names.size(); ++i)
    if (unsigned const id = first_id + static_cast<unsigned>(i); boundaries.contains(id)) {
      mesh.boundary_groups.add({id, found.names[i], {id}});
      mesh.void_surfaces.insert(id);
    }
  std::set<unsigned> inside;
  for (Mesh::InnerFace const& face : mesh.inner_faces)
    inside.insert(face.id);
  std::set_difference(materials.begin(), materials.end(), left.begin(), left.end(),
                      std::inserter(mesh.void_materials, mesh.void_materials.end()));
  for (unsigned const id : boundaries)
    mesh.left_out_ids.erase(id);
  for (std::size_t i = 0; i < found.names.size(); ++i)
    if (mesh.left_out_ids.contains(first_id + static_cast<unsigned>(i)))
      mesh.left_out_names.insert(found.names[i]);
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

void triangulate(Mesh& mesh) {
  if (!mesh.box_cells)
    return;
  BoxCells const& left = *mesh.box_cells;
  auto const n = std::ssize(left.numbers);
  std::unique_ptr<MeshCells const> const all = cells_of_box(left.box, nullptr);
  check_memory(4 * all->n_vertices() + n * bytes_per_created_cell, "the mesh");
  std::vector<dealii::CellData<3>> cells(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::array<unsigned, 8> const vertices = all->vertices(left.numbers[i]);
    cells[i].vertices.assign(vertices.begin(), vertices.end());
    cells[i].material_id = left.materials[i];
  }
  dealii::SubCellData parts;
  for (BoundaryFace const& face : left.boundary_faces) {
    dealii::CellData<2>& quad = parts.boundary_quads.emplace_back();
    auto const& of_cell = cells[static_cast<std::size_t>(face.cell)].vertices;
    for (unsigned v = 0; v < 4; ++v)
      quad.vertices[v] = of_cell[dealii::GeometryInfo<3>::face_to_cell_vertices(static_cast<unsigned>(face.face), v)];
    quad.boundary_id = face.boundary_id;
  }
  std::vector<dealii::Point<3>> const vertices = keep_used_vertices(*all, cells, parts);
  mesh.triangulation = std::make_unique<dealii::Triangulation<3>>();
  mesh.triangulation->create_triangulation(vertices, cells, parts);
  mesh.box_cells.reset();
}

}  // namespace poisson::assembly
