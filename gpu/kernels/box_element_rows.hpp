#pragma once

#include "gpu/kernels/box_elements.hpp"

#include <cmath>

/// The rows of BoxElementKernels, one at a time, for both backends.
namespace poisson::box_rows {

/// Place of a node in the lattice of all nodes.
struct Node {
  std::int64_t i[3];
};

[[nodiscard]] inline POISSON_HOST_DEVICE std::int64_t index_of(BoxElements const& box, Node const& node) {
  return (node.i[2] * box.nodes[1] + node.i[1]) * box.nodes[0] + node.i[0];
}

/// The values of component c at the eight Gauss points of a cell.
[[nodiscard]] inline POISSON_HOST_DEVICE double field_value(BoxElements const& box, BoxField const& field, int c, std::int64_t cx,
                                                            std::int64_t cy, std::int64_t cz, int q) {
  if (field.points[c] == nullptr)
    return field.constant[c];
  std::int64_t const nx = 2 * (box.nodes[0] - 1), ny = 2 * (box.nodes[1] - 1);
  return field.points[c][((2 * (cz - field.first_plane) + (q >> 2)) * ny + 2 * cy + (q >> 1 & 1)) * nx + 2 * cx + (q & 1)];
}

/// Whether the tensor at point i is positive definite.
[[nodiscard]] inline POISSON_HOST_DEVICE bool is_definite(BoxField const& k, std::int64_t i) {
  double entries[tensor_entries];
  for (int c = 0; c < tensor_entries; ++c)
    entries[c] = k.points[c] != nullptr ? k.points[c][i] : k.constant[c];
  return is_positive_definite(entries);
}

/// The sum of |values| at the eight points of a cell of a grid of nx x ny x ... points.
[[nodiscard]] inline POISSON_HOST_DEVICE double absolute_of_cell(double const* values, std::int64_t nx, std::int64_t ny,
                                                                 std::int64_t cx, std::int64_t cy, std::int64_t cz) {
  double sum = 0;
  for (int q = 0; q < 8; ++q)
    sum += std::abs(values[((2 * cz + (q >> 2)) * ny + 2 * cy + (q >> 1 & 1)) * nx + 2 * cx + (q & 1)]);
  return sum;
}

/// The largest finite |values| of every `stride`-th of `n` neighbouring points from `first` on; else 0.
[[nodiscard]] inline POISSON_HOST_DEVICE double largest_finite(double const* values, std::int64_t n, std::int64_t first,
                                                               std::int64_t stride) {
  double most = 0;
  for (std::int64_t x = first; x < n; x += stride)
    if (double const value = std::abs(values[x]); value > most && value - value == 0)
      most = value;
  return most;
}

/// What integrals over the unit cell are multiplied with to be those over a graded cell: of derivatives in the directions of the
/// entries of a tensor, and of values.
struct CellScale {
  double stiffness[tensor_entries];
  double volume;
};
[[nodiscard]] inline POISSON_HOST_DEVICE CellScale scale_of(BoxElements const& box, std::int64_t cx, std::int64_t cy,
                                                            std::int64_t cz) {
  double const volume = box.edges[0][cx] * box.edges[1][cy] * box.edges[2][cz];
  double const inverse[3] = {box.inverse_edges[0][cx], box.inverse_edges[1][cy], box.inverse_edges[2][cz]};
  return {{volume * inverse[0] * inverse[0], volume * inverse[1] * inverse[1], volume * inverse[2] * inverse[2],
           volume * inverse[0] * inverse[1], volume * inverse[0] * inverse[2], volume * inverse[1] * inverse[2]},
          volume};
}

/// No node around this one has a condition, nor has it itself.
[[nodiscard]] inline POISSON_HOST_DEVICE bool is_deep(BoxElements const& box, Node const& node) {
  bool deep = true;
  for (int d = 0; d < 3; ++d)
    deep = deep && node.i[d] >= 2 && node.i[d] + 3 <= box.nodes[d];
  return deep;
}

/// Entries of a row of a node that is_deep: entries[s] couples it with the node that comes before it by 9 dz + 3 dy + dx = s.
/// Cells that are graded have three components, or six.
template <int components, bool graded = false>
POISSON_HOST_DEVICE inline void deep_row(BoxElements const& box, BoxTables<components> const& tables, BoxField const& k,
                                         BoxField const& f, Node const& node, double (&entries)[14], double& load) {
  POISSON_UNROLL
  for (double& entry : entries)
    entry = 0;
  load = 0;
  POISSON_UNROLL
  for (int cell = 0; cell < 8; ++cell) {
    int const a = 7 - cell;  // the node's own number in the cell
    std::int64_t const cx = node.i[0] - 1 + (cell & 1), cy = node.i[1] - 1 + (cell >> 1 & 1), cz = node.i[2] - 1 + (cell >> 2);
    CellScale scale{};
    if constexpr (graded)
      scale = scale_of(box, cx, cy, cz);
    POISSON_UNROLL
    for (int q = 0; q < 8; ++q) {
      POISSON_UNROLL
      for (int c = 0; c < components; ++c) {
        double value = field_value(box, k, c, cx, cy, cz, q);
        if constexpr (graded)
          value *= scale.stiffness[c];
        POISSON_UNROLL
        for (int b = 0; b < 8; ++b) {
          int const before = 9 * ((a >> 2) - (b >> 2)) + 3 * ((a >> 1 & 1) - (b >> 1 & 1)) + ((a & 1) - (b & 1));
          if (before >= 0)
            entries[before] += value * tables.stiffness[c][q][a][b];
        }
      }
      double of_f = field_value(box, f, 0, cx, cy, cz, q) - f.shift;
      if constexpr (graded)
        of_f *= scale.volume;
      load += of_f * tables.load[q][a];
    }
  }
}

/// Whether the node has a Dirichlet value, and which.
inline POISSON_HOST_DEVICE bool dirichlet_value(BoxElements const& box, Node const& node, double& value) {
  bool found = false;
  std::int32_t rank = 0;
  for (int face = 0; face < 6; ++face) {
    int const d = face / 2;
    if (node.i[d] != (face % 2 == 0 ? 0 : box.nodes[d] - 1))
      continue;
    BoxFace const& of = box.faces[face];
    if (of.type != BoxFace::Type::dirichlet || (found && of.rank >= rank))
      continue;
    int const e = d == 0 ? 1 : 0, g = d == 2 ? 1 : 2;
    value = of.value != nullptr ? of.value[node.i[g] * box.nodes[e] + node.i[e]] : 0;
    rank = of.rank;
    found = true;
  }
  return found;
}

/// What a face contributes to the row of one of its nodes: entries[13 + 9 dz + 3 dy + dx] of the node at that distance.
inline POISSON_HOST_DEVICE void add_face(BoxElements const& box, int face, Node const& node, double (&entries)[27], double& load) {
  BoxFace const& of = box.faces[face];
  int const d = face / 2, e = d == 0 ? 1 : 0, g = d == 2 ? 1 : 2;
  double weight = box.cell[e] * box.cell[g] / 4;
  double const near = 0.5 + 0.5 / std::sqrt(3.), far = 1 - near;
  std::int64_t const row = 2 * (box.nodes[e] - 1);
  int const stride[3] = {1, 3, 9};
  for (int cell = 0; cell < 4; ++cell) {
    std::int64_t const ce = node.i[e] - 1 + (cell & 1), cg = node.i[g] - 1 + (cell >> 1);
    if (ce < 0 || cg < 0 || ce + 1 >= box.nodes[e] || cg + 1 >= box.nodes[g])
      continue;
    if (box.is_graded())
      weight = box.edges[e][ce] * box.edges[g][cg] / 4;
    int const a = 3 - cell;
    for (int q = 0; q < 4; ++q) {
      std::int64_t const at = (2 * cg + (q >> 1)) * row + 2 * ce + (q & 1);
      auto const phi = [&](int b) { return ((b & 1) == (q & 1) ? near : far) * ((b >> 1) == (q >> 1) ? near : far); };
      double const of_a = weight * phi(a);
      if (of.value != nullptr)
        load += of_a * of.value[at];
      if (of.type == BoxFace::Type::robin && of.alpha != nullptr)
        for (int b = 0; b < 4; ++b)
          entries[13 + stride[e] * ((b & 1) - (a & 1)) + stride[g] * ((b >> 1) - (a >> 1))] += of_a * of.alpha[at] * phi(b);
    }
  }
}

/// Whether the node has a Dirichlet value, and no face with another condition.
[[nodiscard]] inline POISSON_HOST_DEVICE bool is_only_fixed(BoxElements const& box, Node const& node) {
  bool fixed = false;
  for (int face = 0; face < 6; ++face)
    if (node.i[face / 2] == (face % 2 == 0 ? 0 : box.nodes[face / 2] - 1)) {
      if (box.faces[face].type != BoxFace::Type::dirichlet)
        return false;
      fixed = true;
    }
  return fixed;
}

/// The entry on the main diagonal of any_row, if no face adds to it: all that the row of a node that is_only_fixed has.
template <int components, bool graded = false>
[[nodiscard]] POISSON_HOST_DEVICE inline double diagonal_entry(BoxElements const& box, BoxTables<components> const& tables,
                                                               BoxField const& k, Node const& node) {
  double sum = 0;
  for (int cell = 0; cell < 8; ++cell) {
    int const a = 7 - cell;
    std::int64_t const c[3] = {node.i[0] - 1 + (cell & 1), node.i[1] - 1 + (cell >> 1 & 1), node.i[2] - 1 + (cell >> 2)};
    bool inside = true;
    for (int d = 0; d < 3; ++d)
      inside = inside && c[d] >= 0 && c[d] + 1 < box.nodes[d];
    if (!inside)
      continue;
    CellScale scale{};
    if constexpr (graded)
      scale = scale_of(box, c[0], c[1], c[2]);
    double of_cell = 0;
    for (int q = 0; q < 8; ++q)
      for (int component = 0; component < components; ++component) {
        double value = field_value(box, k, component, c[0], c[1], c[2], q);
        if constexpr (graded)
          value *= scale.stiffness[component];
        of_cell += value * tables.stiffness[component][q][a][a];
      }
    sum += of_cell;
  }
  return sum;
}

/// The right-hand side of any_row, if the node has no Dirichlet value and those of its neighbours are 0.
template <int components, bool graded = false>
[[nodiscard]] POISSON_HOST_DEVICE inline double load_of_row(BoxElements const& box, BoxTables<components> const& tables,
                                                            BoxField const& f, Node const& node) {
  double load = 0;
  for (int cell = 0; cell < 8; ++cell) {
    std::int64_t const c[3] = {node.i[0] - 1 + (cell & 1), node.i[1] - 1 + (cell >> 1 & 1), node.i[2] - 1 + (cell >> 2)};
    bool inside = true;
    for (int d = 0; d < 3; ++d)
      inside = inside && c[d] >= 0 && c[d] + 1 < box.nodes[d];
    if (!inside)
      continue;
    for (int q = 0; q < 8; ++q) {
      double of_f = field_value(box, f, 0, c[0], c[1], c[2], q) - f.shift;
      if constexpr (graded)
        of_f *= scale_of(box, c[0], c[1], c[2]).volume;
      load += of_f * tables.load[q][7 - cell];
    }
  }
  for (int face = 0; face < 6; ++face)
    if (box.faces[face].type != BoxFace::Type::dirichlet && node.i[face / 2] == (face % 2 == 0 ? 0 : box.nodes[face / 2] - 1)) {
      double unused[27] = {};
      add_face(box, face, node, unused, load);
    }
  return load;
}

/// Any row: entries[13 + 9 dz + 3 dy + dx], -0.0 where nothing is stored; Dirichlet conditions are eliminated.
/// Cells that are graded have three components, or six.
template <int components, bool graded = false>
POISSON_HOST_DEVICE inline void any_row(BoxElements const& box, BoxTables<components> const& tables, BoxField const& k,
                                        BoxField const& f, Node const& node, double (&entries)[27], double& load) {
  for (double& entry : entries)
    entry = 0;
  load = 0;
  for (int cell = 0; cell < 8; ++cell) {
    int const a = 7 - cell;
    std::int64_t const c[3] = {node.i[0] - 1 + (cell & 1), node.i[1] - 1 + (cell >> 1 & 1), node.i[2] - 1 + (cell >> 2)};
    bool inside = true;
    for (int d = 0; d < 3; ++d)
      inside = inside && c[d] >= 0 && c[d] + 1 < box.nodes[d];
    if (!inside)
      continue;
    double of_cell[8] = {};
    CellScale scale{};
    if constexpr (graded)
      scale = scale_of(box, c[0], c[1], c[2]);
    for (int q = 0; q < 8; ++q) {
      for (int component = 0; component < components; ++component) {
        double value = field_value(box, k, component, c[0], c[1], c[2], q);
        if constexpr (graded)
          value *= scale.stiffness[component];
        POISSON_UNROLL
        for (int b = 0; b < 8; ++b)
          of_cell[b] += value * tables.stiffness[component][q][a][b];
      }
      double of_f = field_value(box, f, 0, c[0], c[1], c[2], q) - f.shift;
      if constexpr (graded)
        of_f *= scale.volume;
      load += of_f * tables.load[q][a];
    }
    for (int b = 0; b < 8; ++b)
      entries[13 - 9 * ((a >> 2) - (b >> 2)) - 3 * ((a >> 1 & 1) - (b >> 1 & 1)) - ((a & 1) - (b & 1))] += of_cell[b];
  }
  for (int face = 0; face < 6; ++face)
    if (box.faces[face].type != BoxFace::Type::dirichlet && node.i[face / 2] == (face % 2 == 0 ? 0 : box.nodes[face / 2] - 1))
      add_face(box, face, node, entries, load);
  // Where a neighbour lies in each direction: beyond the box, on a Dirichlet face, or neither.
  constexpr int beyond = -2, free = -1;
  int place[3][3];
  for (int d = 0; d < 3; ++d)
    for (int step = 0; step < 3; ++step) {
      std::int64_t const i = node.i[d] + step - 1;
      int const face = i == 0 ? 2 * d : i == box.nodes[d] - 1 ? 2 * d + 1 : free;
      place[d][step] = i < 0 || i >= box.nodes[d]                                      ? beyond
                       : face >= 0 && box.faces[face].type == BoxFace::Type::dirichlet ? face
                                                                                       : free;
    }
  bool const fixed = place[0][1] >= 0 || place[1][1] >= 0 || place[2][1] >= 0;
  for (int s = 0; s < 27; ++s) {
    int const at[3] = {place[0][s % 3], place[1][s / 3 % 3], place[2][s / 9]};
    bool const exists = at[0] != beyond && at[1] != beyond && at[2] != beyond;
    if (s == 13 || (exists && !fixed && at[0] < 0 && at[1] < 0 && at[2] < 0))
      continue;
    if (exists && !fixed) {
      double value = 0;
      dirichlet_value(box, Node{{node.i[0] + s % 3 - 1, node.i[1] + s / 3 % 3 - 1, node.i[2] + s / 9 - 1}}, value);
      load -= entries[s] * value;
    }
    entries[s] = -0.0;
  }
  if (fixed)
    load = 0;
}

/// Number t of the nodes that are less than `thickness` nodes away from a face, in an order of no importance, among those with
/// first <= z < end: with 1 those on faces, with 2 all that are not deep. Every direction has at least three nodes.
struct Shell {
  std::int64_t thickness;
  std::int64_t nodes[3], near[3];  ///< near: how many coordinates of a direction lie next to a face
  std::int64_t first, end;         ///< planes
  std::int64_t near_planes;        ///< of these

