#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// The coarse mesh as plain arrays. A coarse cell that is refined r times is a lattice of 2^r x 2^r x 2^r cells; what neighbouring
/// lattices share follows from the coarse mesh alone.
namespace poisson::assembly {

struct Mesh;

/// Edge e of a hexahedron, in deal.II's numbers: it runs in `direction`, and lies at 0 or 1 in the other two.
struct HexEdge {
  int direction;
  std::array<int, 3> at;  ///< 0 in its own direction
  friend bool operator==(HexEdge const&, HexEdge const&) = default;
};
inline constexpr std::array<HexEdge, 12> hex_edges{{{1, {0, 0, 0}},
                                                    {1, {1, 0, 0}},
                                                    {0, {0, 0, 0}},
                                                    {0, {0, 1, 0}},
                                                    {1, {0, 0, 1}},
                                                    {1, {1, 0, 1}},
                                                    {0, {0, 0, 1}},
                                                    {0, {0, 1, 1}},
                                                    {2, {0, 0, 0}},
                                                    {2, {1, 0, 0}},
                                                    {2, {0, 1, 0}},
                                                    {2, {1, 1, 0}}}};

/// Face f of a hexahedron (-x +x -y +y -z +z) is normal to direction f / 2. Its coordinates (u, v), seen from the cell, run in
/// these directions (cyclic, as in deal.II).
[[nodiscard]] constexpr int face_u(int face) {
  return (face / 2 + 1) % 3;
}
[[nodiscard]] constexpr int face_v(int face) {
  return (face / 2 + 2) % 3;
}

/// One of the eight ways in which the coordinates of a face, seen from a cell, map to the face's own: exchange u and v if bit 0 is
/// set, then reverse u if bit 1 and v if bit 2 is set.
using FaceOrientation = std::uint8_t;
/// Maps coordinates u and v of the cell to the face's own; both run from 0 to `last`.
[[nodiscard]] constexpr std::array<std::int64_t, 2> to_own(FaceOrientation orientation, std::int64_t u, std::int64_t v,
                                                           std::int64_t last) {
  std::int64_t const a = orientation & 1 ? v : u, b = orientation & 1 ? u : v;
  return {orientation & 2 ? last - a : a, orientation & 4 ? last - b : b};
}
/// The inverse of to_own.
[[nodiscard]] constexpr std::array<std::int64_t, 2> from_own(FaceOrientation orientation, std::int64_t u, std::int64_t v,
                                                             std::int64_t last) {
  std::int64_t const a = orientation & 2 ? last - u : u, b = orientation & 4 ? last - v : v;
  return orientation & 1 ? std::array{b, a} : std::array{a, b};
}

/// A face, edge or vertex of one lattice; `number` is the local one (0..5, 0..11 or 0..7).
struct LatticePart {
  std::int32_t lattice;
  std::int32_t number;
};

/// The lattices at face, edge or vertex i: parts[offsets[i]] ... parts[offsets[i + 1] - 1], ascending.
struct LatticeParts {
  std::vector<std::int64_t> offsets;
  std::vector<LatticePart> parts;
  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(offsets.size()) - 1; }
};

/// Vertices, edges and faces are numbered in the order in which the lattices come upon them. Each face has coordinates and each
/// edge a direction of its own, which are deal.II's.
struct LatticeTopology {
  static constexpr std::uint32_t no_boundary = std::numeric_limits<std::uint32_t>::max();

  struct Lattice {
    std::array<std::int32_t, 8> vertices;  ///< vertex v lies at (v & 1, v >> 1 & 1, v >> 2)
    std::array<std::int32_t, 12> edges;
    std::array<std::int32_t, 6> faces;
    std::array<FaceOrientation, 6> orientations;
    std::uint16_t reversed_edges;               ///< bit e: edge e runs against its own direction
    std::array<std::uint32_t, 6> boundary_ids;  ///< no_boundary on faces that two lattices share
    std::uint32_t material;
  };

  /// An unrefined mesh, or one that was refined globally so often; lattice c is its active cell c. `obstacle` says why a mesh
  /// cannot be described in this way.
  explicit LatticeTopology(Mesh const& mesh, int refinements = 0);

  std::string obstacle;  ///< empty unless there is one; all else is then unspecified
  std::vector<Lattice> lattices;
  LatticeParts at_face, at_edge, at_vertex;
  struct InnerFace {
    std::int32_t face;
    std::uint32_t id;
  };
  std::vector<InnerFace> inner_faces;  ///< of an unrefined mesh: those of its named surfaces inside

