#pragma once

#include "gpu/core/cofactors.hpp"
#include "gpu/core/tensor_entries.hpp"
#include "gpu/kernels/lattice_elements.hpp"

#include <cmath>

/// What LatticeElementKernels do cell by cell and row by row, for both backends.
namespace poisson::lattice_rows {

/// A cell, or a node, of a lattice.
struct Place {
  std::int64_t lattice;
  std::int32_t i[3];
};

/// The map from the reference cell to a cell, of order g; g = 0: of any order, which reads the nodes again for every point. Nodes
/// count from the cell's first one, so that derivatives lose no digits where a cell is far from the origin.
template <int g>
class CellMap {
public:
  POISSON_HOST_DEVICE CellMap(LatticeElements const& elements, MapTables const& tables, Place const& cell)
      : tables_(tables),
        m_(elements.lattices.m),
        nodes_(elements.lattices.nodes_of_lattice()),
        step_(elements.lattices.order / tables.order) {
    std::int64_t const p = elements.lattices.order;
    if constexpr (g == 1)
      if (elements.lattices.is_box()) {
        LatticeView::InBox const at = elements.lattices.box_cell(cell.lattice);
        POISSON_UNROLL
        for (int i = 0; i < 3; ++i) {
          double const* const line = elements.lines[i] + p * at.i[i];
          origin_[i] = line[0];
          POISSON_UNROLL
          for (int v = 0; v < 8; ++v)
            vertices_[i][v] = (v >> i & 1) == 0 ? 0 : line[p] - line[0];
        }
        along_axes_ = true;
        return;
      }
    coordinates_ = elements.coordinates + 3 * cell.lattice * nodes_ + (p * cell.i[2] * m_ + p * cell.i[1]) * m_ + p * cell.i[0];
    POISSON_UNROLL
    for (int i = 0; i < 3; ++i)
      origin_[i] = coordinates_[i * nodes_];
    if constexpr (g == 1) {
      POISSON_UNROLL
      for (int i = 0; i < 3; ++i)
        POISSON_UNROLL
      for (int v = 0; v < 8; ++v)
        vertices_[i][v] =
            coordinates_[i * nodes_ + step_ * (((v >> 2) * m_ + (v >> 1 & 1)) * m_ + (v & 1))] - coordinates_[i * nodes_];
      along_axes_ = true;
      POISSON_UNROLL
      for (int i = 0; i < 3; ++i)
        POISSON_UNROLL
      for (int v = 0; v < 8; ++v)
        along_axes_ = along_axes_ && vertices_[i][v] == ((v >> i & 1) == 0 ? 0 : vertices_[i][7]);
    }
  }
  [[nodiscard]] POISSON_HOST_DEVICE MapTables const& tables() const { return tables_; }

  /// Coordinate i of Gauss point (qx, qy, qz).
  [[nodiscard]] POISSON_HOST_DEVICE double coordinate(int i, int qx, int qy, int qz) const {
    double sum = 0;
    POISSON_UNROLL
    for (int c = 0; c <= order(); ++c) {
      double of_plane = 0;
      POISSON_UNROLL
      for (int b = 0; b <= order(); ++b) {
        double of_line = 0;
        POISSON_UNROLL
        for (int a = 0; a <= order(); ++a)
          of_line += tables_.value[qx][a] * node(i, a, b, c);
        of_plane += tables_.value[qy][b] * of_line;
      }
      sum += tables_.value[qz][c] * of_plane;
    }
    return origin_[i] + sum;
  }

