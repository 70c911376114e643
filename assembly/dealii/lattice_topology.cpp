#include "assembly/mesh/lattice_topology.hpp"

#include "assembly/dealii/mesh.hpp"

#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <numeric>

namespace poisson::assembly {
namespace {

/// Numbers from 0 in the order of first use.
class FirstUse {
public:
  explicit FirstUse(std::size_t n) : numbers_(n, -1) {}
  std::int32_t operator()(std::size_t i) {
    if (numbers_[i] < 0)
      numbers_[i] = n_++;
    return numbers_[i];
  }
  [[nodiscard]] std::int32_t size() const { return n_; }

private:
  std::vector<std::int32_t> numbers_;
  std::int32_t n_ = 0;
};

/// `parts(lattice)` are the global numbers of the parts of a lattice.
template <class Parts>
LatticeParts invert(std::vector<LatticeTopology::Lattice> const& lattices, std::int32_t n, Parts const& parts) {
  LatticeParts result;
  result.offsets.resize(static_cast<std::size_t>(n) + 1, 0);
  for (auto const& lattice : lattices)
    for (auto const part : parts(lattice))
      ++result.offsets[part + 1];
  std::partial_sum(result.offsets.begin(), result.offsets.end(), result.offsets.begin());
  result.parts.resize(result.offsets.back());
  std::vector<std::int64_t> next(result.offsets.begin(), result.offsets.end() - 1);
  for (std::size_t c = 0; c < lattices.size(); ++c) {
    std::int32_t number = 0;
    for (auto const part : parts(lattices[c]))
      result.parts[next[part]++] = {static_cast<std::int32_t>(c), number++};
  }
  return result;
}

}  // namespace

LatticeTopology::LatticeTopology(Mesh const& mesh, int refinements) {
  dealii::Triangulation<3> const& triangulation = *mesh.triangulation;
  if (triangulation.n_levels() != static_cast<unsigned>(refinements) + 1) {
    obstacle = "the coarse mesh has refined cells";
    return;
  }
  FirstUse vertex_number(triangulation.n_vertices()), edge_number(triangulation.n_raw_lines()),
      face_number(triangulation.n_raw_quads());
  lattices.reserve(triangulation.n_active_cells());
  for (auto const& cell : triangulation.active_cell_iterators()) {
    Lattice lattice{};
    lattice.material = cell->material_id();
    std::array<unsigned, 8> vertices{};
    for (unsigned v = 0; v < 8; ++v) {
      vertices[v] = cell->vertex_index(v);
      lattice.vertices[v] = vertex_number(vertices[v]);
    }
    // Orientations follow from the numbers of the vertices, and only if these differ.
    for (unsigned e = 0; e < 12; ++e) {
      auto const line = cell->line(e);
      lattice.edges[e] = edge_number(line->index());
      HexEdge const& place = hex_edges[e];
      int const first = place.at[0] + 2 * place.at[1] + 4 * place.at[2];
      unsigned const begin = vertices[first], end = vertices[first + (1 << place.direction)];
      bool const reversed = line->vertex_index(0) == end && line->vertex_index(1) == begin;
      if (begin == end || (!reversed && (line->vertex_index(0) != begin || line->vertex_index(1) != end))) {
        obstacle = "an edge of a coarse cell does not follow from two different vertices";
        return;
      }
      if (reversed)
        lattice.reversed_edges |= static_cast<std::uint16_t>(1U << e);
    }
    for (int f = 0; f < 6; ++f) {
      auto const face = cell->face(f);
      lattice.faces[f] = face_number(face->index());
      lattice.boundary_ids[f] = face->at_boundary() ? face->boundary_id() : no_boundary;
      int matches = 0;
      for (FaceOrientation orientation = 0; orientation < 8; ++orientation) {
        bool match = true;
        for (int corner = 0; corner < 4; ++corner) {
          int const u = corner & 1, v = corner >> 1;
          auto const own = to_own(orientation, u, v, 1);
          unsigned const seen = vertices[(f % 2) << (f / 2) | u << face_u(f) | v << face_v(f)];
          match = match && face->vertex_index(static_cast<unsigned>(own[0] + 2 * own[1])) == seen;
        }
        if (match) {
          lattice.orientations[f] = orientation;
          ++matches;
        }
      }
      if (matches != 1) {
        obstacle = "a face of a coarse cell has fewer than four different vertices";
        return;
      }
    }
    lattices.push_back(lattice);
  }
  if (refinements == 0)
    for (Mesh::InnerFace const& face : mesh.inner_faces)
      inner_faces.push_back({lattices[face.cell].faces[face.face], face.id});
  at_face = invert(
      lattices, face_number.size(), [](Lattice const& lattice) -> auto const& { return lattice.faces; });
  at_edge = invert(
      lattices, edge_number.size(), [](Lattice const& lattice) -> auto const& { return lattice.edges; });
  at_vertex = invert(
      lattices, vertex_number.size(), [](Lattice const& lattice) -> auto const& { return lattice.vertices; });
}

}  // namespace poisson::assembly
