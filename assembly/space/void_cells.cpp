#include "assembly/space/void_cells.hpp"

#include "assembly/expression/expression.hpp"
#include "assembly/parallel.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"

#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

namespace poisson::assembly {
namespace {

constexpr char const* surface_of_materials = "void_surface";

/// Cells are looked at in pieces: side by side, where the mesh allows it.
constexpr std::int64_t cells_of_piece = 1 << 16;
std::int64_t n_pieces(MeshCells const& cells) {
  return n_parts(cells.size(), cells_of_piece);
}
/// Runs body(piece, begin, end) for the cells of every piece.
template <class Body>
void for_pieces(MeshCells const& cells, Body const& body) {
  auto const run = [&](std::int64_t piece) {
    auto const [begin, end] = part(cells.size(), cells_of_piece, piece);
    body(piece, begin, end);
  };
  if (cells.is_for_threads())
    parallel_for(n_pieces(cells), run);
  else
    for (std::int64_t piece = 0; piece < n_pieces(cells); ++piece)
      run(piece);
}

/// The materials of the mesh that are void by the name or id of a group. Names may be those of regions, too.
std::set<unsigned> void_materials(MeshNames const& mesh, MeshSpec const& spec, std::set<unsigned> const& all) {
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
void find_void(MeshNames& mesh, MeshCells const& cells, MeshSpec const& spec, ExpressionNames const& names, VoidCells& found) {
  constexpr double cut_share = 0.25;  // as for other places
  auto const key = [](std::size_t i) { return "problem.mesh.regions[" + std::to_string(i) + "]"; };
  std::vector<Expression> where;
  for (std::size_t i = 0; i < spec.regions.size(); ++i)
    where.emplace_back(spec.regions[i].where, key(i) + ".where", names);
  std::set<unsigned> const materials = void_materials(mesh, spec, cells.materials());
  found.surface.resize(static_cast<std::size_t>(cells.size()));
  std::vector<std::uint16_t> surface_of(spec.regions.size());
  for (std::size_t i = 0; i < spec.regions.size(); ++i)
    if (spec.regions[i].is_void)
      surface_of[i] = found.number(spec.regions[i].name);
  // Regions whose name is that of a void coefficient, and materials.
  std::uint16_t const other =
      spec.void_names.empty() && spec.void_ids.empty() ? VoidCells::stays : found.number(surface_of_materials);
  struct Counts {
    std::vector<std::int64_t> taken, cut;  ///< by region
  };
  std::vector<Counts> of_piece(static_cast<std::size_t>(n_pieces(cells)));
  for_pieces(cells, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    Counts& counts = of_piece[static_cast<std::size_t>(piece)];
    counts.taken.resize(spec.regions.size());
    counts.cut.resize(spec.regions.size());
    unsigned last_material = 0;
    bool is_void = materials.contains(last_material);
    for (std::int64_t cell = begin; cell < end; ++cell) {
      auto const holds = [&](std::size_t i, Point3 const& x) { return where[i](x[0], x[1], x[2]) != 0; };
      bool held = false;
      Point3 const centre = where.empty() ? Point3{} : cells.at(cell, {0.5, 0.5, 0.5});
      for (std::size_t i = where.size(); i-- > 0 && !held;) {
        held = holds(i, centre);
        if (!spec.is_void(spec.regions[i]))
          continue;
        int others = 0;
        for (unsigned v = 0; v < 8; ++v)
          others +=
              holds(i, cells.at(cell, {(v & 1U) != 0 ? 0.75 : 0.25, (v & 2U) != 0 ? 0.75 : 0.25, (v & 4U) != 0 ? 0.75 : 0.25})) !=
              held;
        counts.cut[i] += others > 8 * cut_share ? 1 : 0;
        if (held) {
          ++counts.taken[i];
          found.of(cell) = spec.regions[i].is_void ? surface_of[i] : other;
        }
      }
      if (held || materials.empty())
        continue;
      if (unsigned const material = cells.material(cell); material != last_material) {
        last_material = material;
        is_void = materials.contains(material);
      }
      if (is_void)
        found.of(cell) = other;
    }
  });
  std::vector<std::int64_t> taken(spec.regions.size()), cut(spec.regions.size());
  for (Counts const& counts : of_piece)
    for (std::size_t i = 0; i < spec.regions.size(); ++i) {
      taken[i] += counts.taken[i];
      cut[i] += counts.cut[i];
    }
  for (std::size_t i = 0; i < spec.regions.size(); ++i) {
    if (!spec.is_void(spec.regions[i]))
      continue;
    if (taken[i] == 0)
      throw InputError(key(i) + ".where", "no cell has its centre where '" + spec.regions[i].where + "' holds" +
                                              (i + 1 < spec.regions.size() ? ", or later entries hold them all" : "") +
                                              "; this region takes no cell out of the mesh");
    if (cut[i] > 0)
      mesh.notes.push_back(key(i) + ": '" + spec.regions[i].name + "' cuts " + std::to_string(cut[i]) +
                           " cells, of which more than a quarter is on the other side than the centre; each is taken out, or "
                           "left, as a whole");
  }
}

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

/// That a part of what is left has a face with a condition that fixes u, or binds it.
struct Touch {
  std::int32_t part = 0;
  unsigned id = 0;          ///< of the boundary, where no place holds the face
  std::int64_t place = -1;  ///< its number; -1: none
  bool fixes = false, binds = false;
  bool operator==(Touch const&) const = default;
};

/// Takes parts of what is left out, too, that no condition fixes, and tells so; and whether none joins two boundaries that are
/// fixed.
void leave_out_parts(MeshNames& mesh, MeshCells const& cells, MeshSpec const& spec, ExpressionNames const& names,
                     VoidCells& found) {
  std::vector<ConditionEffects::OfCondition> const& list = spec.conditions->list;
  IdGroups groups = mesh.boundary_groups;
  std::set<unsigned> ids = cells.boundary_ids();
  ids.merge(cells.inner_ids());
  for (IdGroup const& group : mesh.inner_groups.list())
    groups.add(group);
  for (std::size_t i = 0; i < found.names.size(); ++i) {
    unsigned const id = found.first_id + static_cast<unsigned>(i);
    groups.add({id, found.names[i], {id}});
    ids.insert(id);
  }
  ConditionsOnFaces const conditions(*spec.conditions, groups, ids);
  std::vector<Expression> places;
  for (std::size_t i = 0; i < spec.boundaries.size(); ++i)
    places.emplace_back(spec.boundaries[i].where, "problem.mesh.boundaries[" + std::to_string(i) + "].where", names);

  std::vector<std::int32_t> const part_of = cells.parts(found.surface);
  int const n = 1 << std::min(spec.refinements, 4);  // faces of the refined mesh in a direction, whose centres places hold
  std::vector<std::vector<Touch>> touches(static_cast<std::size_t>(n_pieces(cells)));
  for_pieces(cells, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    std::vector<Touch>& own = touches[static_cast<std::size_t>(piece)];
    for (std::int64_t cell = begin; cell < end; ++cell) {
      if (found.of(cell) != VoidCells::stays)
        continue;
      auto const touch = [&](int condition, unsigned id, std::int64_t place) {
        if (condition < 0)
          return;
        auto const& of = list[static_cast<std::size_t>(condition)];
        Touch const here{part_of[static_cast<std::size_t>(cell)], id, place, of.fixes, of.binds};
        if ((of.fixes || of.binds) && (own.empty() || own.back() != here))
          own.push_back(here);
      };
      for (unsigned f = 0; f < 6; ++f) {
        MeshCells::Neighbor const neighbor = cells.neighbor(cell, f);
        bool const outside = neighbor.cell < 0;
        std::uint16_t const beyond = outside ? VoidCells::stays : found.of(neighbor.cell);
        std::optional<unsigned> const inner = outside ? std::nullopt : cells.inner_id(cell, f, neighbor);
        if (!outside && beyond == VoidCells::stays) {
          if (inner)
            touch(conditions.of_inner(*inner), *inner, -1);
          continue;
        }
        unsigned const id = outside ? cells.boundary_id(cell, f) : inner ? *inner : found.first_id + beyond - 1;
        if (places.empty()) {
          touch(conditions.of_id(id), id, -1);
          continue;
        }
        for (int i = 0; i < n * n; ++i) {
          Point3 at{};
          unsigned const d = f / 2;
          at[d] = f % 2;
          at[d == 0 ? 1 : 0] = (i % n + 0.5) / n;
          at[d == 2 ? 1 : 2] = (i / n + 0.5) / n;
          Point3 const x = cells.at(cell, at);
          std::int64_t place = std::ssize(places) - 1;
          while (place >= 0 && places[static_cast<std::size_t>(place)](x[0], x[1], x[2]) == 0)
            --place;
          if (place >= 0)
            touch(conditions.of_place(spec.boundaries[static_cast<std::size_t>(place)].name), 0, place);
          else
            touch(conditions.of_id(id), id, -1);
        }
      }
    }
  });
  struct PartOfMesh {
    std::set<std::pair<unsigned, std::string>> fixed;  ///< boundaries, by their id or the name of a place
    bool bound = false;
    [[nodiscard]] bool is_free() const { return fixed.empty() && !bound; }
  };
  std::map<std::int32_t, PartOfMesh> touched;
  for (auto const& of_piece : touches)
    for (Touch const& touch : of_piece) {
      PartOfMesh& part = touched[touch.part];
      part.bound = part.bound || touch.binds;
      if (touch.fixes)
        part.fixed.emplace(touch.id, touch.place < 0 ? "" : spec.boundaries[static_cast<std::size_t>(touch.place)].name);
    }
  std::set<std::pair<unsigned, std::string>> fixed;
  bool joins = false, any_bound = false;
  for (auto const& [number, part] : touched) {
    fixed.insert(part.fixed.begin(), part.fixed.end());
    joins = joins || part.fixed.size() > 1;
    any_bound = any_bound || part.bound;
  }
  if (fixed.size() > 1 && !joins && !any_bound && !spec.conditions->has_source)
    mesh.notes.push_back(
        "no part of what is left of the mesh joins two of the boundaries with fixed values: nothing flows between them");
  if (fixed.empty() || spec.conditions->has_source)
    return;  // u is determined up to a constant, or nowhere; who assembles tells
  std::vector<bool> is_free(static_cast<std::size_t>(*std::max_element(part_of.begin(), part_of.end()) + 1), true);
  for (auto const& [number, part] : touched)
    is_free[static_cast<std::size_t>(number)] = part.is_free();
  mesh.left_out.parts = std::count(is_free.begin(), is_free.end(), true);
  if (mesh.left_out.parts == 0)
    return;
  for (std::int64_t cell = 0; cell < cells.size(); ++cell) {
    std::int32_t const part = part_of[static_cast<std::size_t>(cell)];
    if (part < 0 || !is_free[static_cast<std::size_t>(part)])
      continue;
    ++mesh.left_out.cells;
    mesh.left_out.volume += cells.volume(cell);
    for (unsigned f = 0; f < 6; ++f)
      if (MeshCells::Neighbor const neighbor = cells.neighbor(cell, f); neighbor.cell < 0)
        mesh.left_out_ids.insert(cells.boundary_id(cell, f));
      else if (std::uint16_t const beyond = found.of(neighbor.cell); beyond != VoidCells::stays && beyond != VoidCells::left_out)
        mesh.left_out_ids.insert(found.first_id + beyond - 1);
    found.of(cell) = VoidCells::left_out;
  }
  std::ostringstream text;
  text.precision(6);
  text << mesh.left_out.parts << (mesh.left_out.parts == 1 ? " part" : " parts") << " of what is left of the mesh ("
       << mesh.left_out.cells << (mesh.left_out.cells == 1 ? " cell" : " cells") << " of volume " << mesh.left_out.volume << ") "
       << (mesh.left_out.parts == 1 ? "touches" : "touch") << " no boundary where u is fixed, and "
       << (mesh.left_out.parts == 1 ? "is" : "are") << " left out";
  mesh.notes.push_back(text.str());
}

}  // namespace

