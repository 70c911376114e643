#include "output/vtk/level_set.hpp"

#include "gpu/core/memory.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <utility>

namespace poisson::output {

namespace {

constexpr std::int64_t sub_cells_per_part = 1024;

struct Corner {
  std::int64_t node, number;  ///< the number in the whole mesh
  double value;               ///< less the level
};

/// Vertices of triangles by the nodes between which they are; both are the same where the vertex is a node.
using Key = std::pair<std::int64_t, std::int64_t>;
struct Vertex {
  Key between;
  double share;
};
struct Triangle {
  std::array<Vertex, 3> vertices;
  std::int64_t cell;
};

Vertex vertex_between(Corner const& a, Corner const& b) {
  Corner const &first = a.number < b.number ? a : b, &second = a.number < b.number ? b : a;
  double const share = first.value / (first.value - second.value);
  if (share <= 0)
    return {{first.node, first.node}, 0};
  if (share >= 1)
    return {{second.node, second.node}, 0};
  return {{first.node, second.node}, share};
}

/// Adds the triangles of a tetrahedron. `inside(value)`: on the side of larger values. Corners 1, 2, 3 are counterclockwise, seen
/// from corner 0.
template <class Inside>
void add_tetrahedron(std::array<Corner, 4> const& corners, std::int64_t cell, Inside const& inside, std::vector<Triangle>& out) {
  std::array<std::size_t, 4> in{}, not_in{};
  std::size_t n_in = 0, n_not = 0;
  for (std::size_t i = 0; i < 4; ++i)
    (inside(corners[i].value) ? in[n_in++] : not_in[n_not++]) = i;
  if (n_in == 0 || n_not == 0)
    return;
  auto const between = [&](std::size_t a, std::size_t b) { return vertex_between(corners[a], corners[b]); };
  auto const add = [&](Vertex const& a, Vertex const& b, Vertex const& c, bool turned) {
    if (a.between == b.between || b.between == c.between || a.between == c.between)
      return;  // two vertices are one node
    out.push_back({turned ? std::array<Vertex, 3>{a, c, b} : std::array<Vertex, 3>{a, b, c}, cell});
  };
  // Whether (a, b, c, d) is an odd permutation of the corners.
  auto const odd = [](std::array<std::size_t, 4> const& order) {
    bool result = false;
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = i + 1; j < 4; ++j)
        result = result != (order[i] > order[j]);
    return result;
  };
  if (n_in == 2) {
    std::size_t const a = in[0], b = in[1], c = not_in[0], d = not_in[1];
    Vertex const ac = between(a, c), ad = between(a, d), bc = between(b, c), bd = between(b, d);
    bool const turned = odd({a, b, c, d});
    add(ac, ad, bd, turned);
    add(ac, bd, bc, turned);
    return;
  }
  bool const one_in = n_in == 1;
  std::size_t const apex = one_in ? in[0] : not_in[0];
  auto const& base = one_in ? not_in : in;
  bool const turned = odd({apex, base[0], base[1], base[2]}) != !one_in;
  add(between(apex, base[0]), between(apex, base[1]), between(apex, base[2]), turned);
}

/// The faces of a hexahedron with lexicographic corners, around, counterclockwise seen from outside.
constexpr std::array<std::array<std::size_t, 4>, 6> hexahedron_faces{
    {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}}};

/// A hexahedron is the pyramids over the three faces that do not have its lowest node, with their apex there. Every face is cut
/// from its lowest node, whatever cell it is seen from.
template <class Inside>
void add_hexahedron(std::array<Corner, 8> const& corners, std::int64_t cell, Inside const& inside, std::vector<Triangle>& out) {
  std::size_t lowest = 0;
  for (std::size_t i = 1; i < 8; ++i)
    if (corners[i].number < corners[lowest].number)
      lowest = i;
  for (auto const& face : hexahedron_faces) {
    if (std::find(face.begin(), face.end(), lowest) != face.end())
      continue;
    std::size_t first = 0;
    for (std::size_t i = 1; i < 4; ++i)
      if (corners[face[i]].number < corners[face[first]].number)
        first = i;
    auto const at = [&](std::size_t i) { return corners[face[(first + i) % 4]]; };
    // Seen from inside, where the apex is, the face is clockwise.
    add_tetrahedron({corners[lowest], at(0), at(2), at(1)}, cell, inside, out);
    add_tetrahedron({corners[lowest], at(0), at(3), at(2)}, cell, inside, out);
  }
}

