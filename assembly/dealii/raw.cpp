#include "assembly/dealii/raw.hpp"

#include <algorithm>
#include <charconv>
#include <set>

namespace poisson::assembly {

std::int64_t trailing_number(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9')
    --begin;
  std::int64_t value = -1;
  if (begin == name.size() || name.size() - begin > 9)
    return -1;
  std::from_chars(name.data() + begin, name.data() + name.size(), value);
  return value;
}

std::map<std::string, std::int64_t> ids_of_names(std::vector<std::string> const& names) {
  std::map<std::string, std::int64_t> ids;
  std::set<std::int64_t> taken;
  for (std::string const& name : names)
    if (std::int64_t const id = trailing_number(name); id >= 0) {
      ids[name] = id;
      taken.insert(id);
    }
  std::int64_t next = 1;
  for (std::string const& name : names)
    if (!ids.contains(name)) {
      while (taken.contains(next))
        ++next;
      ids[name] = next++;
    }
  return ids;
}

void RawMeshBuilder::add_vertex(std::int64_t number, double x, double y, double z) {
  if (mesh_.vertices.size() >= 2147483647u)
    text_.fail("there are more than 2147483647 nodes");
  if (!vertex_of_number_.emplace(number, static_cast<int>(mesh_.vertices.size())).second)
    text_.fail("node " + std::to_string(number) + " is defined twice");
  mesh_.vertices.emplace_back(x, y, z);
}

int RawMeshBuilder::vertex(std::int64_t number) const {
  auto const found = vertex_of_number_.find(number);
  if (found == vertex_of_number_.end())
    text_.fail("node " + std::to_string(number) + " is used, but not defined");
  return found->second;
}

void RawMeshBuilder::add_hexahedron(std::array<std::int64_t, 8> const& numbers, std::int64_t material) {
  static constexpr std::array<std::size_t, 8> order{0, 1, 3, 2, 4, 5, 7, 6};
  RawMesh::Cell cell;
  for (std::size_t v = 0; v < 8; ++v)
    cell.vertices[v] = vertex(numbers[order[v]]);
  cell.material = material;
  cell.line = text_.line();
  mesh_.cells.push_back(cell);
}

void RawMeshBuilder::add_quad(std::array<std::int64_t, 4> const& numbers, std::int64_t boundary) {
  RawMesh::Quad quad;
  for (std::size_t v = 0; v < 4; ++v)
    quad.vertices[v] = vertex(numbers[v]);
  quad.boundary = boundary;
  quad.line = text_.line();
  mesh_.quads.push_back(quad);
}

void RawMeshBuilder::add_unsupported(std::string const& name, int dimension) {
  auto const known = std::find_if(unsupported_.begin(), unsupported_.end(), [&](Unsupported const& u) { return u.name == name; });
  if (known != unsupported_.end())
    ++known->count;
  else if (unsupported_.size() < 1000)
    unsupported_.push_back({name, dimension, 1, text_.line()});
}

RawMesh RawMeshBuilder::finish() {
  if (!unsupported_.empty()) {
    Unsupported const& worst = *std::max_element(unsupported_.begin(), unsupported_.end(),
                                                 [](auto const& a, auto const& b) { return a.dimension < b.dimension; });
    text_.fail_at(worst.line, "elements of type " + worst.name + " (" + std::to_string(worst.count) +
                                  " of them, the first in this line) cannot be read: only linear hexahedra (8 nodes), with linear "
                                  "quadrilaterals on the boundary, are; export the mesh as all-hexahedral and of first order");
  }
  return std::move(mesh_);
}

}  // namespace poisson::assembly