  [[nodiscard]] std::int32_t n_lattices() const { return static_cast<std::int32_t>(lattices.size()); }

  /// The sides of lattices, as [6 i + face] for lattice of[i], near which nodes are asked for: those on the boundary, on surfaces
  /// inside, and between lattices of several ranks; and of lattices that only have an edge or a vertex there, one beside it.
  /// `rank_of`: by lattice; all of `of` are one rank's. Empty: there is one.
  [[nodiscard]] std::vector<std::uint8_t> outer_sides(std::vector<std::int32_t> const& of,
                                                      std::vector<std::int32_t> const& rank_of = {}) const;

  /// Local nodes (lexicographic, x fastest, of m x m x m) of a part of a lattice: that at (u, v) of the face's own coordinates, at
  /// t in the edge's own direction, or of a vertex.
  [[nodiscard]] std::int64_t face_node(LatticePart face, std::int64_t u, std::int64_t v, std::int64_t m) const {
    auto const [a, b] = from_own(lattices[face.lattice].orientations[face.number], u, v, m - 1);
    std::array<std::int64_t, 3> index{};
    index[face.number / 2] = face.number % 2 == 0 ? 0 : m - 1;
    index[face_u(face.number)] = a;
    index[face_v(face.number)] = b;
    return (index[2] * m + index[1]) * m + index[0];
  }
  [[nodiscard]] std::int64_t edge_node(LatticePart edge, std::int64_t t, std::int64_t m) const {
    HexEdge const& place = hex_edges[edge.number];
    bool const reversed = lattices[edge.lattice].reversed_edges >> edge.number & 1;
    std::array<std::int64_t, 3> index{place.at[0] * (m - 1), place.at[1] * (m - 1), place.at[2] * (m - 1)};
    index[place.direction] = reversed ? m - 1 - t : t;
    return (index[2] * m + index[1]) * m + index[0];
  }
  [[nodiscard]] static std::int64_t vertex_node(std::int32_t vertex, std::int64_t m) {
    return (m - 1) * (((vertex >> 2) * m + (vertex >> 1 & 1)) * m + (vertex & 1));
  }

  struct Node {
    std::int32_t lattice;
    std::int64_t node;
  };
  /// The copy of node (i, j, k) of a lattice in the first of the lattices that have it: itself, unless it lies on a rim.
  [[nodiscard]] Node first_copy(std::int32_t lattice, std::array<std::int64_t, 3> const& index, std::int64_t m) const {
    Lattice const& here = lattices[lattice];
    auto const rim = [&](int d) { return index[d] == 0 || index[d] == m - 1; };
    auto const high = [&](int d) { return index[d] == 0 ? 0 : 1; };
    int const n_rims = int{rim(0)} + int{rim(1)} + int{rim(2)};
    auto const first = [](LatticeParts const& all, std::int32_t part) { return all.parts[all.offsets[part]]; };
    if (n_rims == 0)
      return {lattice, (index[2] * m + index[1]) * m + index[0]};
    if (n_rims == 1) {
      int const d = rim(0) ? 0 : rim(1) ? 1 : 2, face = 2 * d + high(d);
      auto const own = to_own(here.orientations[face], index[face_u(face)], index[face_v(face)], m - 1);
      LatticePart const part = first(at_face, here.faces[face]);
      return {part.lattice, face_node(part, own[0], own[1], m)};
    }
    if (n_rims == 2) {
      int const d = !rim(0) ? 0 : !rim(1) ? 1 : 2, edge = edge_at(d, {high(0), high(1), high(2)});
      bool const reversed = here.reversed_edges >> edge & 1;
      LatticePart const part = first(at_edge, here.edges[edge]);
      return {part.lattice, edge_node(part, reversed ? m - 1 - index[d] : index[d], m)};
    }
    LatticePart const part = first(at_vertex, here.vertices[high(0) + 2 * high(1) + 4 * high(2)]);
    return {part.lattice, vertex_node(part.number, m)};
  }
  /// The edge of a lattice that runs in `direction`, at the low or high ends of the other two. deal.II's numbers: those along y,
  /// then x, below and above, then those along z.
  [[nodiscard]] static int edge_at(int direction, std::array<int, 3> const& high) {
    return direction == 2 ? 8 + high[0] + 2 * high[1] : 4 * high[2] + (direction == 1 ? high[0] : 2 + high[1]);
  }
};

}  // namespace poisson::assembly
