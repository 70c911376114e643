#include "assembly/dealii/mesh_groups.hpp"

#include <algorithm>
#include <cstdint>
#include <deal.II/base/types.h>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace poisson::assembly {
namespace {

/// The groups of the cells, or of the faces, of a file, and the combinations of them that there are.
class GroupTable {
public:
  GroupTable(std::string const& path, char const* what) : path_(path), what_(what) {}

  /// The group of a plain number.
  int add_number(std::int64_t id, std::string const& name, std::int64_t line) {
    check(id, line);
    return add(id, name);
  }
  /// A group of the file; where another one has its id already, it gets a free one, from number_the_rest.
  int add_group(RawMesh::Group const& group) {
    if (group.id != -1)
      check(group.id, 0);
    return add(group.id, group.name);
  }
  [[nodiscard]] bool has_name(std::string const& name) const {
    return std::any_of(groups_.begin(), groups_.end(), [&](Group const& group) { return group.name == name; });
  }
  /// Gives ids to the groups that have none as yet.
  void number_the_rest(std::vector<std::string>& notes) {
    std::set<std::int64_t> taken{0};
    for (Group const& group : groups_)
      taken.insert(group.id);
    std::int64_t next = 1;
    for (Group& group : groups_) {
      if (group.id >= 0)
        continue;
      while (taken.contains(next))
        ++next;
      group.id = next++;
      if (group.in_file >= 0)
        notes.push_back(std::string("the ") + what_ + " group " + name_of(group) + " has the number " +
                        std::to_string(group.in_file) + " in the file, which " +
                        (group.in_file == 0 ? "stands for no group here" : "another group has") + "; its id is " +
                        std::to_string(group.id));
    }
  }

  /// The combination of another one and a group; 0 is the one of no groups.
  int with(int combination, int group) {
    auto const [entry, is_new] = with_.try_emplace({combination, group}, 0);
    if (is_new) {
      std::vector<int> groups = combinations_[static_cast<std::size_t>(combination)];
      auto const place = std::lower_bound(groups.begin(), groups.end(), group);
      if (place == groups.end() || *place != group)
        groups.insert(place, group);
      auto const known = std::find(combinations_.begin(), combinations_.end(), groups);
      entry->second = static_cast<int>(known - combinations_.begin());
      if (known == combinations_.end())
        combinations_.push_back(std::move(groups));
    }
    return entry->second;
  }
  int united(int a, int b) {
    for (int const group : std::vector<int>(combinations_[static_cast<std::size_t>(b)]))
      a = with(a, group);
    return a;
  }

  /// The ids in the mesh of combinations that are in use: that of a single group is its own.
  [[nodiscard]] std::map<int, unsigned> ids_of(std::set<int> const& in_use) const {
    std::set<unsigned> taken{0};
    for (Group const& group : groups_)
      taken.insert(static_cast<unsigned>(group.id));
    std::map<std::vector<int>, int> of_several;  // in an order that does not depend on how cells and faces are numbered
    std::map<int, unsigned> ids;
    for (int const c : in_use) {
      auto const& groups = combinations_[static_cast<std::size_t>(c)];
      if (groups.size() > 1)
        of_several[groups] = c;
      else
        ids[c] = groups.empty() ? 0 : static_cast<unsigned>(groups_[static_cast<std::size_t>(groups[0])].id);
    }
    for (auto const& [groups, c] : of_several)
      taken.insert(ids[c] = free_id(taken));
    return ids;
  }
  /// The groups, made of those combinations. Left out are groups without a name that are nothing else than their id.
  [[nodiscard]] IdGroups groups_of(std::set<int> const& in_use, std::map<int, unsigned> const& ids, bool with_empty) const {
    std::vector<std::set<unsigned>> parts(groups_.size());
    for (int const c : in_use)
      for (int const group : combinations_[static_cast<std::size_t>(c)])
        parts[static_cast<std::size_t>(group)].insert(ids.at(c));
    IdGroups result;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      auto const id = static_cast<unsigned>(groups_[g].id);
      bool const plain = groups_[g].name.empty() && (parts[g].empty() || parts[g] == std::set<unsigned>{id});
      if (!plain && (with_empty || !parts[g].empty()))
        result.add({id, groups_[g].name, parts[g]});
    }
    return result;
  }

private:
  struct Group {
    std::int64_t id = -1;  ///< -1: none as yet
    std::string name;
    std::int64_t in_file = -1;  ///< of one that cannot keep it: the id there
  };

