#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/host_vector.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace poisson {

/// The nodes of a lattice of m x m x m and its rim, the nodes with an index 0 or m - 1. The rim is numbered plane by plane in z:
/// the whole first plane, x fastest, the whole last one, then the rings of those between: their first line, their last line, and of
/// the lines between the first and the last node, all first ones before the last ones. With `all` every node counts as one of the
/// rim, lexicographically.
struct LatticeRim {
  std::int64_t m;
  bool all = false;
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t plane() const { return m * m; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t ring() const { return 4 * (m - 1); }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t size() const { return all ? m * m * m : 2 * plane() + (m - 2) * ring(); }
  [[nodiscard]] POISSON_HOST_DEVICE bool holds(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return all || i == 0 || j == 0 || k == 0 || i == m - 1 || j == m - 1 || k == m - 1;
  }
  /// The number of a node of the rim.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t place(std::int64_t i, std::int64_t j, std::int64_t k) const {
    if (all || k == 0)
      return (k * m + j) * m + i;
    if (k == m - 1)
      return plane() + j * m + i;
    std::int64_t const first = 2 * plane() + (k - 1) * ring();
    if (j == 0)
      return first + i;
    if (j == m - 1)
      return first + m + i;
    return first + 2 * m + (i == 0 ? 0 : m - 2) + j - 1;
  }
  struct Node {
    std::int32_t i, j, k;
  };
  /// The node with that number. Places are fewer than 2^31; 32-bit numbers are divided faster.
  [[nodiscard]] POISSON_HOST_DEVICE Node node(std::int64_t place) const {
    auto const p = static_cast<std::uint32_t>(place), n = static_cast<std::uint32_t>(m), face = n * n;
    auto const node = [](std::uint32_t i, std::uint32_t j, std::uint32_t k) {
      return Node{static_cast<std::int32_t>(i), static_cast<std::int32_t>(j), static_cast<std::int32_t>(k)};
    };
    if (all)
      return node(p % n, p / n % n, p / face);
    if (p < 2 * face)
      return node(p % n, p / n % n, p < face ? 0 : n - 1);
    std::uint32_t const around = 4 * (n - 1), k = 1 + (p - 2 * face) / around, in_ring = (p - 2 * face) % around;
    if (in_ring < 2 * n)
      return node(in_ring % n, in_ring < n ? 0 : n - 1, k);
    std::uint32_t const in_columns = in_ring - 2 * n;
    return node(in_columns < n - 2 ? 0 : n - 1, 1 + in_columns % (n - 2), k);
  }
};

/// The nodes on the surface of a box of n[0] x n[1] x n[2] nodes, two or more in a direction, in the order in which they come among
/// all nodes of the box, x fastest.
struct BoxSurface {
  std::int64_t n[3] = {0, 0, 0};
  [[nodiscard]] std::int64_t plane() const { return n[0] * n[1]; }
  /// Those of a plane in z that is neither the first nor the last one.
  [[nodiscard]] std::int64_t ring() const { return 2 * n[0] + 2 * (n[1] - 2); }
  [[nodiscard]] std::int64_t size() const { return n[0] == 0 ? 0 : 2 * plane() + (n[2] - 2) * ring(); }
  /// The number among them of a node of the box; -1: it is inside.
  [[nodiscard]] std::int64_t place(std::int64_t node) const { return place(node % n[0], node / n[0] % n[1], node / plane()); }
  [[nodiscard]] std::int64_t place(std::int64_t i, std::int64_t j, std::int64_t k) const {
    if (k == 0)
      return j * n[0] + i;
    std::int64_t const first = plane() + (k - 1) * ring();
    if (k == n[2] - 1)
      return first + j * n[0] + i;
    if (j == 0)
      return first + i;
    if (j == n[1] - 1)
      return first + n[0] + 2 * (n[1] - 2) + i;
    return i == 0 ? first + n[0] + 2 * (j - 1) : i == n[0] - 1 ? first + n[0] + 2 * (j - 1) + 1 : -1;
  }
  /// The node of the box with that number.
  [[nodiscard]] std::int64_t node(std::int64_t place) const {
    if (place < plane())
      return place;
    std::int64_t const k = std::min((place - plane()) / ring() + 1, n[2] - 1), in_plane = place - plane() - (k - 1) * ring();
    std::int64_t const columns = in_plane - n[0];
    if (k == n[2] - 1 || columns < 0)
      return k * plane() + in_plane;
    if (columns >= 2 * (n[1] - 2))
      return (k + 1) * plane() - n[0] + columns - 2 * (n[1] - 2);
    return k * plane() + (1 + columns / 2) * n[0] + columns % 2 * (n[0] - 1);
  }
};

