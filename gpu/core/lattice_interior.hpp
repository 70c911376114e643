#pragma once

#include "gpu/core/host_device.hpp"
#include "gpu/core/lattice_layout.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

/// The nodes inside of lattices whose cells are flat inside, from those on their rims. Vertices of cells follow by halving, level
/// by level: new points of edges, then of faces, then of cells are means of the points around, as deal.II's global refinement makes
/// them. With elements of order 2 and more the other nodes of a cell follow from its vertices in the same order. Where a face or an
/// edge is on the rim of the lattice, its nodes are given, and may be curved; so cells at the rim are transfinite images of their
/// faces (Gordon and Thiel, 1982), and all others trilinear ones.
namespace poisson {

/// One pass over the nodes inside of lattices: those of entities of so many dimensions, whose nodes do not need each other.
/// Coordinates: [(3 lattice + direction) m^3 + node], x fastest.
struct LatticeInterior {
  std::int64_t n_lattices;
  std::int32_t cells, order;  ///< n and p of a lattice; m = p n + 1
  std::int32_t step;          ///< half the side of the cells that are halved, in nodes; 0: nodes of elements are made
  int dimension;              ///< 1: edges, 2: faces, 3: cells
  double parameters[9];       ///< of the nodes of an element in one direction, in [0, 1]: p + 1

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t m() const { return std::int64_t{order} * cells + 1; }
  /// Lines of nodes in x, and places in a line that may have a node of the pass.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t inner() const { return step > 0 ? (m() - 1) / step - 1 : m() - 2; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_lines() const { return n_lattices * inner() * inner(); }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_in_line() const { return step > 0 ? (inner() + 1) / 2 : inner(); }
};

namespace lattice_interior {

/// How far before and behind a node are the ends of its entity, in nodes, and where it is between them; by direction. Both are 0
/// in directions in which the entity has no extent.
struct Entity {
  std::int64_t low[3], high[3];
  double at[3];
};

/// The value at a node of an entity from those around it. `x` points to it. Of a node in the middle weights are powers of two: no
/// product is rounded, and the host's bits are the device's.
[[nodiscard]] POISSON_HOST_DEVICE inline double mean(double const* x, Entity const& entity, int dimension) {
  int along[3] = {0, 1, 2};
  for (int d = 0; d < 3; ++d) {
    if (dimension == 1 && entity.low[d] != 0)
      along[0] = d;
    if (dimension == 2 && entity.low[d] == 0) {  // deal.II's order
      along[0] = (d + 1) % 3;
      along[1] = (d + 2) % 3;
    }
  }
  auto const offset = [&](int d, int high) { return high != 0 ? entity.high[d] : -entity.low[d]; };
  auto const weight = [&](int d, int high) { return high != 0 ? entity.at[d] : 1 - entity.at[d]; };
  double sum = 0;
  if (dimension == 1) {
    for (int high = 0; high < 2; ++high)
      sum += weight(along[0], high) * x[offset(along[0], high)];
    return sum;
  }
  // Faces less edges plus vertices; of a face edges less vertices.
  for (int vertex = 0; vertex < 1 << dimension; ++vertex) {
    double w = dimension == 3 ? 1 : -1;
    std::int64_t to = 0;
    for (int d = 0; d < dimension; ++d) {
      int const high = vertex >> d & 1;
      w *= weight(along[d], high);
      to += offset(along[d], high);
    }
    sum += w * x[to];
  }
  if (dimension == 3) {
    auto const subtract = [&](int d, int of_d, int e, int of_e) {
      sum -= weight(d, of_d) * weight(e, of_e) * x[offset(d, of_d) + offset(e, of_e)];
    };
    for (int z = 0; z < 2; ++z)
      for (int const d : {0, 1})
        for (int high = 0; high < 2; ++high)
          subtract(d, high, 2, z);
    for (int ends = 0; ends < 4; ++ends)
      subtract(0, ends & 1, 1, ends >> 1);
  }
  for (int d = 0; d < dimension; ++d)
    for (int high = 0; high < 2; ++high)
      sum += weight(along[d], high) * x[offset(along[d], high)];
  return sum;
}

/// Makes the node at place `i` of a line of a pass, in all directions, if there is one.
POISSON_HOST_DEVICE inline void make(LatticeInterior const& pass, std::int64_t line, std::int64_t i, double* nodes) {
  std::int64_t const m = pass.m(), inner = pass.inner(), lattice = line / (inner * inner), of_next[3] = {1, m, m * m};
  std::int64_t at[3] = {i, line % inner + 1, line / inner % inner + 1};
  Entity entity{};
  if (pass.step > 0) {
    int const odd = static_cast<int>((at[1] & 1) + (at[2] & 1)), in_x = pass.dimension - odd;
    at[0] = 2 * i + (in_x == 1 ? 1 : 2);
    if (in_x < 0 || in_x > 1 || at[0] > inner)
      return;
    for (int d = 0; d < 3; ++d) {
      entity.low[d] = entity.high[d] = (at[d] & 1) * pass.step * of_next[d];
      entity.at[d] = 0.5;
      at[d] *= pass.step;
    }
  } else {
    at[0] = i + 1;
    int dimension = 0;
    for (int d = 0; d < 3; ++d) {
      std::int64_t const in_cell = at[d] % pass.order;
      if (in_cell == 0)
        continue;
      ++dimension;
      entity.low[d] = in_cell * of_next[d];
      entity.high[d] = (pass.order - in_cell) * of_next[d];
      entity.at[d] = pass.parameters[in_cell];
    }
    if (dimension != pass.dimension)
      return;
  }
  double* const x = nodes + 3 * lattice * m * m * m + at[2] * of_next[2] + at[1] * of_next[1] + at[0];
  for (int d = 0; d < 3; ++d)
    x[d * m * m * m] = mean(x + d * m * m * m, entity, pass.dimension);
}

/// Calls action(pass) for all passes over so many lattices, in order. `parameters`: p + 1 of a direction, p <= 8.
template <class Action>
void for_passes(LatticeLayout const& lattices, std::int64_t n_lattices, std::span<double const> parameters, Action const& action) {
  LatticeInterior pass{n_lattices, lattices.cells, lattices.order, 0, 1, {}};
  std::copy(parameters.begin(), parameters.end(), pass.parameters);
  auto const all_dimensions = [&] {
    for (pass.dimension = 1; pass.dimension <= 3; ++pass.dimension)
      action(pass);
  };
  for (std::int32_t half = lattices.cells / 2; half >= 1; half /= 2) {
    pass.step = half * lattices.order;
    all_dimensions();
  }
  pass.step = 0;
  if (lattices.order > 1)
    all_dimensions();
}

}  // namespace lattice_interior

/// What the nodes of all lattices follow from, on a device.
struct LatticesToFill {
  LatticeLayout const& lattices;
  std::span<double const> parameters;     ///< as in LatticeInterior
  std::span<double const> on_rims;        ///< 3 coordinates of every unknown from n_inner() on
  std::span<std::int32_t const> sides{};  ///< 6 lattice + face of the sides near which the host wants to know them
};
/// Makes them there, and keeps them. Writes of each of the sides the p + 1 layers of nodes of its cells: [(3 i + direction) (p + 1)
/// m^2 + node], x fastest. False: there is no memory for that.
using FillLattices = std::function<bool(LatticesToFill const& lattices, std::span<double> of_sides)>;

}  // namespace poisson
