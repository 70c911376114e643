#include "assembly/mesh/lattice_topology.hpp"

namespace poisson::assembly {

std::vector<std::uint8_t> LatticeTopology::outer_sides(std::vector<std::int32_t> const& of,
                                                       std::vector<std::int32_t> const& rank_of) const {
  int const rank = rank_of.empty() || of.empty() ? 0 : rank_of[of.front()];
  // What is on the boundary, on a surface inside, or in lattices of another rank.
  std::vector<std::uint8_t> faces(at_face.size()), edges(at_edge.size()), vertices(at_vertex.size());
  for (InnerFace const& face : inner_faces)
    faces[face.face] = 1;
  auto const mark_shared = [&](LatticeParts const& all, std::vector<std::uint8_t>& marks) {
    for (std::int32_t i = 0; i < all.size() && !rank_of.empty(); ++i)
      for (std::int64_t at = all.offsets[i]; at < all.offsets[i + 1]; ++at)
        if (rank_of[all.parts[at].lattice] != rank)
          marks[i] = 1;
  };
  mark_shared(at_face, faces);
  mark_shared(at_edge, edges);
  mark_shared(at_vertex, vertices);
  auto const is_outer = [&](Lattice const& lattice, int face) {
    return lattice.boundary_ids[face] != no_boundary || faces[lattice.faces[face]] != 0;
  };
  // Whether a face of a lattice has an edge or a vertex.
  auto const has_edge = [](int face, int edge) {
    return hex_edges[edge].direction != face / 2 && hex_edges[edge].at[face / 2] == face % 2;
  };
  auto const has_vertex = [](int face, int vertex) { return (vertex >> (face / 2) & 1) == face % 2; };
  for (Lattice const& lattice : lattices)
    for (int face = 0; face < 6; ++face)
      if (is_outer(lattice, face)) {
        for (int edge = 0; edge < 12; ++edge)
          if (has_edge(face, edge))
            edges[lattice.edges[edge]] = 1;
        for (int vertex = 0; vertex < 8; ++vertex)
          if (has_vertex(face, vertex))
            vertices[lattice.vertices[vertex]] = 1;
      }

  std::vector<std::uint8_t> result(6 * of.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    Lattice const& lattice = lattices[of[i]];
    std::uint8_t* const kept = result.data() + 6 * i;
    for (int face = 0; face < 6; ++face)
      kept[face] = is_outer(lattice, face) ? 1 : 0;
    auto const cover = [&](auto const& has, int number) {
      int one = -1;
      for (int face = 5; face >= 0; --face)
        if (has(face, number)) {
          if (kept[face] != 0)
            return;
          one = face;
        }
      kept[one] = 1;
    };
    for (int edge = 0; edge < 12; ++edge)
      if (edges[lattice.edges[edge]] != 0)
        cover(has_edge, edge);
    for (int vertex = 0; vertex < 8; ++vertex)
      if (vertices[lattice.vertices[vertex]] != 0)
        cover(has_vertex, vertex);
  }
  return result;
}

}  // namespace poisson::assembly