VoidCells find_void_cells(MeshNames& names, MeshCells const& cells, MeshSpec const& spec, ExpressionNames const& of_expressions) {
  // Of each cell a surface, its part, and at most half of a run; or a number of each vertex.
  check_memory(12 * cells.size() + 4 * cells.n_vertices(), "looking for the void cells of the mesh");
  VoidCells found;
  find_void(names, cells, spec, of_expressions, found);
  std::int64_t const n_left = std::count(found.surface.begin(), found.surface.end(), VoidCells::stays);
  if (n_left == 0)
    throw InputError(spec.void_names.empty() && spec.void_ids.empty() ? "problem.mesh.regions" : "problem.coefficient",
                     "all " + std::to_string(cells.size()) + " cells of the mesh are void, and nothing is left of it");

  // Ids of surfaces: behind those of the mesh, in the order of the regions.
  for (unsigned const id : cells.boundary_ids())
    found.first_id = std::max(found.first_id, id + 1);
  for (IdGroups const* const groups : {&names.boundary_groups, &names.inner_groups})
    for (unsigned const id : groups->all_ids())
      found.first_id = std::max(found.first_id, id + 1);
  for (std::string const& name : found.names)
    if (names.boundary_groups.has_name(name) || names.inner_groups.has_name(name))
      throw InputError(name == surface_of_materials ? "problem.coefficient" : "problem.mesh.regions",
                       "the surface of what is void would be named '" + name +
                           "', and the mesh has a boundary of that name; choose another name for the region");
  if (spec.conditions)
    leave_out_parts(names, cells, spec, of_expressions, found);
  return found;
}

