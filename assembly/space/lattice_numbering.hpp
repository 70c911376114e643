#pragma once

#include "assembly/mesh/lattice_topology.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/lattice_layout.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace poisson::assembly {

/// The order of the inner nodes of a line, face or lattice with n cells of order p a side: indices from 1 to p n - 1 in each of D
/// directions. Nodes with the same place in their cells (the same indices modulo p) form a kind and lie together, lexicographically
/// (first direction fastest): neighbouring rows of a matrix then have the same pattern. Kinds are ordered as cell corners, nodes on
/// edges, on faces, inside cells.
template <int D>
class NodeKinds {
public:
  using Index = std::array<std::int64_t, D>;
  struct Kind {
    Index residue;  ///< indices modulo p
    Index size;     ///< nodes in each direction
    std::int64_t first;
  };

  /// p, n >= 1.
  NodeKinds(std::int64_t p, std::int64_t n);

  [[nodiscard]] std::int64_t order() const { return p_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// All kinds, in order; some may be empty.
  [[nodiscard]] std::vector<Kind> const& kinds() const { return kinds_; }
  /// The place of an inner node in the order, 0 to size() - 1.
  [[nodiscard]] std::int64_t place(Index const& index) const {
    std::int64_t kind = 0, local = 0;
    for (int d = D - 1; d >= 0; --d)
      kind = kind * p_ + index[d] % p_;
    Kind const& found = kinds_[kind_of_residue_[kind]];
    for (int d = D - 1; d >= 0; --d)
      local = local * found.size[d] + index[d] / p_ - (found.residue[d] == 0 ? 1 : 0);
    return found.first + local;
  }

private:
  std::int64_t p_, size_ = 0;
  std::vector<Kind> kinds_;
  std::vector<int> kind_of_residue_;
};

/// A copy of an unknown: node `node` of m^3 (lexicographic) of a lattice.
struct LatticeNode {
  std::int32_t lattice;
  std::int32_t node;
  friend bool operator==(LatticeNode const&, LatticeNode const&) = default;
};

/// The unknowns of continuous Q_p elements on a mesh of lattices. First come the inner nodes of the lattices, lattice by lattice in
/// the order of NodeKinds<3>; then those of the coarse faces and of the coarse edges, in the order of NodeKinds of their own
/// coordinates, and the coarse vertices. Nothing of the size of the unknowns is stored but tables of those on rims.
class LatticeNumbering {
public:
  /// Preconditions: `topology` has no obstacle, refinements >= 0, order >= 1; at most 2^31 - 1 unknowns (check_index_range). Where
  /// `with_tables` is false, nothing of the size of the rims is made: the tables of the layout stay empty.
  LatticeNumbering(std::shared_ptr<LatticeTopology const> topology, int refinements, int order, bool with_tables = true);
  /// Any unknowns on rims, as the tables of a layout with 2^refinements cells a side have them. `unknown` is not for these.
  LatticeNumbering(LatticeLayout with_tables, int refinements);

  std::int64_t m;  ///< nodes a side of a lattice
  std::int64_t n_unknowns;
  /// The first unknown inside a coarse face, inside an edge, at a vertex; of a layout that was given the first on rims.
  std::int64_t first_face, first_edge, first_vertex;
  NodeKinds<3> lattice_kinds;
  NodeKinds<2> face_kinds;
  NodeKinds<1> edge_kinds;

  /// This numbering in the form that gpu/ takes; of one with few unknowns (with_few) that with all.
  LatticeLayout layout;

  /// The same lattices, of whose unknowns from `first` on only some are asked for, those of `kept`, ascending: these come next in
  /// this order. The tables are shared, since numbers are translated as they are read. Unknowns that are left out are at no node.
  /// Preconditions: there are tables; `first` is on rims, and nothing is left out yet.
  [[nodiscard]] LatticeNumbering with_few(std::int64_t first, std::vector<std::int32_t> kept) const;

  [[nodiscard]] std::int64_t cells_of_lattice() const { return std::int64_t{1} << (3 * refinements_); }
  [[nodiscard]] std::int64_t n_rim() const { return n_unknowns - first_face; }
  /// The unknown of node (i, j, k) of a lattice, 0 to m - 1 each.
  [[nodiscard]] std::int64_t unknown(std::int32_t lattice, std::int64_t i, std::int64_t j, std::int64_t k) const;

  /// A cell, where the cells of a lattice follow one another, x fastest.
  struct Cell {
    std::int32_t lattice;
    std::int32_t x, y, z;
  };
  [[nodiscard]] Cell cell(std::int64_t number) const {
    std::int64_t const mask = (std::int64_t{1} << refinements_) - 1;
    auto const index = [&](int direction) { return static_cast<std::int32_t>(number >> (direction * refinements_) & mask); };
    return {static_cast<std::int32_t>(number >> (3 * refinements_)), index(0), index(1), index(2)};
  }
  /// Writes the (p + 1)^3 unknowns of such a cell, lexicographic (x fastest). Precondition, also below: there are tables.
  void unknowns_of_cell(std::int64_t number, std::int32_t* out) const;
  /// The first of the nodes of lattices that an unknown stands for.
  [[nodiscard]] LatticeNode first_node(std::int64_t unknown) const;

private:
  /// A node of a cell (x, y, z) that is an inner one of its lattice has place first + z plane + y row + x there.
  struct CellNode {
    std::int64_t first, plane, row;
  };

  /// The number here of an unknown of the layout.
  [[nodiscard]] std::int32_t new_number(std::int32_t in_layout) const {
    if (in_layout < first_kept_)
      return in_layout;
    return static_cast<std::int32_t>(first_kept_ + (std::lower_bound(kept_.begin(), kept_.end(), in_layout) - kept_.begin()));
  }
  void list_nodes_of_cell();
  void make_layout(bool with_tables);

  int refinements_;
  std::shared_ptr<LatticeTopology const> topology_;
  std::vector<CellNode> nodes_of_cell_;  ///< lexicographic
  std::int64_t first_kept_ = 0;          ///< unknowns before have the same number in the layout
  std::vector<std::int32_t> kept_;       ///< of the others their numbers there; empty where all are kept
};

extern template class NodeKinds<1>;
extern template class NodeKinds<2>;
extern template class NodeKinds<3>;

}  // namespace poisson::assembly