struct LatticeView;

/// The tables of a LatticeLayout.
struct RimTables {
  HostVector<std::int32_t> kind_first;  ///< p^3: [(z p + y) p + x], with the indices modulo p, is the first inner node of the kind
  HostVector<std::int32_t> rim_unknowns;  ///< of node `place` of the rim of a lattice: [lattice * rim.size() + place]
  HostVector<std::int64_t> copy_offsets;  ///< unknown n_inner() + i is at the places copies[copy_offsets[i]] ...
  HostVector<std::int32_t> copies;        ///< ... copies[copy_offsets[i + 1] - 1] of rim_unknowns, ascending
};

/// Where the nodes of a mesh of lattices are in vectors. Each lattice has n cells of order p and m = p n + 1 nodes a side. Vectors
/// have one entry for each unknown: first the inner nodes of the lattices, lattice by lattice; in each, nodes with the same place
/// in their cells (the same indices modulo p, a kind) lie together, lexicographically, x fastest. Then, in any order, the unknowns
/// on rims, each of which is a node of one or more lattices. Any mesh, numbered in any way, is one of lattices of one cell, of
/// which all nodes count as the rim. Where these are the cells of a box, x fastest, and its nodes the unknowns, x fastest, all
/// follows from indices, and there are no tables.
struct LatticeLayout {
  std::int64_t n_lattices = 0, n_unknowns = 0;
  std::int32_t order = 1, cells = 0;  ///< p; n
  bool all_on_rim = false;            ///< all nodes count as the rim, with n = 1
  std::array<std::int32_t, 3> box{};  ///< cells of the box in every direction, with all_on_rim; 0: they are none
  /// Never null. They are as large as all rims, so that copies of a layout share them.
  std::shared_ptr<RimTables const> tables = std::make_shared<RimTables const>();

  void set_tables(RimTables made) { tables = std::make_shared<RimTables const>(std::move(made)); }
  [[nodiscard]] std::int64_t nodes() const { return std::int64_t{order} * cells + 1; }  ///< m
  [[nodiscard]] LatticeRim rim() const { return {nodes(), all_on_rim}; }
  [[nodiscard]] std::int64_t inner_of_lattice() const { return all_on_rim ? 0 : (nodes() - 2) * (nodes() - 2) * (nodes() - 2); }
  [[nodiscard]] std::int64_t n_inner() const { return n_lattices * inner_of_lattice(); }
  [[nodiscard]] bool is_box() const { return box[0] > 0; }
  /// Of a box, where only unknowns at its surface have Dirichlet values and loads.
  [[nodiscard]] BoxSurface surface() const {
    if (!is_box())
      return {};
    return {{std::int64_t{order} * box[0] + 1, std::int64_t{order} * box[1] + 1, std::int64_t{order} * box[2] + 1}};
  }
  /// Unknowns that may have a Dirichlet value or a load on the boundary: those on rims, or those at the surface of a box.
  [[nodiscard]] std::int64_t n_on_boundary() const { return is_box() ? surface().size() : n_unknowns - n_inner(); }
  /// The i-th of them.
  [[nodiscard]] std::int64_t on_boundary(std::int64_t i) const { return is_box() ? surface().node(i) : n_inner() + i; }
  [[nodiscard]] LatticeView view() const;
};
/// The layout of a box of so many cells of order p.
[[nodiscard]] LatticeLayout layout_of_box(std::array<std::int64_t, 3> const& cells, std::int32_t order);

/// LatticeView is a LatticeLayout as pointers into a backend's memory.
struct LatticeView {
  std::int64_t n_lattices = 0, n_unknowns = 0;
  std::int32_t order = 1, cells = 0, m = 0;
  bool all_on_rim = false;
  std::int32_t const* kind_first = nullptr;
  std::int32_t const* rim_unknowns = nullptr;
  std::int64_t const* copy_offsets = nullptr;
  std::int32_t const* copies = nullptr;
  std::int32_t box[3] = {0, 0, 0};  ///< as in LatticeLayout