  int add(std::int64_t id, std::string const& name) {
    bool taken = false;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      Group const& other = groups_[g];
      if (other.name == name && (other.id == id || other.in_file == id) && (id >= 0 || !name.empty()))
        return static_cast<int>(g);
      taken = taken || other.id == id;
    }
    // Faces that no group lists have the id 0.
    bool const keeps = id > 0 ? !taken : id == 0 && name.empty();
    groups_.push_back({keeps ? id : -1, name, keeps ? -1 : id});
    return static_cast<int>(groups_.size()) - 1;
  }
  void check(std::int64_t id, std::int64_t line) const {
    if (id < 0 || id >= std::int64_t{dealii::numbers::internal_face_boundary_id})
      fail_in_mesh_file(path_, line,
                        std::string("the ") + what_ + " id " + std::to_string(id) + " is not in the range 0 to 4294967294");
  }
  static std::string name_of(Group const& group) { return group.name.empty() ? "without a name" : "'" + group.name + "'"; }

  std::string const& path_;
  char const* what_;
  std::vector<Group> groups_;
  std::vector<std::vector<int>> combinations_{{}};
  std::map<std::pair<int, int>, int> with_;
};

/// The combinations of all elements of a kind, from their plain numbers and the groups of the file. Those with the number 0, unless
/// it has a name, have no group by it.
template <class Element>
std::vector<int> combinations_of(GroupTable& table, std::vector<Element> const& elements, std::int64_t Element::*number,
                                 std::map<std::int64_t, std::string> const& names, std::vector<RawMesh::Group> const& groups) {
  std::map<std::int64_t, int> of_number;
  for (auto const& [id, name] : names)
    of_number[id] = table.add_number(id, name, 0);
  std::vector<int> result(elements.size(), 0);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::int64_t const id = elements[i].*number;
    auto known = of_number.find(id);
    if (known == of_number.end())
      known = of_number.emplace(id, id == 0 ? -1 : table.add_number(id, "", elements[i].line)).first;
    if (known->second >= 0)
      result[i] = table.with(0, known->second);
  }
  for (RawMesh::Group const& group : groups) {
    int const g = table.add_group(group);
    for (std::size_t const i : group.members)
      result[i] = table.with(result[i], g);
  }
  return result;
}

std::array<int, 4> sorted(std::array<int, 4> vertices) {
  std::sort(vertices.begin(), vertices.end());
  return vertices;
}

/// Unites the combinations of cells with the same nodes in the first of them, and erases the others.
void merge_repeated_cells(RawMesh& mesh, GroupTable& table, std::vector<int>& combinations) {
  std::vector<std::array<int, 8>> keys;
  keys.reserve(mesh.cells.size());
  for (RawMesh::Cell const& cell : mesh.cells) {
    auto& key = keys.emplace_back(cell.vertices);
    std::sort(key.begin(), key.end());
  }
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  std::vector<bool> repeated(keys.size());
  bool any = false;
  for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
    if (keys[order[i]] != keys[order[first]]) {
      first = i;
      continue;
    }
    combinations[order[first]] = table.united(combinations[order[first]], combinations[order[i]]);
    repeated[order[i]] = any = true;
  }
  if (!any)
    return;
  std::size_t const n_nodes = mesh.shape_nodes.size() / mesh.cells.size();
  std::size_t kept = 0;
  for (std::size_t c = 0; c < repeated.size(); ++c) {
    if (repeated[c])
      continue;
    mesh.cells[kept] = mesh.cells[c];
    combinations[kept] = combinations[c];
    std::copy_n(mesh.shape_nodes.begin() + static_cast<std::ptrdiff_t>(c * n_nodes), n_nodes,
                mesh.shape_nodes.begin() + static_cast<std::ptrdiff_t>(kept * n_nodes));
    ++kept;
  }
  mesh.cells.resize(kept);
  combinations.resize(kept);
  mesh.shape_nodes.resize(kept * n_nodes);
}

}  // namespace

IdGroups resolve_cell_groups(std::string const& path, RawMesh& mesh, std::vector<std::string>& notes) {
  GroupTable table(path, "material");
  std::vector<int> combinations =
      combinations_of(table, mesh.cells, &RawMesh::Cell::material, mesh.material_names, mesh.cell_groups);
  mesh.cell_groups.clear();  // merging cells changes their numbers
  table.number_the_rest(notes);
  merge_repeated_cells(mesh, table, combinations);
  std::set<int> const in_use(combinations.begin(), combinations.end());
  auto const ids = table.ids_of(in_use);
  for (std::size_t c = 0; c < mesh.cells.size(); ++c)
    mesh.cells[c].material = ids.at(combinations[c]);
  return table.groups_of(in_use, ids, true);
}

