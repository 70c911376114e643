#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/lattice_layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace poisson::test {

/// A box that is made of nx x ny x nz lattices of n cells of order p a side, and the same box without lattices: its nodes,
/// lexicographically (x fastest).
struct LatticeBox {
  LatticeLayout layout;
  std::array<std::int64_t, 3> nodes;     ///< of the whole box
  std::vector<std::int32_t> unknown_of;  ///< by node of the box

  /// The node of the box at (i, j, k) of a lattice.
  [[nodiscard]] std::int64_t node(std::int64_t lattice, std::int64_t i, std::int64_t j, std::int64_t k) const {
    std::int64_t const pn = layout.nodes() - 1;
    std::int64_t const x = lattice % lattices[0] * pn + i, y = lattice / lattices[0] % lattices[1] * pn + j,
                       z = lattice / (lattices[0] * lattices[1]) * pn + k;
    return (z * nodes[1] + y) * nodes[0] + x;
  }
  std::array<std::int64_t, 3> lattices;
};

inline LatticeBox make_lattice_box(std::array<std::int64_t, 3> const& lattices, std::int32_t cells, std::int32_t order = 1,
                                   bool all_on_rim = false) {
  LatticeBox box;
  box.lattices = lattices;
  LatticeLayout& layout = box.layout;
  layout.n_lattices = lattices[0] * lattices[1] * lattices[2];
  layout.order = order;
  layout.cells = cells;
  layout.all_on_rim = all_on_rim;
  std::int64_t const m = layout.nodes();
  LatticeRim const rim = layout.rim();
  std::int64_t n_nodes = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    box.nodes[d] = lattices[d] * (m - 1) + 1;
    n_nodes *= box.nodes[d];
  }
  box.unknown_of.assign(static_cast<std::size_t>(n_nodes), -1);

  // Kinds in the order of their residues.
  RimTables tables;
  std::int32_t first = 0;
  for (std::int32_t z = 0; z < order; ++z)
    for (std::int32_t y = 0; y < order; ++y)
      for (std::int32_t x = 0; x < order; ++x) {
        tables.kind_first.push_back(first);
        first += (cells - (z == 0 ? 1 : 0)) * (cells - (y == 0 ? 1 : 0)) * (cells - (x == 0 ? 1 : 0));
      }
  LatticeView view = layout.view();
  view.kind_first = tables.kind_first.data();
  std::map<std::int64_t, std::vector<std::int32_t>> places;  // on rims, by node of the box
  for (std::int64_t l = 0; l < layout.n_lattices; ++l)
    for (std::int32_t k = 0; k < m; ++k)
      for (std::int32_t j = 0; j < m; ++j)
        for (std::int32_t i = 0; i < m; ++i)
          if (rim.holds(i, j, k))
            places[box.node(l, i, j, k)].push_back(static_cast<std::int32_t>(l * rim.size() + rim.place(i, j, k)));
          else
            box.unknown_of[static_cast<std::size_t>(box.node(l, i, j, k))] =
                static_cast<std::int32_t>(view.inner_unknown(l, i, j, k));

  layout.n_unknowns = layout.n_inner();
  tables.rim_unknowns.resize(static_cast<std::size_t>(layout.n_lattices * rim.size()));
  tables.copy_offsets.push_back(0);
  for (auto& [node, copies] : places) {
    std::sort(copies.begin(), copies.end());
    auto const unknown = static_cast<std::int32_t>(layout.n_unknowns++);
    box.unknown_of[static_cast<std::size_t>(node)] = unknown;
    for (std::int32_t const place : copies) {
      tables.rim_unknowns[static_cast<std::size_t>(place)] = unknown;
      tables.copies.push_back(place);
    }
    tables.copy_offsets.push_back(static_cast<std::int64_t>(tables.copies.size()));
  }
  layout.set_tables(std::move(tables));
  return box;
}

/// Calls visit(place, node, neighbour) for every pair of nodes that diagonals of lattices (LatticeHalfCdsView) have a place for:
/// the neighbour is on the left of the node, or the node itself; both are nodes of the box. In the order of places but for
/// diagonals, which come last.
template <class Visit>
void for_pairs(LatticeBox const& box, Visit const& visit) {
  std::int64_t const m = box.layout.nodes(), n = box.layout.n_lattices * m * m * m;
  for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
    for (std::int64_t k = 0; k < m; ++k)
      for (std::int64_t j = 0; j < m; ++j)
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t d = 0; d < 14; ++d) {  // backwards from the node itself
            std::int64_t const x = i + (13 - d) % 3 - 1, y = j + (13 - d) / 3 % 3 - 1, z = k + (13 - d) / 9 - 1;
            if (x >= 0 && x < m && y >= 0 && y < m && z >= 0)
              visit(d * n + ((l * m + k) * m + j) * m + i, box.node(l, i, j, k), box.node(l, x, y, z));
          }
}

