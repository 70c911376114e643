#include "assembly/space/places.hpp"

#include "assembly/expression/expression.hpp"
#include "assembly/parallel.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace poisson::assembly {
namespace {

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

std::string extent_text(Space const& space) {
  Point3 low = space.point(0), high = low;
  for (std::int64_t i = 1; i < space.n_dofs; ++i) {
    Point3 const x = space.point(i);
    for (int d = 0; d < 3; ++d) {
      low[d] = std::min(low[d], x[d]);
      high[d] = std::max(high[d], x[d]);
    }
  }
  std::ostringstream text;
  text << "(" << low[0] << ", " << low[1] << ", " << low[2] << ") to (" << high[0] << ", " << high[1] << ", " << high[2] << ")";
  return text.str();
}

/// Entries of one of the lists, what they hold, and how often they cut it.
class Entries {
public:
  Entries(std::vector<NamedPlace> const& list, std::string key, ExpressionNames const& names) : list_(list), key_(std::move(key)) {
    for (std::size_t i = 0; i < list.size(); ++i)
      where_.emplace_back(list[i].where, key_ + "[" + std::to_string(i) + "].where", names);
    held_.resize(list.size());
    cut_.resize(list.size());
  }
  /// The last entry that holds the first of the points; -1: none does.
  std::int64_t find(std::vector<Point3> const& points) {
    for (std::size_t i = list_.size(); i-- > 0;) {
      auto const holds = [&](Point3 const& x) { return where_[i](x[0], x[1], x[2]) != 0; };
      bool const held = holds(points[0]);
      auto const others = std::count_if(points.begin() + 1, points.end(), [&](Point3 const& x) { return holds(x) != held; });
      cut_[i] += static_cast<double>(others) > cut_share * static_cast<double>(points.size() - 1) ? 1 : 0;
      if (held) {
        ++held_[i];
        return static_cast<std::int64_t>(i);
      }
    }
    return -1;
  }
  void add(Entries const& other) {
    for (std::size_t i = 0; i < held_.size(); ++i) {
      held_[i] += other.held_[i];
      cut_[i] += other.cut_[i];
    }
  }
  void check(Space const& space, char const* what, std::vector<std::string>& notes) const {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      std::string const key = key_ + "[" + std::to_string(i) + "]";
      if (held_[i] == 0)
        throw InputError(key + ".where", std::string("no ") + what + " has its centre where '" + list_[i].where + "' holds" +
                                             (i + 1 < list_.size() ? ", or later entries hold them all" : "") +
                                             "; the mesh extends from " + extent_text(space));
      if (cut_[i] > 0)
        notes.push_back(key + ": '" + list_[i].name + "' cuts " + std::to_string(cut_[i]) + " " + what +
                        "s, of which more than a quarter is on the other side than the centre; each counts as a whole");
    }
  }

private:
  std::vector<NamedPlace> const& list_;
  std::string key_;
  std::vector<Expression> where_;
  std::vector<std::int64_t> held_, cut_;
};

/// The entries that hold the n faces or cells, -1 where none does. `place(places, i)` are the points of number i.
template <class Place>
std::vector<std::int64_t> find_all(Entries& entries, Space const& space, ReferenceElement const& element, std::int64_t n,
                                   Place const& place) {
  constexpr std::int64_t size = 1024;
  std::vector<std::int64_t> found(static_cast<std::size_t>(n));
  std::vector<Entries> parts(static_cast<std::size_t>(n_parts(n, size)), entries);
  parallel_for(
      n_parts(n, size), [&] { return Places(space, element); },
      [&](Places& places, std::int64_t const p) {
        auto const [begin, end] = part(n, size, p);
        for (auto i = begin; i < end; ++i)
          found[i] = parts[p].find(place(places, i));
      });
  for (Entries const& of_part : parts)
    entries.add(of_part);
  return found;
}

void add_names(std::vector<NamedPlace> const& list, std::string const& key, std::set<unsigned>& ids, IdNames& names,
               unsigned& first) {
  first = ids.empty() ? 0 : *ids.rbegin() + 1;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (std::any_of(names.begin(), names.end(), [&](auto const& known) { return known.second == list[i].name; }))
      throw InputError(key + "[" + std::to_string(i) + "].name", "the name '" + list[i].name + "' is taken; choose another one");
    auto const id = first + static_cast<unsigned>(i);
    ids.insert(id);
    names[id] = list[i].name;
  }
}

}  // namespace

PlaceNames::PlaceNames(MeshCounts const& counts, MeshSpec const& spec)
    : boundary_ids(counts.boundary_ids),
      material_ids(counts.material_ids),
      boundary_names(counts.boundary_names),
      material_names(counts.material_names) {
  add_names(spec.boundaries, "problem.mesh.boundaries", boundary_ids, boundary_names, first_boundary);
  add_names(spec.regions, "problem.mesh.regions", material_ids, material_names, first_material);
}

std::vector<std::string> name_places(Space& space, ReferenceElement const& element, ProblemSpec const& spec,
                                     PlaceNames const& names) {
  std::vector<std::string> notes;
  if (!spec.mesh.has_places())
    return notes;
  if (!spec.mesh.boundaries.empty()) {
    Entries entries(spec.mesh.boundaries, "problem.mesh.boundaries", spec.names());
    auto const n = static_cast<std::int64_t>(space.boundary_faces.size());
    auto const found = find_all(
        entries, space, element, n, [&](Places & places, std::int64_t i) -> auto const& {
          return places.points(space.boundary_faces[i].cell, space.boundary_faces[i].face);
        });
    space.set_boundary_ids(found, names.first_boundary);
    entries.check(space, "boundary face", notes);
  }
  if (!spec.mesh.regions.empty()) {
    Entries entries(spec.mesh.regions, "problem.mesh.regions", spec.names());
    auto const found = find_all(
        entries, space, element,
        space.n_cells, [&](Places & places, std::int64_t cell) -> auto const& { return places.points(cell, -1); });
    space.set_materials(found, names.first_material);
    entries.check(space, "cell", notes);
  }
  return notes;
}

}  // namespace poisson::assembly