FaceGroups resolve_face_groups(std::string const& path, RawMesh const& mesh, std::vector<RawFace> const& faces,
                               std::vector<std::string>& notes) {
  GroupTable table(path, "boundary");
  std::vector<int> const of_quads =
      combinations_of(table, mesh.quads, &RawMesh::Quad::boundary, mesh.boundary_names, mesh.quad_groups);
  std::vector<int> of_faces(faces.size(), 0);
  auto const is_second = [&](std::size_t f) { return f > 0 && faces[f - 1].key == faces[f].key; };
  auto const is_inner = [&](std::size_t f) { return f + 1 < faces.size() && faces[f + 1].key == faces[f].key; };
  for (std::size_t q = 0; q < mesh.quads.size(); ++q) {
    auto const key = sorted(mesh.quads[q].vertices);
    auto const face = std::lower_bound(faces.begin(), faces.end(), key, [](RawFace const& f, auto const& k) { return f.key < k; });
    if (face == faces.end() || face->key != key)
      fail_in_mesh_file(path, mesh.quads[q].line, "a quadrilateral is not a face of any hexahedron");
    int& combination = of_faces[static_cast<std::size_t>(face - faces.begin())];
    combination = table.united(combination, of_quads[q]);
  }
  for (RawMesh::Group const& group : mesh.node_groups) {
    if (table.has_name(group.name) && !group.name.empty()) {
      notes.push_back("the node set '" + group.name + "' has the name of a set of faces, which counts alone");
      continue;
    }
    std::vector<bool> holds(mesh.vertices.size());
    for (std::size_t const vertex : group.members)
      holds[vertex] = true;
    int g = -1;
    for (std::size_t f = 0; f < faces.size(); ++f)
      if (!is_second(f) && !is_inner(f) &&
          std::all_of(faces[f].key.begin(), faces[f].key.end(), [&](int v) { return holds[static_cast<std::size_t>(v)]; })) {
        if (g < 0)
          g = table.add_group(group);
        of_faces[f] = table.with(of_faces[f], g);
      }
    if (g < 0)
      notes.push_back("the node set " + (group.name.empty() ? std::to_string(group.id) : "'" + group.name + "'") + " (" +
                      std::to_string(group.members.size()) + " nodes) holds no face of the boundary, and is passed over");
  }
  table.number_the_rest(notes);

  std::set<int> on_boundary, inside;
  for (std::size_t f = 0; f < faces.size(); ++f)
    if (is_inner(f) && of_faces[f] != 0)
      inside.insert(of_faces[f]);
    else if (!is_second(f) && !is_inner(f))
      on_boundary.insert(of_faces[f]);
  std::set<int> all = on_boundary;
  all.insert(inside.begin(), inside.end());
  auto const ids = table.ids_of(all);
  FaceGroups result;
  result.boundary_groups = table.groups_of(on_boundary, ids, true);
  result.inner_groups = table.groups_of(inside, ids, false);
  for (std::size_t f = 0; f < faces.size(); ++f) {
    unsigned const id = of_faces[f] == 0 ? 0 : ids.at(of_faces[f]);
    if (id == 0)
      continue;
    RawFace const& face = faces[f];
    if (is_inner(f)) {
      FaceGroups::Inner& inner = result.inner.emplace_back();
      inner.cell = face.cell;
      inner.id = id;
      auto const& vertices = mesh.cells[face.cell].vertices;
      for (std::size_t v = 0; v < 4; ++v)
        inner.corners[v] = static_cast<int>(std::find(vertices.begin(), vertices.end(), face.key[v]) - vertices.begin());
      continue;
    }
    dealii::CellData<2> cell;
    cell.vertices = {static_cast<unsigned>(face.vertices[0]), static_cast<unsigned>(face.vertices[1]),
                     static_cast<unsigned>(face.vertices[3]), static_cast<unsigned>(face.vertices[2])};
    cell.boundary_id = id;
    result.boundary.boundary_quads.push_back(cell);
  }
  std::sort(result.inner.begin(), result.inner.end(), [](auto const& a, auto const& b) { return a.cell < b.cell; });
  std::set<unsigned> boundary_ids;
  for (auto const& quad : result.boundary.boundary_quads)
    boundary_ids.insert(quad.boundary_id);
  std::map<unsigned, std::int64_t> inner_faces;  // by what a configuration calls them
  for (FaceGroups::Inner const& face : result.inner)
    for (unsigned const id : result.inner_groups.ids_of({face.id}))
      ++inner_faces[id];
  for (auto const& [id, count] : inner_faces) {
    if (result.boundary_groups.with_id(id, boundary_ids).empty())
      continue;
    std::string name = std::to_string(id);
    for (IdGroup const& group : result.inner_groups.list())
      if (group.id == id && !group.name.empty())
        name = "'" + group.name + "'";
    notes.push_back("the boundary group " + name + " has " + std::to_string(count) + (count == 1 ? " face" : " faces") +
                    " between cells, too; dirichlet and neumann conditions hold there as well, others on the boundary alone");
  }
  return result;
}

}  // namespace poisson::assembly