/// The diagonals of lattices whose sum is `csr`, a symmetric matrix of the box's unknowns on the 27-point stencil. An entry is in
/// the first lattice that has both nodes; or, with `split`, in all of them, in shares that are multiples of 2^-10 if entries are.
inline HostVector<double> lattice_diagonals(LatticeBox const& box, CsrMatrix const& csr, bool split) {
  std::int64_t const m = box.layout.nodes();
  HostVector<double> values;
  values.resize(static_cast<std::size_t>(14 * box.layout.n_lattices * m * m * m), -0.0);
  // The entry's place in the lower triangle of csr, or -1.
  auto const entry = [&](std::int64_t node, std::int64_t neighbour) {
    std::int32_t const u = box.unknown_of[static_cast<std::size_t>(node)], v = box.unknown_of[static_cast<std::size_t>(neighbour)];
    auto const row = static_cast<std::size_t>(std::max(u, v));
    auto const first = csr.columns.begin() + csr.row_ptr[row], last = csr.columns.begin() + csr.row_ptr[row + 1];
    auto const found = std::lower_bound(first, last, std::min(u, v));
    return found != last && *found == std::min(u, v) ? found - csr.columns.begin() : std::ptrdiff_t{-1};
  };
  std::vector<std::int8_t> copies(csr.values.size()), taken(csr.values.size());
  for_pairs(box, [&](std::int64_t, std::int64_t node, std::int64_t neighbour) {
    if (std::ptrdiff_t const e = entry(node, neighbour); e >= 0)
      ++copies[static_cast<std::size_t>(e)];
  });
  std::vector<double> rest(csr.values.begin(), csr.values.end());
  for_pairs(box, [&](std::int64_t place, std::int64_t node, std::int64_t neighbour) {
    std::ptrdiff_t const found = entry(node, neighbour);
    if (found < 0)
      return;
    auto const e = static_cast<std::size_t>(found);
    bool const last = ++taken[e] == copies[e];
    if (split) {
      double const share = last ? rest[e] : std::trunc(1024 * csr.values[e] * taken[e] / (copies[e] * copies[e])) / 1024;
      rest[e] -= share;
      values[static_cast<std::size_t>(place)] = share + 0.0;  // never -0.0, which stands for nothing
    } else if (taken[e] == 1) {
      values[static_cast<std::size_t>(place)] = csr.values[e] + 0.0;
    }
  });
  return values;
}

/// A number for the pair of nodes in any order.
inline std::uint64_t mixed(std::int64_t a, std::int64_t b) {
  std::uint64_t h = static_cast<std::uint64_t>(std::min(a, b)) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(std::max(a, b));
  h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

/// A diagonally dominant matrix of the box's unknowns on the 27-point stencil; one off-diagonal entry of eight is missing. Entries
/// are multiples of 2^-10, so that shares of them, also in float, and their sums are exact.
inline std::shared_ptr<CsrMatrix> random_matrix(LatticeBox const& box) {
  auto csr = std::make_shared<CsrMatrix>();
  csr->n_rows = csr->n_columns = box.layout.n_unknowns;
  std::vector<std::int64_t> node_of(box.unknown_of.size());
  for (std::size_t node = 0; node < node_of.size(); ++node)
    node_of[static_cast<std::size_t>(box.unknown_of[node])] = static_cast<std::int64_t>(node);
  csr->row_ptr.push_back(0);
  std::vector<std::pair<std::int32_t, double>> row;
  for (std::int64_t const node : node_of) {
    row.clear();
    std::int64_t const x = node % box.nodes[0], y = node / box.nodes[0] % box.nodes[1], z = node / (box.nodes[0] * box.nodes[1]);
    for (std::int64_t d = 0; d < 27; ++d) {
      std::int64_t const x2 = x + d % 3 - 1, y2 = y + d / 3 % 3 - 1, z2 = z + d / 9 - 1;
      if (x2 < 0 || y2 < 0 || z2 < 0 || x2 >= box.nodes[0] || y2 >= box.nodes[1] || z2 >= box.nodes[2])
        continue;
      std::int64_t const other = (z2 * box.nodes[1] + y2) * box.nodes[0] + x2;
      std::uint64_t const h = mixed(node, other);
      if (other != node && h % 8 == 0)
        continue;
      double const value = static_cast<double>(static_cast<std::int64_t>(h / 8 % 2049) - 1024) / 1024;
      row.emplace_back(box.unknown_of[static_cast<std::size_t>(other)], other == node ? 40 + value : value);
    }
    std::sort(row.begin(), row.end());
    for (auto const& [column, value] : row) {
      csr->columns.push_back(column);
      csr->values.push_back(value);
    }
    csr->row_ptr.push_back(static_cast<std::int64_t>(csr->columns.size()));
  }
  return csr;
}

}  // namespace poisson::test