  /// Cofactors of the Jacobian matrix at a Gauss point, row by row: det(J) J^-T. Returns det(J). Of cells along the axes J are
  /// their edges, without rounding.
  POISSON_HOST_DEVICE double cofactors(int qx, int qy, int qz, double (&c)[9]) const {
    double j[9];
    if constexpr (g == 1)
      if (along_axes_) {
        POISSON_UNROLL
        for (int i = 0; i < 9; ++i)
          j[i] = i % 4 == 0 ? vertices_[i / 4][7] : 0;
        return cofactors_of(j, c);
      }
    POISSON_UNROLL
    for (int i = 0; i < 3; ++i)
      derivatives(i, qx, qy, qz, j + 3 * i);
    return cofactors_of(j, c);
  }

private:
  [[nodiscard]] POISSON_HOST_DEVICE int order() const {
    if constexpr (g > 0)
      return g;
    else
      return tables_.order;
  }
  [[nodiscard]] POISSON_HOST_DEVICE double node(int i, int a, int b, int c) const {
    if constexpr (g == 1)
      return vertices_[i][4 * c + 2 * b + a];
    else
      return coordinates_[i * nodes_ + step_ * ((c * m_ + b) * m_ + a)] - origin_[i];
  }
  POISSON_HOST_DEVICE void derivatives(int i, int qx, int qy, int qz, double* j) const {
    j[0] = j[1] = j[2] = 0;
    POISSON_UNROLL
    for (int c = 0; c <= order(); ++c) {
      double of_plane = 0, by_x = 0, by_y = 0;
      POISSON_UNROLL
      for (int b = 0; b <= order(); ++b) {
        double of_line = 0, of_line_by_x = 0;
        POISSON_UNROLL
        for (int a = 0; a <= order(); ++a) {
          of_line += tables_.value[qx][a] * node(i, a, b, c);
          of_line_by_x += tables_.derivative[qx][a] * node(i, a, b, c);
        }
        of_plane += tables_.value[qy][b] * of_line;
        by_x += tables_.value[qy][b] * of_line_by_x;
        by_y += tables_.derivative[qy][b] * of_line;
      }
      j[0] += tables_.value[qz][c] * by_x;
      j[1] += tables_.value[qz][c] * by_y;
      j[2] += tables_.derivative[qz][c] * of_plane;
    }
  }

