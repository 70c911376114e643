#pragma once

#include "assembly/dealii/mesh.hpp"
#include "assembly/mesh/lattice_topology.hpp"
#include "assembly/parallel.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deal.II/base/array_view.h>
#include <deal.II/base/point.h>
#include <deal.II/base/table.h>
#include <deal.II/grid/manifold.h>
#include <deal.II/grid/manifold_lib.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <typeinfo>
#include <vector>

/// How deal.II finds new points of lattices: what lattice_mesh.cpp and lattice_faces.cpp share.
namespace poisson::assembly {

using Manifold = dealii::Manifold<3>;
using Point = dealii::Point<3>;

/// Whether deal.II finds new points on this manifold by get_new_point(s) with its default points and weights. A class that is
/// derived from Manifold itself may do something else for lines, quads or hexahedra.
inline bool known(Manifold const& manifold) {
  return dynamic_cast<dealii::FlatManifold<3> const*>(&manifold) || dynamic_cast<dealii::SphericalManifold<3> const*>(&manifold) ||
         dynamic_cast<dealii::ChartManifold<3, 3, 1> const*>(&manifold) ||
         dynamic_cast<dealii::ChartManifold<3, 3, 2> const*>(&manifold) ||
         dynamic_cast<dealii::ChartManifold<3, 3, 3> const*>(&manifold) ||
         dynamic_cast<dealii::TransfiniteInterpolationManifold<3> const*>(&manifold);
}

/// A manifold whose new points are weighted means.
inline bool plain(Manifold const& manifold) {
  return typeid(manifold) == typeid(dealii::FlatManifold<3>) &&
         static_cast<dealii::FlatManifold<3> const&>(manifold).get_periodicity().norm() == 0;
}

/// The manifolds of a cell and of what bounds it: entry (s, t, u), x fastest, with 0 for the low side of a direction, 1 for its
/// inside, 2 for the high side. Null: points are weighted means. Entries of vertices are not used.
using Manifolds = std::array<Manifold const*, 27>;

inline constexpr int inside = 1 + 3 + 9;
inline constexpr std::array<int, 3> stride{1, 3, 9};
constexpr int face_entry(int face) {
  return inside + (face % 2 == 0 ? -1 : 1) * stride[face / 2];
}
constexpr int edge_entry(int edge) {
  HexEdge const& place = hex_edges[edge];
  int entry = stride[place.direction];
  for (int d = 0; d < 3; ++d)
    if (d != place.direction)
      entry += 2 * place.at[d] * stride[d];
  return entry;
}

inline bool straight(Manifolds const& manifolds) {
  return std::all_of(manifolds.begin(), manifolds.end(), [](auto const* manifold) { return manifold == nullptr; });
}

/// Surroundings of the new point of an edge, face or cell, and their weights, as deal.II lists them
/// (Manifold::get_new_point_on_line and TriaAccessor::center with interpolation): vertices, then midpoints of edges, then of faces.
/// Offsets count steps of the finer grid. Faces and cells: transfinite interpolation (Gordon and Thiel, 1982).
struct Stencil {
  std::vector<std::array<int, 3>> offsets;
  std::vector<double> weights;
};

/// Bit d of `directions`: the entity extends in direction d.
inline Stencil make_stencil(unsigned directions) {
  Stencil stencil;
  auto const add = [&](std::array<int, 3> offset, double weight) {
    stencil.offsets.push_back(offset);
    stencil.weights.push_back(weight);
  };
  auto const unit = [](int d, int sign) {
    std::array<int, 3> offset{};
    offset[d] = sign;
    return offset;
  };
  int const dimension = std::popcount(directions);
  if (dimension == 1) {
    int const d = std::countr_zero(directions);
    add(unit(d, -1), 0.5);
    add(unit(d, 1), 0.5);
  } else if (dimension == 2) {
    int const face = 2 * std::countr_zero(~directions);
    int const u = face_u(face), v = face_v(face);
    for (int const b : {-1, 1})
      for (int const a : {-1, 1}) {
        auto offset = unit(u, a);
        offset[v] = b;
        add(offset, -0.25);
      }
    for (int const d : {u, v})
      for (int const sign : {-1, 1})
        add(unit(d, sign), 0.5);
  } else {
    for (int vertex = 0; vertex < 8; ++vertex)
      add({2 * (vertex & 1) - 1, 2 * (vertex >> 1 & 1) - 1, 2 * (vertex >> 2) - 1}, 0.125);
    for (HexEdge const& edge : hex_edges) {
      std::array<int, 3> offset{};
      for (int d = 0; d < 3; ++d)
        offset[d] = d == edge.direction ? 0 : 2 * edge.at[d] - 1;
      add(offset, -0.25);
    }
    for (int face = 0; face < 6; ++face)
      add(unit(face / 2, face % 2 == 0 ? -1 : 1), 0.5);
  }
  return stencil;
}

/// Tells in which way deal.II lists the points around a new one on the rim of a lattice: in the own coordinates of the coarse face
/// or edge. Inside a lattice it lists them in the lattice's coordinates. Where a manifold finds points by an iteration, the result
/// depends on this order in the last digits.
struct RimFrames {
  explicit RimFrames(LatticeTopology::Lattice const& lattice) {
    for (auto& signs : reversed)
      signs = {false, false, false};
    for (int edge = 0; edge < 12; ++edge)
      reversed[edge_entry(edge)][hex_edges[edge].direction] = lattice.reversed_edges >> edge & 1;
    for (int face = 0; face < 6; ++face) {
      // Corner (a, b) of the face's own coordinates as an offset in the lattice.
      auto const offset = [&](int a, int b) {
        auto const seen = from_own(lattice.orientations[face], a + 1, b + 1, 2);
        std::array<int, 3> result{};
        result[face_u(face)] = static_cast<int>(seen[0]) - 1;
        result[face_v(face)] = static_cast<int>(seen[1]) - 1;
        return result;
      };
      around[face] = {offset(-1, -1), offset(1, -1), offset(-1, 1), offset(1, 1),
                      offset(-1, 0),  offset(1, 0),  offset(0, -1), offset(0, 1)};
      for (int d = 0; d < 3; ++d)
        reversed[face_entry(face)][d] = around[face][5][d] + around[face][7][d] < 0;
    }
  }
  std::array<std::array<bool, 3>, 27> reversed;             ///< lines in a direction run against it
  std::array<std::array<std::array<int, 3>, 8>, 6> around;  ///< of quadrilaterals in a face the offsets of a stencil
};

/// Runs body(state, lattice, row) for `rows` rows, of `row_points` points each, of all `n` lattices. One parallel region covers all
/// lattices, so that threads have work in few large and in many small ones. Little work is done by this thread alone: starting the
/// others would take as long.
template <class MakeState, class Body>
void for_rows(std::int64_t n, std::int64_t rows, std::int64_t row_points, MakeState const& make_state, Body const& body) {
  std::int64_t const total = n * rows, size = std::max<std::int64_t>(1, 256 / row_points);
  auto const run = [&](auto& state, std::int64_t block) {
    auto const [begin, end] = part(total, size, block);
    for (std::int64_t i = begin; i < end; ++i)
      body(state, i / rows, i % rows);
  };
  if (total * row_points >= 1024) {
    parallel_for(n_parts(total, size), make_state, run);
    return;
  }
  auto state = make_state();
  for (std::int64_t block = 0; block < n_parts(total, size); ++block)
    run(state, block);
}
template <class Body>
void for_rows(std::int64_t n, std::int64_t rows, std::int64_t row_points, Body const& body) {
  for_rows(
      n, rows, row_points, [] { return 0; }, [&](int, std::int64_t lattice, std::int64_t row) { body(lattice, row); });
}

/// The manifold of an entity of a coarse mesh by its id; null where new points are weighted means.
inline Manifold const* manifold_of(dealii::Triangulation<3> const& triangulation, dealii::types::manifold_id id) {
  if (id == dealii::numbers::flat_manifold_id)
    return nullptr;
  Manifold const& manifold = triangulation.get_manifold(id);
  return plain(manifold) ? nullptr : &manifold;
}
/// Those of a coarse cell and of what bounds it.
template <class Cell>
Manifolds manifolds_of(dealii::Triangulation<3> const& triangulation, Cell const& cell) {
  Manifolds manifolds{};
  manifolds[inside] = manifold_of(triangulation, cell->manifold_id());
  for (unsigned face = 0; face < 6; ++face)
    manifolds[face_entry(static_cast<int>(face))] = manifold_of(triangulation, cell->face(face)->manifold_id());
  for (unsigned edge = 0; edge < 12; ++edge)
    manifolds[edge_entry(static_cast<int>(edge))] = manifold_of(triangulation, cell->line(edge)->manifold_id());
  return manifolds;
}

/// Weights of the points around the nodes inside of an edge and of a face of a cell (MappingQ): of an edge its ends; of a face its
/// vertices, then the nodes of its edges u = 0, u = 1, v = 0, v = 1.
struct NodeWeights {
  /// `nodes`: p + 1 in [0, 1].
  explicit NodeWeights(std::vector<double> const& nodes) {
    int const q = static_cast<int>(nodes.size()) - 2;
    auto const side = [&](double t, int at) { return at == 0 ? 1 - t : t; };
    of_edge.reinit(q, 2);
    of_face.reinit(q * q, 4 + 4 * q);
    for (int i = 0; i < q; ++i)
      for (int end = 0; end < 2; ++end)
        of_edge(i, end) = side(nodes[i + 1], end);
    for (int j = 0; j < q; ++j)
      for (int i = 0; i < q; ++i) {
        double const u = nodes[i + 1], v = nodes[j + 1];
        int const row = j * q + i;
        for (int vertex = 0; vertex < 4; ++vertex)
          of_face(row, vertex) = -side(u, vertex & 1) * side(v, vertex >> 1);
        for (int end = 0; end < 2; ++end) {
          of_face(row, 4 + end * q + j) = side(u, end);
          of_face(row, 4 + (2 + end) * q + i) = side(v, end);
        }
      }
  }
  dealii::Table<2, double> of_edge, of_face;
};

}  // namespace poisson::assembly
