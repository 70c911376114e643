#pragma once

#include "gpu/core/shared_lattices.hpp"
#include "tests/gpu/lattices.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace poisson::test {

/// What one rank has of a box of lattices.
struct ShareOfBox {
  SharedLattices lattices;
  std::vector<std::int32_t> own;     ///< lattices
  std::vector<std::int32_t> rows;    ///< unknowns of the box, by row
  std::vector<std::int32_t> ghosts;  ///< the same of ghosts
};

/// `rank_of`: of each lattice; they are the pieces of larger ones, `cut` a side, which numbers of lattices per direction are
/// divisible by. An unknown belongs to the rank of the first lattice that has it.
inline ShareOfBox share_of(LatticeBox const& box, std::vector<int> const& rank_of, int rank, std::int32_t cut = 1) {
  LatticeView const whole = box.layout.view();
  LatticeRim const rim = whole.rim();
  std::int32_t const m = whole.m;
  auto const owner_of = [&](std::int64_t unknown) {
    std::int64_t const on_rim = unknown - whole.n_inner();
    std::int64_t const lattice =
        on_rim < 0 ? unknown / whole.inner_of_lattice() : whole.copies[whole.copy_offsets[on_rim]] / rim.size();
    return rank_of[static_cast<std::size_t>(lattice)];
  };
  ShareOfBox share;
  for (std::size_t l = 0; l < rank_of.size(); ++l)
    if (rank_of[l] == rank)
      share.own.push_back(static_cast<std::int32_t>(l));
  auto const rows_of = [&](int of) {
    std::vector<std::int32_t> rows;
    for (std::int64_t unknown = 0; unknown < whole.n_unknowns; ++unknown)
      if (owner_of(unknown) == of)
        rows.push_back(static_cast<std::int32_t>(unknown));
    return rows;
  };
  share.rows = rows_of(rank);
  // Ranks exchange unknowns of others that share a cell with own ones, and own ones that share a cell with others'.
  int const n_ranks = 1 + *std::max_element(rank_of.begin(), rank_of.end());
  std::vector<std::set<std::int32_t>> from(static_cast<std::size_t>(n_ranks)), to(from.size());
  std::int32_t const p = whole.order, n1 = p + 1;
  std::vector<std::int64_t> nodes(static_cast<std::size_t>(n1 * n1 * n1));
  std::vector<int> owners(nodes.size());
  for (std::int64_t l = 0; l < whole.n_lattices; ++l)
    for (std::int32_t k = 0; k < m - 1; k += p)
      for (std::int32_t j = 0; j < m - 1; j += p)
        for (std::int32_t i = 0; i < m - 1; i += p) {
          for (std::int32_t c = 0; c < n1 * n1 * n1; ++c) {
            nodes[static_cast<std::size_t>(c)] = whole.unknown(l, i + c % n1, j + c / n1 % n1, k + c / (n1 * n1));
            owners[static_cast<std::size_t>(c)] = owner_of(nodes[static_cast<std::size_t>(c)]);
          }
          for (std::size_t a = 0; a < nodes.size(); ++a)
            for (std::size_t b = 0; b < nodes.size(); ++b)
              if (owners[a] == rank && owners[b] != rank) {
                from[static_cast<std::size_t>(owners[b])].insert(static_cast<std::int32_t>(nodes[b]));
                to[static_cast<std::size_t>(owners[b])].insert(static_cast<std::int32_t>(nodes[a]));
              }
        }
  auto const row_of = [&](std::int32_t unknown) {
    return static_cast<std::int32_t>(std::lower_bound(share.rows.begin(), share.rows.end(), unknown) - share.rows.begin());
  };
  for (std::size_t other = 0; other < from.size(); ++other) {
    if (from[other].empty())
      continue;
    RankNeighbor& neighbor = share.lattices.neighbors.emplace_back();
    neighbor.rank = static_cast<int>(other);
    for (std::int32_t const unknown : to[other])
      neighbor.sent.push_back(row_of(unknown));
    neighbor.n_ghosts = static_cast<std::int64_t>(from[other].size());
    share.ghosts.insert(share.ghosts.end(), from[other].begin(), from[other].end());
  }
  share.lattices.n_rows = static_cast<std::int64_t>(share.rows.size());
  LatticeLayout& layout = share.lattices.layout;
  layout.n_lattices = static_cast<std::int64_t>(share.own.size());
  layout.order = whole.order;
  layout.cells = whole.cells;
  layout.all_on_rim = whole.all_on_rim;
  RimTables tables;
  tables.kind_first = box.layout.tables->kind_first;
  layout.n_unknowns = share.lattices.n_rows + static_cast<std::int64_t>(share.ghosts.size());
  for (std::int32_t const l : share.own)
    for (std::int64_t place = 0; place < rim.size(); ++place) {
      std::int32_t const unknown = whole.rim_unknowns[l * rim.size() + place];
      if (owner_of(unknown) == rank) {
        tables.rim_unknowns.push_back(row_of(unknown));
        continue;
      }
      auto const found = std::find(share.ghosts.begin(), share.ghosts.end(), unknown);
      tables.rim_unknowns.push_back(static_cast<std::int32_t>(share.lattices.n_rows + (found - share.ghosts.begin())));
    }
  list_copies(layout, tables);
  layout.set_tables(std::move(tables));
  std::array<std::int32_t, 3> const n{static_cast<std::int32_t>(box.lattices[0]), static_cast<std::int32_t>(box.lattices[1]),
                                      static_cast<std::int32_t>(box.lattices[2])};
  share.lattices.cut = {whole.n_lattices / (cut * cut * cut), cut, {}};
  for (std::int32_t const l : share.own) {
    std::int32_t const x = l % n[0], y = l / n[0] % n[1], z = l / (n[0] * n[1]);
    share.lattices.cut.places.push_back({(z / cut * (n[1] / cut) + y / cut) * (n[0] / cut) + x / cut, x % cut, y % cut, z % cut});
  }
  return share;
}

/// Takes the diagonals of some lattices from those of all (LatticeHalfCdsView).
inline std::vector<double> values_of(LatticeBox const& box, std::vector<std::int32_t> const& own, HostVector<double> const& all) {
  std::int64_t const m = box.layout.nodes(), nodes = m * m * m, n = box.layout.n_lattices * nodes;
  std::vector<double> values;
  for (std::int64_t d = 0; d < 14; ++d)
    for (std::int32_t const l : own)
      values.insert(values.end(), all.begin() + d * n + l * nodes, all.begin() + d * n + (l + 1) * nodes);
  return values;
}

}  // namespace poisson::test