  MapTables const& tables_;
  std::int64_t m_, nodes_, step_;
  double const* coordinates_ = nullptr;  ///< of the first node of the cell
  double origin_[3];                     ///< that node
  double vertices_[3][g == 1 ? 8 : 1];
  bool along_axes_ = false;  ///< edges are parallel to the axes, in their order
};
/// Calls call(map) with the map of a cell.
template <class Call>
POISSON_HOST_DEVICE auto with_map(LatticeElements const& elements, MapTables const& tables, Place const& cell, Call const& call) {
  return tables.order == 1 ? call(CellMap<1>(elements, tables, cell)) : call(CellMap<0>(elements, tables, cell));
}

/// weight / det c^T diag(k) c: entry (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2). Of cells along the axes k is multiplied by
/// numbers of the cell, in the order in which operators on boxes do it (lattice_cells::BoxCell).
inline POISSON_HOST_DEVICE void tensor_of(double weight, double det, double const (&k)[3], double const (&c)[9], double (&d)[6]) {
  double const inverse = 1 / det;
  auto const entry = [&](int a, int b) {
    return weight *
           (k[0] * (c[a] * c[b] * inverse) + k[1] * (c[3 + a] * c[3 + b] * inverse) + k[2] * (c[6 + a] * c[6 + b] * inverse));
  };
  d[0] = entry(0, 0);
  d[1] = entry(1, 1);
  d[2] = entry(2, 2);
  d[3] = entry(0, 1);
  d[4] = entry(0, 2);
  d[5] = entry(1, 2);
}

/// The same, weight / det c^T k c, of a full tensor.
inline POISSON_HOST_DEVICE void full_tensor_of(double weight, double det, double const (&k)[tensor_entries], double const (&c)[9],
                                               double (&d)[tensor_entries]) {
  double const inverse = 1 / det;
  double kc[9];
  POISSON_UNROLL
  for (int b = 0; b < 3; ++b) {
    kc[b] = k[0] * c[b] + k[3] * c[3 + b] + k[4] * c[6 + b];
    kc[3 + b] = k[3] * c[b] + k[1] * c[3 + b] + k[5] * c[6 + b];
    kc[6 + b] = k[4] * c[b] + k[5] * c[3 + b] + k[2] * c[6 + b];
  }
  POISSON_UNROLL
  for (int e = 0; e < tensor_entries; ++e) {
    int const a = tensor_row(e), b = tensor_column(e);
    d[e] = weight * ((c[a] * kc[b] + c[3 + a] * kc[3 + b] + c[6 + a] * kc[6 + b]) * inverse);
  }
}

/// What store_tensors finds in a plane of points.
struct TensorFindings {
  bool inverted = false;  ///< det(J) is not positive at one of them
  int not_definite = -1;  ///< the first point q where a full tensor is not positive definite
};

/// What LatticeElementKernels::tensors stores for the points of plane qz of one cell, number `cell` in the layers.
template <class Map>
inline POISSON_HOST_DEVICE TensorFindings store_tensors(LatticeElements const& elements, Map const& map, int qz,
                                                        CellLayers const& layers, int components, LatticeCoefficient const& k,
                                                        LatticeField const& f, double shift, std::int64_t cell,
                                                        LatticeTensors const& tensors, double* load) {
  int const n1 = map.tables().points, points = n1 * n1 * n1;
  std::int64_t const n_cells = layers.count * elements.cells_of_layer();
  LatticeTensors::Place const place = tensors.batches
                                          ? LatticeTensors::in_batch(points, layers.first * elements.cells_of_layer() + cell)
                                          : LatticeTensors::Place{cell, n_cells, points * n_cells};
  TensorFindings found;
  for (int qy = 0; qy < n1; ++qy)
    for (int qx = 0; qx < n1; ++qx) {
      std::int64_t const q = (qz * n1 + qy) * n1 + qx, at = q * n_cells + cell;
      auto const value = [&](LatticeField const& field) { return field.points != nullptr ? field.points[at] : field.constant; };
      double c[9];
      double const det = map.cofactors(qx, qy, qz, c);
      double const weight = map.tables().weight[qx] * map.tables().weight[qy] * map.tables().weight[qz];
      found.inverted = found.inverted || !(det > 0);
      load[at] = weight * det * (value(f) - shift);
      if (tensors.values == nullptr)
        continue;
      if (tensors.k.components > 0) {
        std::int64_t const number = layers.first * elements.cells_of_layer() + cell;
        bool const is_first = (q == 0 || tensors.k.of_point > 0) && (number == 0 || tensors.k.of_cell > 0);
        for (int of_k = 0; of_k < tensors.k.components && is_first; ++of_k)
          tensors.values[tensors.k.at(number, static_cast<int>(q), of_k)] = value(k[components == 1 ? 0 : of_k]);
        continue;
      }
      double d[tensor_entries];
      if (components == tensor_entries) {
        double of_point[tensor_entries];
        for (int e = 0; e < tensor_entries; ++e)
          of_point[e] = value(k[e]);
        if (found.not_definite < 0 && !is_positive_definite(of_point))
          found.not_definite = static_cast<int>(q);
        full_tensor_of(weight, det, of_point, c, d);
      } else {
        double const first = value(k[0]);
        double const of_point[3] = {first, components == 1 ? first : value(k[1]), components == 1 ? first : value(k[2])};
        tensor_of(weight, det, of_point, c, d);
      }
      double* const out = tensors.values + place.first + q * place.of_point;
      POISSON_UNROLL
      for (int entry = 0; entry < 6; ++entry)
        out[entry * place.of_entry] = d[entry];
    }
  return found;
}

/// The sum of |load| over the points of a cell.
[[nodiscard]] inline POISSON_HOST_DEVICE double absolute_of_cell(int points, double const* load, std::int64_t n_cells,
                                                                 std::int64_t cell) {
  double sum = 0;
  for (int q = 0; q < points; ++q)
    sum += std::abs(load[q * n_cells + cell]);
  return sum;
}

/// The function of node a at Gauss point q.
[[nodiscard]] inline POISSON_HOST_DEVICE double value_at(ElementTables const& tables, int n1, int a, int q) {
  return tables.value[q % n1][a % n1] * tables.value[q / n1 % n1][a / n1 % n1] * tables.value[q / (n1 * n1)][a / (n1 * n1)];
}

/// Entry i of what LatticeElementKernels::sum_copies writes.
[[nodiscard]] inline POISSON_HOST_DEVICE double sum_of_copies(LatticeElements const& elements, double const* rim_values,
                                                              std::int64_t i) {
  LatticeView const& lattices = elements.lattices;
  double sum = elements.rim_load[i];
  for (std::int64_t c = lattices.copy_offsets[i]; c < lattices.copy_offsets[i + 1]; ++c)
    sum += rim_values[lattices.copies[c]];
  return elements.fixed[i] != 0 ? 0 : sum;
}

/// Number of a cell in a run of layers.
[[nodiscard]] inline POISSON_HOST_DEVICE std::int64_t number_in(LatticeElements const& elements, CellLayers const& layers,
                                                                std::int64_t lattice, std::int64_t x, std::int64_t y,
                                                                std::int64_t z) {
  std::int64_t const n = elements.lattices.cells;
  return ((lattice * n + z - layers.first) * n + y) * n + x;
}

/// No node around this one is on the rim, nor is it itself.
[[nodiscard]] inline POISSON_HOST_DEVICE bool is_deep(std::int32_t m, Place const& node) {
  bool deep = true;
  for (int d = 0; d < 3; ++d)
    deep = deep && node.i[d] >= 2 && node.i[d] + 3 <= m;
  return deep;
}

/// Number of b before a: 9 dz + 3 dy + dx.
[[nodiscard]] constexpr POISSON_HOST_DEVICE int before(int a, int b) {
  return 9 * ((a >> 2) - (b >> 2)) + 3 * ((a >> 1 & 1) - (b >> 1 & 1)) + ((a & 1) - (b & 1));
}

/// Rows of `width` nodes that are deep and follow one another in x: entries[s] couples a node with the one that comes before it by
/// 9 dz + 3 dy + dx = s.
template <int width>
inline POISSON_HOST_DEVICE void deep_rows(LatticeElements const& elements, LatticeTables const& tables, CellLayers const& layers,
                                          Place const& node, double const* tensor, double const* load, double (&entries)[14][width],
                                          double (&loads)[width]) {
  std::int64_t const n_cells = layers.count * elements.cells_of_layer();
  POISSON_UNROLL
  for (auto& entry : entries)
    for (double& value : entry)
      value = 0;
  for (double& value : loads)
    value = 0;
  POISSON_UNROLL
  for (int cell = 0; cell < 8; ++cell) {
    int const a = 7 - cell;  // the node's own number in the cell
    std::int64_t const first = number_in(elements, layers, node.lattice, node.i[0] - 1 + (cell & 1),
                                         node.i[1] - 1 + (cell >> 1 & 1), node.i[2] - 1 + (cell >> 2));
    for (int q = 0; q < 8; ++q) {
      double const(&g)[3] = tables.gradient[q][a];
      double v[3][width];
      double const* const d = tensor + q * n_cells + first;
      std::int64_t const next = 8 * n_cells;
      POISSON_SIMD
      for (int w = 0; w < width; ++w) {
        double const xx = d[w], yy = d[next + w], zz = d[2 * next + w], xy = d[3 * next + w], xz = d[4 * next + w],
                     yz = d[5 * next + w];
        v[0][w] = xx * g[0] + xy * g[1] + xz * g[2];
        v[1][w] = xy * g[0] + yy * g[1] + yz * g[2];
        v[2][w] = xz * g[0] + yz * g[1] + zz * g[2];
        loads[w] += load[q * n_cells + first + w] * tables.value[q][a];
      }
      POISSON_UNROLL
      for (int b = 0; b < 8; ++b)
        if (before(a, b) >= 0) {
          double const(&of_b)[3] = tables.gradient[q][b];
          POISSON_SIMD
          for (int w = 0; w < width; ++w)
            entries[before(a, b)][w] += v[0][w] * of_b[0] + v[1][w] * of_b[1] + v[2][w] * of_b[2];
        }
    }
  }
}

/// What a Robin condition on a face adds to the row of one of its nodes: entries[13 + 9 dz + 3 dy + dx] of the node at that
/// distance.
inline POISSON_HOST_DEVICE void add_mass(LatticeElements const& elements, std::int32_t number, int face, Place const& node,
                                         double (&entries)[27]) {
  std::int64_t const n = elements.lattices.cells;
  int const u = (face / 2 + 1) % 3, v = (face / 2 + 2) % 3;
  double const near = 0.5 + 0.5 / std::sqrt(3.), far = 1 - near;
  int const stride[3] = {1, 3, 9};
  for (int cell = 0; cell < 4; ++cell) {
    std::int64_t const cu = node.i[u] - 1 + (cell & 1), cv = node.i[v] - 1 + (cell >> 1);
    if (cu < 0 || cv < 0 || cu >= n || cv >= n)
      continue;
    int const a = 3 - cell;
    for (int q = 0; q < 4; ++q) {
      double const mass = elements.face_mass[4 * ((number * n + cv) * n + cu) + q];
      auto const phi = [&](int b) { return ((b & 1) == (q & 1) ? near : far) * ((b >> 1) == (q >> 1) ? near : far); };
      for (int b = 0; b < 4; ++b)
        entries[13 + ((b & 1) - (a & 1)) * stride[u] + ((b >> 1) - (a >> 1)) * stride[v]] += phi(a) * phi(b) * mass;
    }
  }
}

/// Whether a node on the rim has a Dirichlet value, and which.
inline POISSON_HOST_DEVICE bool fixed_value(LatticeElements const& elements, Place const& node, double& value) {
  LatticeView const& lattices = elements.lattices;
  LatticeRim const rim = lattices.rim();
  if (!rim.holds(node.i[0], node.i[1], node.i[2]))
    return false;
  std::int64_t const i =
      lattices.rim_unknowns[node.lattice * rim.size() + rim.place(node.i[0], node.i[1], node.i[2])] - lattices.n_inner();
  value = elements.fixed_value[i];
  return elements.fixed[i] != 0;
}

/// The row of any node: entries[13 + 9 dz + 3 dy + dx], -0.0 for what is not there.
inline POISSON_HOST_DEVICE void any_row(LatticeElements const& elements, LatticeTables const& tables, CellLayers const& layers,
                                        Place const& node, double const* tensor, double const* load_at, double (&entries)[27],
                                        double& load) {
  std::int32_t const n = elements.lattices.cells, m = elements.lattices.m;
  std::int64_t const n_cells = layers.count * elements.cells_of_layer();
  for (double& entry : entries)
    entry = 0;
  load = 0;
  for (int cell = 0; cell < 8; ++cell) {
    int const a = 7 - cell;
    std::int32_t const x = node.i[0] - 1 + (cell & 1), y = node.i[1] - 1 + (cell >> 1 & 1), z = node.i[2] - 1 + (cell >> 2);
    if (x < 0 || y < 0 || z < 0 || x >= n || y >= n || z >= n)
      continue;
    std::int64_t const number = number_in(elements, layers, node.lattice, x, y, z);
    for (int q = 0; q < 8; ++q) {
      double const(&g)[3] = tables.gradient[q][a];
      double const* const d = tensor + q * n_cells + number;
      std::int64_t const next = 8 * n_cells;
      double const v[3] = {d[0] * g[0] + d[3 * next] * g[1] + d[4 * next] * g[2],
                           d[3 * next] * g[0] + d[next] * g[1] + d[5 * next] * g[2],
                           d[4 * next] * g[0] + d[5 * next] * g[1] + d[2 * next] * g[2]};
      for (int b = 0; b < 8; ++b) {
        double const(&of_b)[3] = tables.gradient[q][b];
        entries[13 - before(a, b)] += v[0] * of_b[0] + v[1] * of_b[1] + v[2] * of_b[2];
      }
      load += load_at[q * n_cells + number] * tables.value[q][a];
    }
  }
  for (int face = 0; face < 6; ++face)
    if (node.i[face / 2] == (face % 2 == 0 ? 0 : m - 1))
      if (std::int32_t const number = elements.mass_face[6 * node.lattice + face]; number >= 0)
        add_mass(elements, number, face, node, entries);
  double value = 0;
  bool const fixed = fixed_value(elements, node, value);
  for (int s = 0; s < 27; ++s) {
    if (s == 13)
      continue;
    Place const other{node.lattice, {node.i[0] + s % 3 - 1, node.i[1] + s / 3 % 3 - 1, node.i[2] + s / 9 - 1}};
    bool exists = true;
    for (int d = 0; d < 3; ++d)
      exists = exists && other.i[d] >= 0 && other.i[d] < m;
    if (exists && !fixed) {
      if (!fixed_value(elements, other, value))
        continue;
      load -= entries[s] * value;
    }
    entries[s] = -0.0;
  }
  if (fixed)
    load = 0;
}

/// The row of a node among those of all lattices.
[[nodiscard]] inline POISSON_HOST_DEVICE std::int64_t row_of(LatticeElements const& elements, Place const& node) {
  std::int64_t const m = elements.lattices.m;
  return ((node.lattice * m + node.i[2]) * m + node.i[1]) * m + node.i[0];
}

/// Makes the row of any node and stores it.
inline POISSON_HOST_DEVICE void store_any_row(LatticeElements const& elements, LatticeTables const& tables,
                                              CellLayers const& layers, Place const& node, double const* tensor, double const* load,
                                              double* values, double* rhs, double* rim_rhs) {
  double entries[27], sum = 0;
  any_row(elements, tables, layers, node, tensor, load, entries, sum);
  std::int64_t const row = row_of(elements, node), n_values = elements.n_values();
  for (int s = 0; s < 14; ++s)
    values[s * n_values + row] = entries[13 - s];
  LatticeRim const rim = elements.lattices.rim();
  if (rim.holds(node.i[0], node.i[1], node.i[2]))
    rim_rhs[node.lattice * rim.size() + rim.place(node.i[0], node.i[1], node.i[2])] = sum;
  else
    rhs[elements.lattices.inner_unknown(node.lattice, node.i[0], node.i[1], node.i[2])] = sum;
}

}  // namespace poisson::lattice_rows