void name_what_is_left(MeshNames& names, VoidCells const& found, std::set<unsigned> const& materials,
                       std::set<unsigned> const& exposed, std::set<unsigned> const& inside) {
  std::set<unsigned> const &boundaries = names.boundary_ids, &left = names.material_ids;
  for (IdGroup group : names.inner_groups.list()) {
    std::erase_if(group.parts, [&](unsigned part) { return !exposed.contains(part); });
    if (!group.parts.empty())
      names.boundary_groups.add(std::move(group));
  }
  for (std::size_t i = 0; i < found.names.size(); ++i)
    if (unsigned const id = found.first_id + static_cast<unsigned>(i); boundaries.contains(id)) {
      names.boundary_groups.add({id, found.names[i], {id}});
      names.void_surfaces.insert(id);
    }
  std::set_difference(materials.begin(), materials.end(), left.begin(), left.end(),
                      std::inserter(names.void_materials, names.void_materials.end()));
  for (unsigned const id : boundaries)
    names.left_out_ids.erase(id);
  for (std::size_t i = 0; i < found.names.size(); ++i)
    if (names.left_out_ids.contains(found.first_id + static_cast<unsigned>(i)))
      names.left_out_names.insert(found.names[i]);
  for (IdGroup const& group : names.boundary_groups.list()) {
    auto const is_in = [&](std::set<unsigned> const& ids) {
      return std::any_of(group.parts.begin(), group.parts.end(), [&](unsigned part) { return ids.contains(part); });
    };
    if (is_in(names.left_out_ids) && !is_in(boundaries)) {
      names.left_out_ids.insert(group.id);
      names.left_out_names.insert(group.name);
    }
  }
  names.boundary_groups.keep(boundaries);
  names.material_groups.keep(left);
  names.inner_groups.keep(inside);
}

}  // namespace poisson::assembly