  POISSON_HOST_DEVICE Shell(BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane, int nodes_from_face = 2)
      : thickness(nodes_from_face), first(first_plane), end(end_plane), near_planes(0) {
    for (int d = 0; d < 3; ++d) {
      nodes[d] = box.nodes[d];
      near[d] = nodes[d] < 2 * thickness ? nodes[d] : 2 * thickness;
    }
    for (int s = 0; s < near[2]; ++s)
      near_planes += place(2, s) >= first && place(2, s) < end ? 1 : 0;
  }
  /// The s-th coordinate of a direction that is near a face: with thickness 2 0, 1, n - 2, n - 1.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t place(int d, std::int64_t s) const {
    return s < thickness ? s : nodes[d] - near[d] + s;
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t of_plane() const { return nodes[0] * nodes[1]; }
  /// Counts the nodes near a face that lie in a plane which is not itself near a face.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t of_ring() const { return near[1] * nodes[0] + (nodes[1] - near[1]) * near[0]; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t size() const {
    return near_planes * of_plane() + (end - first - near_planes) * of_ring();
  }
  [[nodiscard]] POISSON_HOST_DEVICE Node operator()(std::int64_t t) const {
    if (t < near_planes * of_plane()) {
      std::int64_t left = t / of_plane(), z = 0;
      for (int s = 0; s < near[2]; ++s) {
        z = place(2, s);
        if (z >= first && z < end && left-- == 0)
          break;
      }
      std::int64_t const in_plane = t % of_plane();
      return {{in_plane % nodes[0], in_plane / nodes[0], z}};
    }
    t -= near_planes * of_plane();
    std::int64_t const low = first > thickness ? first : thickness;  // planes between the near ones follow each other
    std::int64_t const z = low + t / of_ring();
    t %= of_ring();
    if (t < near[1] * nodes[0])
      return {{t % nodes[0], place(1, t / nodes[0]), z}};
    t -= near[1] * nodes[0];
    return {{place(0, t % near[0]), thickness + t / near[0], z}};
  }
  /// The s of place(d, s) = i, or -1.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t near_number(int d, std::int64_t i) const {
    return i < thickness ? i : i >= nodes[d] - near[d] + thickness ? i - nodes[d] + near[d] : -1;
  }
  /// The t of that node, or -1 where it is not in the shell. Precondition: the shell is of all planes.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t number(Node const& node) const {
    std::int64_t const x = near_number(0, node.i[0]), y = near_number(1, node.i[1]), z = near_number(2, node.i[2]);
    if (z >= 0)
      return z * of_plane() + node.i[1] * nodes[0] + node.i[0];
    std::int64_t const of_lower = near_planes * of_plane() + (node.i[2] - thickness) * of_ring();
    if (y >= 0)
      return of_lower + y * nodes[0] + node.i[0];
    return x < 0 ? -1 : of_lower + near[1] * nodes[0] + (node.i[1] - thickness) * near[0] + x;
  }
};

/// The diagonal, counted from the main one to the left, of the node that comes before by 9 dz + 3 dy + dx = s >= 0.
inline POISSON_HOST_DEVICE void store_row(std::int64_t n, std::int64_t row, double const (&entries)[27], double* values) {
  for (int s = 0; s < 14; ++s)
    values[s * n + row] = entries[13 - s];
}

/// Whether the plane `i` of direction d is a Dirichlet face: its nodes count as 0 in products.
[[nodiscard]] inline POISSON_HOST_DEVICE bool is_dirichlet_plane(BoxElements const& box, int d, std::int64_t i) {
  return (i == 0 && box.faces[2 * d].type == BoxFace::Type::dirichlet) ||
         (i == box.nodes[d] - 1 && box.faces[2 * d + 1].type == BoxFace::Type::dirichlet);
}

}  // namespace poisson::box_rows
