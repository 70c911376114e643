#include "assembly/space/places.hpp"

#include "assembly/expression/expression.hpp"
#include "assembly/parallel.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <sstream>

namespace poisson::assembly {
namespace {

constexpr char const *boundaries_key = "problem.mesh.boundaries", *regions_key = "problem.mesh.regions";

/// Points in each direction of a face or cell that tell how much of it a place holds, and the share on the other side of the centre
/// beyond which the place cuts it. A place whose edge runs along faces, at a little distance, cuts nothing.
constexpr int samples_of_face = 4, samples_of_cell = 2;
constexpr double cut_share = 0.25;

/// The images of the centre of a cell or face, and of points all over it.
class Places {
public:
  Places(Space const& space, ReferenceElement const& element) : space_(space), geometry_(space), dofs_(space.n_local) {
    for (int face = -1; face < 6; ++face) {
      std::vector<Point3> points{{0.5, 0.5, 0.5}};
      if (face >= 0)
        points[0][face / 2] = face % 2;
      int const n = face < 0 ? samples_of_cell : samples_of_face;
      for (int i = 0; i < n * n * n; ++i) {
        std::array<int, 3> const at{i % n, i / n % n, i / (n * n)};
        if (face >= 0 && at[face / 2] != 0)
          continue;
        Point3& x = points.emplace_back();
        for (int d = 0; d < 3; ++d)
          x[d] = face >= 0 && d == face / 2 ? face % 2 : (at[d] + 0.5) / n;
      }
      tables_.push_back(tabulate(geometry_nodes_1d(space, element), points));
    }
  }
  /// `face` -1: of the cell itself.
  std::vector<Point3> const& points(std::int64_t cell, int face) {
    space_.dofs(cell, dofs_.data());
    geometry_.reset(cell, dofs_.data());
    PointTables const& table = tables_[face + 1];
    points_.clear();
    for (int q = 0; q < table.n_points; ++q)
      points_.push_back(geometry_.point(table.values.data() + static_cast<std::ptrdiff_t>(q) * geometry_.n_nodes()));
    return points_;
  }

private:
  Space const& space_;
  CellGeometry geometry_;
  std::vector<std::int32_t> dofs_;
  std::vector<PointTables> tables_;
  std::vector<Point3> points_;
};

using Counts = std::vector<PlaceCounts::OfEntry>;

/// Entries of one of the lists.
class Entries {
public:
  Entries(std::vector<NamedPlace> const& list, std::string const& key, ProblemSpec const& spec) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      where_.emplace_back(list[i].where, key + "[" + std::to_string(i) + "].where", spec.names());
      is_void_.push_back(spec.mesh.is_void(list[i]) && &list == &spec.mesh.regions);
    }
  }
  [[nodiscard]] std::size_t size() const { return where_.size(); }
  /// The last entry that holds the first of the points; -1: none does. Counts what entries hold and cut.
  std::int64_t find(std::vector<Point3> const& points, Counts& counts) const {
    for (std::size_t i = size(); i-- > 0;) {
      if (is_void_[i])  // its cells were taken out of the mesh before it was refined
        continue;
      auto const holds = [&](Point3 const& x) { return where_[i](x[0], x[1], x[2]) != 0; };
      bool const held = holds(points[0]);
      auto const others = std::count_if(points.begin() + 1, points.end(), [&](Point3 const& x) { return holds(x) != held; });
      counts[i].cut += static_cast<double>(others) > cut_share * static_cast<double>(points.size() - 1) ? 1 : 0;
      if (held) {
        ++counts[i].held;
        return static_cast<std::int64_t>(i);
      }
    }
    return -1;
  }

private:
  std::vector<Expression> where_;
  std::vector<bool> is_void_;
};

/// The entries that hold the n faces or cells, -1 where none does; `counts` of them. `place(places, i)` are the points of number i.
template <class Place>
HostVector<std::int32_t> find_all(Entries const& entries, Space const& space, ReferenceElement const& element, std::int64_t n,
                                  Counts& counts, Place const& place) {
  constexpr std::int64_t size = 1024;
  HostVector<std::int32_t> found(static_cast<std::size_t>(n));
  std::vector<Counts> parts(static_cast<std::size_t>(n_parts(n, size)));
  parallel_for(
      n_parts(n, size), [&] { return Places(space, element); },
      [&](Places& places, std::int64_t const p) {
        parts[p].resize(entries.size());
        auto const [begin, end] = part(n, size, p);
        for (auto i = begin; i < end; ++i)
          found[i] = static_cast<std::int32_t>(entries.find(place(places, i), parts[p]));
      });
  counts.resize(entries.size());
  for (Counts const& of_part : parts)
    for (std::size_t i = 0; i < entries.size(); ++i) {
      counts[i].held += of_part[i].held;
      counts[i].cut += of_part[i].cut;
    }
  return found;
}