  [[nodiscard]] POISSON_HOST_DEVICE bool is_box() const { return box[0] > 0; }
  /// Three indices: of a cell of the box, or of one of its nodes.
  struct InBox {
    std::int32_t i[3];
  };
  [[nodiscard]] POISSON_HOST_DEVICE InBox box_cell(std::int64_t lattice) const {
    auto const number = static_cast<std::uint32_t>(lattice), nx = static_cast<std::uint32_t>(box[0]),
               ny = static_cast<std::uint32_t>(box[1]), line = number / nx, plane = line / ny;
    return {{static_cast<std::int32_t>(number - line * nx), static_cast<std::int32_t>(line - plane * ny),
             static_cast<std::int32_t>(plane)}};
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int32_t box_nodes(int d) const { return order * box[d] + 1; }
  [[nodiscard]] POISSON_HOST_DEVICE InBox box_node(std::int64_t unknown) const {
    auto const number = static_cast<std::uint32_t>(unknown), nx = static_cast<std::uint32_t>(box_nodes(0)),
               ny = static_cast<std::uint32_t>(box_nodes(1)), line = number / nx, plane = line / ny;
    return {{static_cast<std::int32_t>(number - line * nx), static_cast<std::int32_t>(line - plane * ny),
             static_cast<std::int32_t>(plane)}};
  }
  /// The unknown that is node (i, j, k) of the box.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t box_unknown(std::int32_t i, std::int32_t j, std::int32_t k) const {
    return (std::int64_t{k} * box_nodes(1) + j) * box_nodes(0) + i;
  }