template <class Inside>
std::vector<Triangle> triangles_of(Mesh const& mesh, ValuesOfNodes const& values, double level, Inside const& inside,
                                   std::function<std::int64_t(std::int64_t)> const& number_of) {
  int const p = mesh.order();
  std::int64_t const per_cell = std::int64_t{p} * p * p, cells_per_part = std::max<std::int64_t>(1, sub_cells_per_part / per_cell);
  std::int64_t const parts = (mesh.n_cells() + cells_per_part - 1) / cells_per_part;
  std::vector<std::vector<Triangle>> of_parts(static_cast<std::size_t>(parts));
  auto const n_local = static_cast<std::size_t>(mesh.nodes_per_cell());
  auto const find = [&](std::int64_t part) {
    auto& out = of_parts[static_cast<std::size_t>(part)];
    std::int64_t const begin = part * cells_per_part, end = std::min(mesh.n_cells(), begin + cells_per_part);
    auto const n_cells = static_cast<std::size_t>(end - begin);
    std::vector<std::int64_t> const numbers = mesh.nodes_by_place(begin, end - begin);
    std::vector<double> at_nodes(numbers.size());
    values(numbers, at_nodes.data());
    std::vector<Corner> nodes(n_local);
    for (std::int64_t cell = begin; cell < end; ++cell) {
      bool some_in = false, some_out = false;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        std::size_t const at = i * n_cells + static_cast<std::size_t>(cell - begin);
        nodes[i] = {numbers[at], numbers[at], at_nodes[at] - level};
        (inside(nodes[i].value) ? some_in : some_out) = true;
      }
      if (!some_in || !some_out)
        continue;
      for (Corner& corner : nodes)
        if (number_of)
          corner.number = number_of(corner.node);
      for (int z = 0; z < p; ++z)
        for (int y = 0; y < p; ++y)
          for (int x = 0; x < p; ++x) {
            std::array<Corner, 8> corners{};
            for (int i = 0; i < 8; ++i)
              corners[static_cast<std::size_t>(i)] =
                  nodes[static_cast<std::size_t>(((z + (i >> 2)) * (p + 1) + y + (i >> 1 & 1)) * (p + 1) + x + (i & 1))];
            add_hexahedron(corners, cell, inside, out);
          }
    }
  };
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t part = 0; part < parts; ++part)
    try {
      find(part);
    } catch (...) {
#pragma omp critical(poisson_level_set)
      failure = std::current_exception();
    }
  if (failure)
    std::rethrow_exception(failure);
  std::vector<Triangle> all;
  for (auto& of_part : of_parts) {
    all.insert(all.end(), of_part.begin(), of_part.end());
    free_memory(of_part);
  }
  return all;
}

}  // namespace

LevelSet level_set(Mesh const& mesh, ValuesOfNodes const& values, double level) {
  LevelSet result = level_set(mesh, values, level, true);
  return result.triangles.empty() ? level_set(mesh, values, level, false) : result;
}

LevelSet level_set(Mesh const& mesh, ValuesOfNodes const& values, double level, bool equal_is_larger,
                   std::function<std::int64_t(std::int64_t)> const& number_of) {
  auto const not_less = [](double v) { return v >= 0; };
  auto const larger = [](double v) { return v > 0; };
  std::vector<Triangle> const found = equal_is_larger ? triangles_of(mesh, values, level, not_less, number_of)
                                                      : triangles_of(mesh, values, level, larger, number_of);
  std::vector<Vertex> vertices;
  vertices.reserve(3 * found.size());
  for (Triangle const& triangle : found)
    vertices.insert(vertices.end(), triangle.vertices.begin(), triangle.vertices.end());
  auto const less = [](Vertex const& a, Vertex const& b) { return a.between < b.between; };
  std::sort(vertices.begin(), vertices.end(), less);
  vertices.erase(
      std::unique(vertices.begin(), vertices.end(), [](Vertex const& a, Vertex const& b) { return a.between == b.between; }),
      vertices.end());
  LevelSet result;
  for (Vertex const& vertex : vertices)
    result.points.push_back({vertex.between.first, vertex.between.second, vertex.share});
  for (Triangle const& triangle : found) {
    for (Vertex const& vertex : triangle.vertices)
      result.triangles.push_back(std::lower_bound(vertices.begin(), vertices.end(), vertex, less) - vertices.begin());
    result.cells.push_back(triangle.cell);
  }
  return result;
}

}  // namespace poisson::output