template <class IsVoid>
void add_names(std::vector<NamedPlace> const& list, std::string const& key, std::set<unsigned>& ids, IdGroups& groups,
               IdGroups const& others, std::set<unsigned> taken, unsigned& first, IsVoid const& is_void) {
  taken.insert(ids.begin(), ids.end());
  for (IdGroups const* const known : {static_cast<IdGroups const*>(&groups), &others})
    taken.merge(known->all_ids());
  first = taken.empty() ? 0 : *taken.rbegin() + 1;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (groups.has_name(list[i].name) || others.has_name(list[i].name))
      throw InputError(key + "[" + std::to_string(i) + "].name", "the name '" + list[i].name + "' is taken; choose another one");
    auto const id = first + static_cast<unsigned>(i);
    if (is_void(list[i]))
      continue;
    ids.insert(id);
    groups.add({id, list[i].name, {id}});
  }
}

}  // namespace

PlaceNames::PlaceNames(MeshCounts const& counts, MeshSpec const& spec)
    : boundary_ids(counts.boundary_ids),
      material_ids(counts.material_ids),
      boundary_groups(counts.boundary_groups),
      material_groups(counts.material_groups),
      inner_groups(counts.inner_groups),
      insulated(counts.void_surfaces),
      left_out_ids(counts.left_out_ids),
      left_out_names(counts.left_out_names) {
  for (auto const& [id, faces] : counts.inner_faces_with_id)
    inner_ids.insert(id);
  add_names(spec.boundaries, boundaries_key, boundary_ids, boundary_groups, inner_groups, {}, first_boundary,
            [](auto const&) { return false; });
  add_names(spec.regions, regions_key, material_ids, material_groups, {}, counts.void_materials, first_material,
            [&](NamedPlace const& region) { return spec.is_void(region); });
}

PlaceCounts name_places(Space& space, ReferenceElement const& element, ProblemSpec const& spec, PlaceNames const& names) {
  PlaceCounts counts;
  if (!spec.mesh.boundaries.empty()) {
    Entries const entries(spec.mesh.boundaries, boundaries_key, spec);
    auto const n = static_cast<std::int64_t>(space.boundary_faces.size());
    auto const found = find_all(
        entries, space, element, n, counts.boundaries, [&](Places & places, std::int64_t i) -> auto const& {
          return places.points(space.boundary_faces[i].cell, space.boundary_faces[i].face);
        });
    space.set_boundary_ids(found, names.first_boundary);
  }
  if (!spec.mesh.regions.empty()) {
    Entries const entries(spec.mesh.regions, regions_key, spec);
    auto const found = find_all(
        entries, space, element, space.n_cells,
        counts.regions, [&](Places & places, std::int64_t cell) -> auto const& { return places.points(cell, -1); });
    space.set_materials(found, names.first_material);
  }
  counts.boundary_ids = space.boundary_ids;
  counts.material_ids = space.material_ids;
  return counts;
}

std::vector<std::string> check_places(MeshSpec const& spec, PlaceCounts const& counts, Point3 const& low, Point3 const& high,
                                      bool some_left_out) {
  std::vector<std::string> notes;
  auto const check = [&](std::vector<NamedPlace> const& list, std::vector<PlaceCounts::OfEntry> const& of_entries,
                         char const* of_list, char const* what) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::string const key = std::string(of_list) + "[" + std::to_string(i) + "]";
      if (&list == &spec.regions && spec.is_void(list[i]))
        continue;
      if (of_entries[i].held == 0) {
        std::ostringstream extent;
        extent << "(" << low[0] << ", " << low[1] << ", " << low[2] << ") to (" << high[0] << ", " << high[1] << ", " << high[2]
               << ")";
        throw InputError(key + ".where", std::string("no ") + what + " has its centre where '" + list[i].where + "' holds" +
                                             (i + 1 < list.size() ? ", or later entries hold them all" : "") +
                                             "; the mesh extends from " + extent.str() +
                                             (some_left_out ? ", without the parts that touch no boundary where u is fixed" : ""));
      }
      if (of_entries[i].cut > 0)
        notes.push_back(key + ": '" + list[i].name + "' cuts " + std::to_string(of_entries[i].cut) + " " + what +
                        "s, of which more than a quarter is on the other side than the centre; each counts as a whole");
    }
  };
  check(spec.boundaries, counts.boundaries, boundaries_key, "boundary face");
  check(spec.regions, counts.regions, regions_key, "cell");
  return notes;
}

}  // namespace poisson::assembly
