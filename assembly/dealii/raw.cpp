#include "assembly/dealii/raw.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

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

namespace {

using Place = std::array<int, 3>;
Place between(Place const& a, Place const& b, int i, int n) {
  Place result{};
  for (std::size_t d = 0; d < 3; ++d)
    result[d] = a[d] + i * (b[d] - a[d]) / n;
  return result;
}

/// Corners of a hexahedron whose edges have n intervals, from `first` on in each direction.
std::array<Place, 8> corners_of(int first, int n) {
  std::array<Place, 8> result{};
  for (int v = 0; v < 8; ++v)
    result[static_cast<std::size_t>(v)] = {first + ((v + 1) / 2 % 2) * n, first + (v / 2 % 2) * n, first + v / 4 * n};
  return result;
}

using Edges = std::array<std::array<std::size_t, 2>, 12>;
constexpr Edges gmsh_edges{{{0, 1}, {0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {2, 6}, {3, 7}, {4, 5}, {4, 7}, {5, 6}, {6, 7}}};
constexpr Edges vtk_edges{{{0, 1}, {1, 2}, {3, 2}, {0, 3}, {4, 5}, {5, 6}, {7, 6}, {4, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}}};

void add_edges(std::vector<Place>& places, std::array<Place, 8> const& corners, Edges const& edges, int n) {
  for (auto const& [from, to] : edges)
    for (int i = 1; i < n; ++i)
      places.push_back(between(corners[from], corners[to], i, n));
}

/// Gmsh's quadrilateral with n intervals a side.
void add_gmsh_quad(std::vector<Place>& places, std::array<Place, 4> const& corners, int n) {
  if (n == 0) {
    places.push_back(corners[0]);
    return;
  }
  places.insert(places.end(), corners.begin(), corners.end());
  for (std::size_t side = 0; side < 4; ++side)
    for (int i = 1; i < n; ++i)
      places.push_back(between(corners[side], corners[(side + 1) % 4], i, n));
  if (n == 1)
    return;
  std::array<Place, 4> inner{};
  for (std::size_t v = 0; v < 4; ++v) {
    Place const along = between(corners[v], corners[(v + 1) % 4], 1, n), up = between(corners[v], corners[(v + 3) % 4], 1, n);
    for (std::size_t d = 0; d < 3; ++d)
      inner[v][d] = along[d] + up[d] - corners[v][d];
  }
  add_gmsh_quad(places, inner, n - 2);
}

void add_gmsh_hexahedron(std::vector<Place>& places, int first, int n) {
  static constexpr std::array<std::array<std::size_t, 4>, 6> faces{
      {{0, 3, 2, 1}, {0, 1, 5, 4}, {0, 4, 7, 3}, {1, 2, 6, 5}, {2, 3, 7, 6}, {4, 5, 6, 7}}};
  if (n == 0) {
    places.push_back({first, first, first});
    return;
  }
  auto const corners = corners_of(first, n);
  places.insert(places.end(), corners.begin(), corners.end());
  add_edges(places, corners, gmsh_edges, n);
  if (n == 1)
    return;
  for (auto const& face : faces) {
    // All of the face, of which what is inside is kept.
    std::vector<Place> quad;
    add_gmsh_quad(quad, {corners[face[0]], corners[face[1]], corners[face[2]], corners[face[3]]}, n);
    places.insert(places.end(), quad.begin() + 4 * n, quad.end());
  }
  add_gmsh_hexahedron(places, first + 1, n - 2);
}

HexahedronNodes to_nodes(int order, std::vector<Place> const& places) {
  HexahedronNodes nodes{order, {}};
  for (Place const& place : places)
    nodes.places.push_back((place[2] * (order + 1) + place[1]) * (order + 1) + place[0]);
  return nodes;
}

HexahedronNodes of_corners_and_edges(Edges const& edges) {
  auto const corners = corners_of(0, 2);
  std::vector<Place> places(corners.begin(), corners.end());
  add_edges(places, corners, edges, 2);
  return to_nodes(2, places);
}

/// Edges of Exodus: those of VTK, the upright ones before those of the top.
Edges exodus_edges() {
  Edges edges = vtk_edges;
  std::rotate(edges.begin() + 4, edges.begin() + 8, edges.end());
  return edges;
}

/// The nodes of faces and the centre of a cell that has 20: the values there of its shape functions, which are polynomials of the
/// complete element.
void complete_20_nodes(std::span<dealii::Point<3>> nodes) {
  std::array<std::size_t, 3> const step{1, 3, 9};
  std::size_t const centre = 13;
  auto const middle = [&](std::size_t at, std::size_t u, std::size_t v) {
    dealii::Point<3> const edges = nodes[at - u] + (nodes[at + u] - dealii::Point<3>()) + (nodes[at - v] - dealii::Point<3>()) +
                                   (nodes[at + v] - dealii::Point<3>());
    dealii::Point<3> const corners = nodes[at - u - v] + (nodes[at + u - v] - dealii::Point<3>()) +
                                     (nodes[at - u + v] - dealii::Point<3>()) + (nodes[at + u + v] - dealii::Point<3>());
    return dealii::Point<3>(edges / 2. - corners / 4.);
  };
  for (std::size_t d = 0; d < 3; ++d)
    for (std::size_t const at : {centre - step[d], centre + step[d]})
      nodes[at] = middle(at, step[(d + 1) % 3], step[(d + 2) % 3]);
  dealii::Point<3> sum;
  for (std::size_t i = 0; i < 27; ++i) {
    std::size_t const odd = (i % 3 == 1) + (i / 3 % 3 == 1) + (i / 9 == 1);  // 0: a corner, 1: an edge
    if (odd < 2)
      sum += (odd == 0 ? -0.25 : 0.25) * nodes[i];
  }
  nodes[centre] = sum;
}

/// How to get hexahedra instead of elements whose name says their shape.
std::string advice_on(std::string const& name) {
  auto const has = [&](char const* shape) { return name.find(shape) != std::string::npos; };
  if (has("tetrahedron") || has("triang"))
    return ". In Gmsh, 'gmsh -3 -setnumber Mesh.SubdivisionAlgorithm 2' splits every tetrahedron into four hexahedra; better "
           "shaped "
           "ones come from surfaces that are recombined and extruded, or from transfinite volumes";
  if (has("prism") || has("wedge"))
    return ". In Gmsh, recombine the surface that is extruded (Extrude ... { ...; Layers{...}; Recombine; } and Recombine "
           "Surface), or "
           "set Mesh.SubdivisionAlgorithm to 2, which splits every prism into three hexahedra";
  if (has("pyramid"))
    return ". Pyramids join hexahedra to tetrahedra: make the whole mesh of hexahedra, in Gmsh by transfinite volumes, or by "
           "extrusion "
           "of recombined surfaces";
  if (has("hexa") || has("Hexa") || has("HEXA"))
    return ". Curved hexahedra with all of their nodes are read from Gmsh's files (with Mesh.SecondOrderIncomplete 0), from VTU "
           "and "
           "from MFEM's; hexahedra of order 1 from all formats";
  return "; export the mesh as all-hexahedral";
}

}  // namespace

HexahedronNodes gmsh_hexahedron(int order) {
  std::vector<Place> places;
  add_gmsh_hexahedron(places, 0, order);
  return to_nodes(order, places);
}

HexahedronNodes vtk_hexahedron(int order) {
  auto const corners = corners_of(0, order);
  std::vector<Place> places(corners.begin(), corners.end());
  add_edges(places, corners, vtk_edges, order);
  for (std::size_t d = 0; d < 3; ++d)
    for (int const side : {0, order})
      for (int v = 1; v < order; ++v)
        for (int u = 1; u < order; ++u) {
          Place place{};
          place[d] = side;
          place[d == 0 ? 1 : 0] = u;
          place[d == 2 ? 1 : 2] = v;
          places.push_back(place);
        }
  for (int k = 1; k < order; ++k)
    for (int j = 1; j < order; ++j)
      for (int i = 1; i < order; ++i)
        places.push_back({i, j, k});
  return to_nodes(order, places);
}

HexahedronNodes gmsh_hexahedron_20() {
  return of_corners_and_edges(gmsh_edges);
}
HexahedronNodes vtk_hexahedron_20() {
  return of_corners_and_edges(vtk_edges);
}
HexahedronNodes exodus_hexahedron_20() {
  return of_corners_and_edges(exodus_edges());
}

HexahedronNodes exodus_hexahedron_27() {
  HexahedronNodes nodes = exodus_hexahedron_20();
  // The centre, then the low and the high face in z, x, y.
  for (int const place : {13, 4, 22, 12, 14, 10, 16})
    nodes.places.push_back(place);
  return nodes;
}

HexahedronNodes abaqus_hexahedron_27() {
  HexahedronNodes nodes = vtk_hexahedron_20();
  // The centre, then the faces S1 ... S6: low and high in z, low in y, high in x, high in y, low in x.
  for (int const place : {13, 4, 22, 10, 14, 16, 12})
    nodes.places.push_back(place);
  return nodes;
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
  static HexahedronNodes const linear{1, {0, 1, 3, 2, 4, 5, 7, 6}};
  add_hexahedron(numbers, linear, material);
}

void RawMeshBuilder::add_hexahedron(std::span<std::int64_t const> numbers, HexahedronNodes const& nodes, std::int64_t material) {
  static constexpr std::array<std::size_t, 8> around{0, 1, 3, 2, 4, 5, 7, 6};
  if (nodes_of_hexahedra_ != 0 && nodes_of_hexahedra_ != numbers.size())
    text_.fail("a hexahedron has " + std::to_string(numbers.size()) + " nodes, those before it have " +
               std::to_string(nodes_of_hexahedra_) + "; all must be of one kind");
  nodes_of_hexahedra_ = numbers.size();
  mesh_.order = nodes.order;
  RawMesh::Cell cell;
  for (std::size_t v = 0; v < 8; ++v)
    cell.vertices[v] = vertex(numbers[around[v]]);
  if (nodes.order > 1) {
    auto const n = static_cast<std::size_t>(nodes.order + 1);
    std::size_t const begin = mesh_.shape_nodes.size();
    mesh_.shape_nodes.resize(begin + n * n * n);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      mesh_.shape_nodes[begin + static_cast<std::size_t>(nodes.places[i])] =
          mesh_.vertices[static_cast<std::size_t>(vertex(numbers[i]))];
    if (numbers.size() == 20)
      complete_20_nodes(std::span(mesh_.shape_nodes).subspan(begin));
  }
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
    if (worst.dimension < 3 && !mesh_.cells.empty() && std::all_of(unsupported_.begin(), unsupported_.end(), [](auto const& u) {
          return u.name.find("tri") != std::string::npos;
        })) {
      for (Unsupported const& faces : unsupported_)
        mesh_.notes.push_back(std::to_string(faces.count) + " faces of type " + faces.name +
                              (faces.line > 0 ? " (the first in line " + std::to_string(faces.line) + ")" : "") +
                              " are passed over: no hexahedron has such a face");
      return std::move(mesh_);
    }
    text_.fail_at(worst.line, "elements of type " + worst.name + " (" + std::to_string(worst.count) + " of them" +
                                  (worst.line > 0 ? ", the first in this line" : "") +
                                  ") cannot be read: only hexahedra, with quadrilaterals on the boundary, are" +
                                  advice_on(worst.name));
  }
  return std::move(mesh_);
}

}  // namespace poisson::assembly