  [[nodiscard]] POISSON_HOST_DEVICE LatticeRim rim() const { return {m, all_on_rim}; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t nodes_of_lattice() const { return std::int64_t{m} * m * m; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t inner_of_lattice() const {
    return all_on_rim ? 0 : std::int64_t{m - 2} * (m - 2) * (m - 2);
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_inner() const { return n_lattices * inner_of_lattice(); }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_rim() const { return n_unknowns - n_inner(); }
  /// The unknown of an inner node; all indices from 1 to m - 2.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t inner_unknown(std::int64_t lattice, std::int32_t i, std::int32_t j,
                                                               std::int32_t k) const {
    std::int64_t const first = lattice * inner_of_lattice();
    if (order == 1)
      return first + (std::int64_t{k - 1} * (m - 2) + (j - 1)) * (m - 2) + (i - 1);
    std::int32_t const x = i % order, y = j % order, z = k % order;
    std::int32_t const nx = x == 0 ? cells - 1 : cells, ny = y == 0 ? cells - 1 : cells;
    return first + kind_first[(z * order + y) * order + x] +
           (std::int64_t{k / order - (z == 0 ? 1 : 0)} * ny + (j / order - (y == 0 ? 1 : 0))) * nx + (i / order - (x == 0 ? 1 : 0));
  }
  struct Node {
    std::int64_t lattice;
    std::int32_t i, j, k;
  };
  /// The inner node that is the unknown.
  [[nodiscard]] POISSON_HOST_DEVICE Node inner_node(std::int64_t unknown) const {
    auto const in_lattice = static_cast<std::int32_t>(unknown % inner_of_lattice());
    auto const node = [&](std::int32_t in_kind, std::int32_t x, std::int32_t y, std::int32_t z) {
      auto const first = [](std::int32_t residue) { return residue == 0 ? 1 : 0; };  // number of the first cell that begins a node
      std::int32_t const nx = cells - first(x), ny = cells - first(y);
      return Node{unknown / inner_of_lattice(), (in_kind % nx + first(x)) * order + x, (in_kind / nx % ny + first(y)) * order + y,
                  (in_kind / (nx * ny) + first(z)) * order + z};
    };
    std::int32_t kind = 0;
    if (order > 1)
      while (in_lattice < kind_first[kind] || in_lattice >= kind_first[kind] + size_of_kind(kind))
        ++kind;
    return node(in_lattice - (order > 1 ? kind_first[kind] : 0), kind % order, kind / order % order, kind / (order * order));
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int32_t size_of_kind(std::int32_t kind) const {
    auto const count = [this](std::int32_t residue) { return residue == 0 ? cells - 1 : cells; };
    return count(kind % order) * count(kind / order % order) * count(kind / (order * order));
  }
  /// The unknown of any node.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t unknown(std::int64_t lattice, std::int32_t i, std::int32_t j,
                                                         std::int32_t k) const {
    if (is_box()) {
      InBox const cell = box_cell(lattice);
      return box_unknown(order * cell.i[0] + i, order * cell.i[1] + j, order * cell.i[2] + k);
    }
    return rim().holds(i, j, k) ? rim_unknowns[lattice * rim().size() + rim().place(i, j, k)] : inner_unknown(lattice, i, j, k);
  }
};

/// Returns the layout of every second node: each lattice has half the cells. Unknowns on rims keep their order. `coarse_of`
/// becomes, for every fine unknown on rims, the number of its coarse one, or -1. Preconditions: `fine` is in host memory, of order
/// 1, with an even number of cells, and not all of its nodes are in the tables.
[[nodiscard]] LatticeLayout coarse_layout(LatticeView const& fine, std::vector<std::int32_t>* coarse_of = nullptr);
/// Returns the layout of the vertices of the cells: the same lattices with elements of order 1. Unknowns on rims keep their order.
/// `coarse_of` becomes, for every fine unknown on rims, the number of its coarse one, or -1. Precondition: `fine` is in host
/// memory.
[[nodiscard]] LatticeLayout layout_of_vertices(LatticeView const& fine, std::vector<std::int32_t>* coarse_of = nullptr);

/// Returns numbers of the unknowns on the boundary (LatticeLayout::on_boundary) as numbers of all unknowns on rims, in the
/// context's memory. Those inside of a box have 0.
[[nodiscard]] Array<std::uint8_t> on_rims(Context& context, LatticeLayout const& layout, std::span<std::uint8_t const> on_boundary);

/// Returns the numbers at the surface of a box (LatticeLayout::on_boundary) that belong to vertices of its cells, in the order of
/// layout_of_vertices.
[[nodiscard]] HostVector<std::uint8_t> vertices_at_surface(LatticeLayout const& box, std::span<std::uint8_t const> at_surface);

/// Fills in copy_offsets and copies from the other tables. `layout`: its sizes.
void list_copies(LatticeLayout const& layout, RimTables& tables);

/// By place on a rim: 1 where this copy is the first one of its unknown, else 0. Of a box it is empty.
[[nodiscard]] HostVector<std::uint8_t> first_copies(LatticeLayout const& layout);

inline LatticeView LatticeLayout::view() const {
  LatticeView view{n_lattices,
                   n_unknowns,
                   order,
                   cells,
                   static_cast<std::int32_t>(nodes()),
                   all_on_rim,
                   tables->kind_first.data(),
                   tables->rim_unknowns.data(),
                   tables->copy_offsets.data(),
                   tables->copies.data()};
  for (std::size_t d = 0; d < 3; ++d)
    view.box[d] = box[d];
  return view;
}

/// A layout in a backend's memory. Throws OutOfMemoryError.
class LatticeArrays {
public:
  LatticeArrays() = default;
  LatticeArrays(Context& context, LatticeLayout const& layout)
      : kind_first_(context, layout.tables->kind_first),
        rim_unknowns_(context, layout.tables->rim_unknowns),
        copy_offsets_(context, layout.tables->copy_offsets),
        copies_(context, layout.tables->copies),
        shape_(layout.view()) {}

  [[nodiscard]] LatticeView view() const {
    LatticeView result = shape_;
    result.kind_first = kind_first_.data();
    result.rim_unknowns = rim_unknowns_.data();
    result.copy_offsets = copy_offsets_.data();
    result.copies = copies_.data();
    return result;
  }
  /// Keeps only the first n unknowns as rows, on the lattices of one rank. Vectors that are read still have entries for all of
  /// them.
  void keep_rows(std::int64_t n) { shape_.n_unknowns = n; }
  [[nodiscard]] std::int64_t bytes() const {
    return kind_first_.bytes() + rim_unknowns_.bytes() + copy_offsets_.bytes() + copies_.bytes();
  }
  [[nodiscard]] LatticeArrays copy_to(Context& target) const {
    LatticeArrays result;
    result.kind_first_ = kind_first_.copy_to(target);
    result.rim_unknowns_ = rim_unknowns_.copy_to(target);
    result.copy_offsets_ = copy_offsets_.copy_to(target);
    result.copies_ = copies_.copy_to(target);
    result.shape_ = shape_;
    return result;
  }

private:
  Array<std::int32_t> kind_first_, rim_unknowns_;
  Array<std::int64_t> copy_offsets_;
  Array<std::int32_t> copies_;
  LatticeView shape_;  ///< whose pointers `view` replaces
};

}  // namespace poisson
