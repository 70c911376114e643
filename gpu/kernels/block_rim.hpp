#pragma once

#include "gpu/core/block_places.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/csr.hpp"

#include <array>
#include <cstdint>

namespace poisson {

/// The rim of a rank's block of a box, as formulas: its rows that are coupled with ghosts. They are numbered as own rows are, x
/// fastest. Nodes have their places in `around`, the box of nodes that own rows are coupled with. A row is coupled with the nodes
/// beside its own, all 26, that have no Dirichlet value; these are a box too.
class BlockRim {
public:
  using Node = box_rows::Node;

  BlockRim() = default;
  /// `dirichlet`: the faces of places.around() whose nodes have Dirichlet values. Precondition: there are no more than 26 boxes of
  /// ghosts.
  BlockRim(BlockPlaces const& places, std::array<bool, 6> const& dirichlet) : BlockRim(places, dirichlet, places.own()) {}
  /// The same where there are rows of more nodes, `rows`, than places.own(): of those that are tied to others.
  BlockRim(BlockPlaces const& places, std::array<bool, 6> const& dirichlet, NodeBox const& rows);

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_own() const { return own_.size(); }
  [[nodiscard]] std::array<std::int64_t, 3> nodes_of_block() const { return {own_.count(0), own_.count(1), own_.count(2)}; }
  /// Counts the rows of the rim.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t size() const { return rows_.size() - inner_.size(); }
  /// Counts the couplings with ghosts of all of them.
  [[nodiscard]] std::int64_t n_couplings() const {
    if (rows_.size() == 0)
      return 0;
    return below(rows_.high[0] - 1, rows_.high[1] - 1, rows_.high[2], free_) -
           below(rows_.high[0] - 1, rows_.high[1] - 1, rows_.high[2], rows_);
  }
  /// The node of row t of the rim.
  [[nodiscard]] POISSON_HOST_DEVICE Node operator()(std::int64_t t) const {
    std::int64_t const nx = rows_.count(0), ny = rows_.count(1), ix = inner_.count(0), iy = inner_.count(1), iz = inner_.count(2);
    std::int64_t const plane = nx * ny, ring = plane - ix * iy, planes_below = inner_.low[2] - rows_.low[2],
                       lines_below = inner_.low[1] - rows_.low[1], sides = nx - ix;
    std::int64_t z = 0, y = 0, x = 0;
    bool whole_plane = true;
    if (t >= planes_below * plane) {
      t -= planes_below * plane;
      whole_plane = t >= iz * ring;
      t -= whole_plane ? iz * ring : 0;
      z = planes_below + (whole_plane ? iz : 0);
    }
    std::int64_t const of_plane = whole_plane ? plane : ring;
    z += t / of_plane;
    t %= of_plane;
    if (whole_plane || t < lines_below * nx) {
      y = t / nx;
      x = t % nx;
    } else if (t -= lines_below * nx; t < iy * sides) {
      y = lines_below + t / sides;
      x = t % sides;
      x += x >= inner_.low[0] - rows_.low[0] ? ix : 0;
    } else {
      t -= iy * sides;
      y = lines_below + iy + t / nx;
      x = t % nx;
    }
    return {{rows_.low[0] + x, rows_.low[1] + y, rows_.low[2] + z}};
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t row(Node const& node) const { return own_.index(node.i[0], node.i[1], node.i[2]); }
  /// A node of own rows as one of the block alone.
  [[nodiscard]] POISSON_HOST_DEVICE Node in_block(Node const& node) const {
    return {{node.i[0] - own_.low[0], node.i[1] - own_.low[1], node.i[2] - own_.low[2]}};
  }
  /// Counts the couplings with ghosts in the rows before that of `node`.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t couplings_before(Node const& node) const {
    return below(node.i[0], node.i[1], node.i[2], free_) - below(node.i[0], node.i[1], node.i[2], rows_);
  }
  /// Calls take(row, e) for the own rows with which the row of `node` is coupled, ascending; e = 13 + 9 dz + 3 dy + dx by the
  /// distance from `node`.
  template <class Take>
  POISSON_HOST_DEVICE void for_own(Node const& node, Take const& take) const {
    for_common(node, rows_, own_, 0, take);
  }
  /// Calls take(ghost, e) for the ghosts with which it is coupled, ascending.
  template <class Take>
  POISSON_HOST_DEVICE void for_ghosts(Node const& node, Take const& take) const {
    for (int g = 0; g < n_ghosts_; ++g)
      for_common(node, free_, ghosts_[g], first_ghost_[g], take);
  }

private:
  struct Nodes {
    std::int64_t low[3] = {0, 0, 0}, high[3] = {0, 0, 0};

    [[nodiscard]] POISSON_HOST_DEVICE std::int64_t count(int d) const { return high[d] - low[d]; }
    [[nodiscard]] POISSON_HOST_DEVICE std::int64_t size() const { return count(0) * count(1) * count(2); }
    [[nodiscard]] POISSON_HOST_DEVICE std::int64_t index(std::int64_t x, std::int64_t y, std::int64_t z) const {
      return ((z - low[2]) * count(1) + y - low[1]) * count(0) + x - low[0];
    }
  };

  /// Counts, for the rows with coordinates below i in direction d, those of i - 1, i and i + 1 that are within `nodes`.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t beside(int d, std::int64_t i, Nodes const& nodes) const {
    std::int64_t const low = rows_.low[d], high = rows_.high[d];
    return 3 * (i - low) - (low == nodes.low[d] && i > low ? 1 : 0) - (high == nodes.high[d] && i == high ? 1 : 0);
  }
  /// Counts the entries in rows before that of a node whose columns are among `nodes`, which hold all rows.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t below(std::int64_t x, std::int64_t y, std::int64_t z, Nodes const& nodes) const {
    std::int64_t const of_line = beside(0, rows_.high[0], nodes), of_lines = beside(1, rows_.high[1], nodes);
    std::int64_t const planes = beside(2, z, nodes), lines = beside(1, y, nodes);
    if (z == rows_.high[2])
      return planes * of_lines * of_line;
    return planes * of_lines * of_line +
           (beside(2, z + 1, nodes) - planes) * (lines * of_line + (beside(1, y + 1, nodes) - lines) * beside(0, x, nodes));
  }
  /// Calls take(first + the number in `numbered`, e) for what is beside `node` and in both.
  template <class Take>
  POISSON_HOST_DEVICE static void for_common(Node const& node, Nodes const& nodes, Nodes const& numbered, std::int64_t first,
                                             Take const& take) {
    std::int64_t low[3], high[3];
    for (int d = 0; d < 3; ++d) {
      low[d] = node.i[d] - 1;
      low[d] = low[d] < nodes.low[d] ? nodes.low[d] : low[d];
      low[d] = low[d] < numbered.low[d] ? numbered.low[d] : low[d];
      high[d] = node.i[d] + 2;
      high[d] = high[d] > nodes.high[d] ? nodes.high[d] : high[d];
      high[d] = high[d] > numbered.high[d] ? numbered.high[d] : high[d];
    }
    for (std::int64_t z = low[2]; z < high[2]; ++z)
      for (std::int64_t y = low[1]; y < high[1]; ++y)
        for (std::int64_t x = low[0]; x < high[0]; ++x)
          take(first + numbered.index(x, y, z), static_cast<int>(13 + 9 * (z - node.i[2]) + 3 * (y - node.i[1]) + x - node.i[0]));
  }

  static constexpr int most_ghosts = 26;
  Nodes own_, free_;    ///< own rows, and nodes around that have no Dirichlet value
  Nodes rows_, inner_;  ///< own rows that have none and are not tied; those of them that are coupled with no ghost
  int n_ghosts_ = 0;    ///< boxes of ghosts
  Nodes ghosts_[most_ghosts];
  std::int64_t first_ghost_[most_ghosts] = {};
};

namespace block_rim {

/// The entries of a box's matrix by rows: of(node) is a row, of(node)(e) its entry e, for couplings that there are.
struct StencilRows {
  BoxStencilView a;
  box_rows::Shell shell;

  explicit StencilRows(BoxStencilView const& view) : a(view), shell(view.box, 0, view.box.nodes[2], 1) {}
  [[nodiscard]] POISSON_HOST_DEVICE auto of(box_rows::Node const& node) const {
    std::int64_t const t = shell.number(node);
    return [this, node, t](int e) { return t >= 0 ? a.face_rows[e * a.n_face_rows + t] : box_rows::inner_entry(a, node, e); };
  }
};
struct HalfRows {
  double const* values;
  std::int64_t n, line, plane;

  HalfRows(std::array<std::int64_t, 3> const& nodes, double const* diagonals) : HalfRows(nodes[0], nodes[1], nodes[2], diagonals) {}
  POISSON_HOST_DEVICE HalfRows(std::int64_t nx, std::int64_t ny, std::int64_t nz, double const* diagonals)
      : values(diagonals), n(nx * ny * nz), line(nx), plane(nx * ny) {}
  [[nodiscard]] POISSON_HOST_DEVICE auto of(box_rows::Node const& node) const {
    std::int64_t const row = node.i[2] * plane + node.i[1] * line + node.i[0];
    return [this, row](int e) {  // upper entries are stored in the other rows
      return e <= 13 ? values[(13 - e) * n + row] : values[(e - 13) * n + row + half_stencil::offset(e - 13, line, plane)];
    };
  }
};

/// A box that repeats itself in some directions: its last node there is tied to its first one. u at the last one is u at the first
/// one plus `jump`.
struct TiedBox {
  std::int64_t nodes[3] = {0, 0, 0};
  bool periodic[3] = {false, false, false};
  double jump[3] = {0, 0, 0};
  bool dirichlet[6] = {false, false, false, false, false, false};  ///< faces whose nodes have Dirichlet values
  bool holds_first = false;  ///< the first node is held instead of its equation: where a constant may be added to u

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n() const { return nodes[0] * nodes[1] * nodes[2]; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t row(box_rows::Node const& node) const {
    return (node.i[2] * nodes[1] + node.i[1]) * nodes[0] + node.i[0];
  }
  [[nodiscard]] POISSON_HOST_DEVICE box_rows::Node node(std::int64_t row) const {
    return {{row % nodes[0], row / nodes[0] % nodes[1], row / (nodes[0] * nodes[1])}};
  }
  [[nodiscard]] POISSON_HOST_DEVICE bool is_tied(box_rows::Node const& node) const {
    bool tied = false;
    for (int d = 0; d < 3; ++d)
      tied = tied || (periodic[d] && node.i[d] == nodes[d] - 1);
    return tied;
  }
  /// Whether other nodes are tied to it. Precondition: it is not tied itself.
  [[nodiscard]] POISSON_HOST_DEVICE bool has_tied(box_rows::Node const& node) const {
    bool found = false;
    for (int d = 0; d < 3; ++d)
      found = found || (periodic[d] && node.i[d] == 0);
    return found;
  }
  /// Whether it is near nodes that are tied, or among them.
  [[nodiscard]] POISSON_HOST_DEVICE bool is_near_tied(box_rows::Node const& node) const {
    bool found = false;
    for (int d = 0; d < 3; ++d)
      found = found || (periodic[d] && node.i[d] >= nodes[d] - 2);
    return found;
  }
  /// The node of the box that it is tied to, or of which it is an image beyond the box, one period away at most.
  [[nodiscard]] POISSON_HOST_DEVICE box_rows::Node root(box_rows::Node node) const {
    for (int d = 0; d < 3; ++d)
      if (periodic[d])
        node.i[d] += node.i[d] < 0 ? nodes[d] - 1 : node.i[d] >= nodes[d] - 1 ? 1 - nodes[d] : 0;
    return node;
  }
  /// u there less u at its root.
  [[nodiscard]] POISSON_HOST_DEVICE double jump_at(box_rows::Node const& node) const {
    double sum = 0;
    for (int d = 0; d < 3; ++d)
      sum += periodic[d] && node.i[d] == nodes[d] - 1 ? jump[d] : 0;
    return sum;
  }
  [[nodiscard]] POISSON_HOST_DEVICE bool is_dirichlet(box_rows::Node const& node) const {
    bool found = false;
    for (int d = 0; d < 3; ++d)
      found = found || (dirichlet[2 * d] && node.i[d] == 0) || (dirichlet[2 * d + 1] && node.i[d] == nodes[d] - 1);
    return found;
  }
  [[nodiscard]] POISSON_HOST_DEVICE bool is_held(box_rows::Node const& node) const {
    return holds_first && node.i[0] == 0 && node.i[1] == 0 && node.i[2] == 0;
  }
  [[nodiscard]] POISSON_HOST_DEVICE bool holds(box_rows::Node const& node) const {
    bool inside = true;
    for (int d = 0; d < 3; ++d)
      inside = inside && node.i[d] >= 0 && node.i[d] < nodes[d];
    return inside;
  }
  /// The neighbour at distance e = 13 + 9 dz + 3 dy + dx.
  [[nodiscard]] POISSON_HOST_DEVICE static box_rows::Node beside(box_rows::Node const& node, int e) {
    return {{node.i[0] + e % 3 - 1, node.i[1] + e / 3 % 3 - 1, node.i[2] + e / 9 - 1}};
  }
  /// Calls take(image) for the node, which is not tied, and those tied to it. The order is the same for two neighbours and theirs.
  template <class Take>
  POISSON_HOST_DEVICE void for_images(box_rows::Node const& node, Take const& take) const {
    for (int image = 0; image < 8; ++image) {
      box_rows::Node at = node;
      bool exists = true;
      for (int d = 0; d < 3; ++d)
        if ((image >> d & 1) != 0) {
          exists = exists && periodic[d] && node.i[d] == 0;
          at.i[d] = nodes[d] - 1;
        }
      if (exists)
        take(at);
    }
  }
};

/// The rows of C^T A C, where C gives tied nodes the values of the others, from the diagonals of A, which knows of no ties. Sums
/// have the same bits in a(i, j) and a(j, i). Nodes are those of `around`, whose node `first` is the first one of the box.
struct FoldedRows {
  HalfRows rows;
  TiedBox box;
  box_rows::Node first;

  POISSON_HOST_DEVICE FoldedRows(TiedBox const& tied, double const* diagonals, box_rows::Node const& first_in_around = {{0, 0, 0}})
      : rows(tied.nodes[0], tied.nodes[1], tied.nodes[2], diagonals), box(tied), first(first_in_around) {}
  [[nodiscard]] POISSON_HOST_DEVICE auto of(box_rows::Node const& of_around) const {
    box_rows::Node const node{{of_around.i[0] - first.i[0], of_around.i[1] - first.i[1], of_around.i[2] - first.i[2]}};
    return [this, node](int e) {
      if (box.holds_first && e != 13 && (box.is_held(node) || box.is_held(box.root(TiedBox::beside(node, e)))))
        return 0.0;
      double sum = -0.0;
      box.for_images(node, [&](box_rows::Node const& image) {
        if (box.holds(TiedBox::beside(image, e)))
          sum += rows.of(image)(e);
      });
      return sum;
    };
  }
};

/// b_i less what the jumps bring: A g, where g has the jumps of tied nodes.
[[nodiscard]] POISSON_HOST_DEVICE inline double without_jumps(TiedBox const& box, HalfRows const& rows, box_rows::Node const& node,
                                                              double b) {
  if (box.is_dirichlet(node))
    return b;
  auto const entry = rows.of(node);
  for (int e = 0; e < 27; ++e)
    if (box_rows::Node const other = TiedBox::beside(node, e); box.holds(other))
      if (double const jump = box.jump_at(other); jump != 0 && !box.is_dirichlet(other))
        b -= entry(e) * jump;
  return b;
}
/// Puts the folded row of a node that others are tied to in place of its row, without couplings beyond the box or with tied nodes.
/// Reads rows of the node and of those tied to it alone. `values` may be null.
POISSON_HOST_DEVICE inline void fold_row(TiedBox const& box, box_rows::Node const& node, double* values, double* b) {
  if (box.is_tied(node) || !box.has_tied(node))
    return;
  std::int64_t const row = box.row(node);
  double load = 0;
  box.for_images(node, [&](box_rows::Node const& image) { load += b[box.row(image)]; });
  b[row] = load;
  if (values == nullptr)
    return;
  FoldedRows const rows(box, values);
  auto const entry = rows.of(node);
  for (int e = 0; e <= 13; ++e)
    if (box_rows::Node const other = TiedBox::beside(node, e); box.holds(other) && !box.is_tied(other))
      values[(13 - e) * box.n() + row] = entry(e);
}
/// Takes couplings with tied nodes, and with one that is held, out of the row of a node.
POISSON_HOST_DEVICE inline void clear_ties(TiedBox const& box, box_rows::Node const& node, double* values, double* b) {
  bool const tied = box.is_tied(node), held = box.is_held(node);
  std::int64_t const row = box.row(node);
  if (tied)
    b[row] = 0;
  bool const near_held = box.holds_first && node.i[0] <= 1 && node.i[1] <= 1 && node.i[2] <= 1;
  if (values == nullptr || (!near_held && !box.is_near_tied(node)))
    return;
  for (int e = 0; e < 13; ++e)
    if (box_rows::Node const other = TiedBox::beside(node, e); box.holds(other)) {
      if (tied || box.is_tied(other))
        values[(13 - e) * box.n() + row] = -0.0;
      else if (held || box.is_held(other))
        values[(13 - e) * box.n() + row] = 0;
    }
}
/// u at a tied node from that at its root.
POISSON_HOST_DEVICE inline void set_tied(TiedBox const& box, box_rows::Node const& node, double* u) {
  if (box.is_tied(node))
    u[box.row(node)] = u[box.row(box.root(node))] + box.jump_at(node);
}

/// Where couplings go, in CSR: see BlockRimKernels::fill.
struct Couplings {
  std::int32_t* rows;
  std::int64_t* row_ptr;
  std::int32_t* columns;
  double* values;
};

/// Fills row t. Returns whether its values are finite.
template <class Rows>
[[nodiscard]] POISSON_HOST_DEVICE inline bool fill_row(BlockRim const& rim, Rows const& rows, std::int64_t t, Couplings const& to) {
  box_rows::Node const node = rim(t);
  std::int64_t at = rim.couplings_before(node);
  to.rows[t] = static_cast<std::int32_t>(rim.row(node));
  to.row_ptr[t] = at;
  auto const entry = rows.of(node);
  bool finite = true;
  rim.for_ghosts(node, [&](std::int64_t ghost, int e) {
    double const value = entry(e);
    to.columns[at] = static_cast<std::int32_t>(ghost);
    to.values[at++] = value;
    finite = finite && value - value == 0;
  });
  return finite;
}

/// The residual in row t of the rim. `rows` are those of the block alone.
template <class Rows>
[[nodiscard]] POISSON_HOST_DEVICE inline double residual(BlockRim const& rim, Rows const& rows, CsrView const& couplings,
                                                         std::int64_t t, double const* x, double const* x_low, double b) {
  AccurateSum sum(b);
  auto const add = [&](double value, std::int64_t column) {
    sum.add_product(-value, x[column]);
    if (x_low != nullptr)
      sum.add_product(-value, x_low[column]);
  };
  box_rows::Node const node = rim(t);
  auto const entry = rows.of(rim.in_block(node));
  rim.for_own(node, [&](std::int64_t column, int e) { add(entry(e), column); });
  for (std::int64_t e = couplings.row_ptr[t]; e < couplings.row_ptr[t + 1]; ++e)
    add(couplings.values[e], rim.n_own() + couplings.columns[e]);
  return sum.value();
}

}  // namespace block_rim

/// What a rank makes of the matrix of the cells around its block of a box. Pointers are in the backend's memory; on a device calls
/// enqueue work. Matrices are matrix-free, or diagonals of half_stencil on a box of `nodes`.
class BlockRimKernels {
public:
  virtual ~BlockRimKernels() = default;

  /// Fills the couplings of the rim with ghosts, in CSR: rows[t] is the own row of row t, the columns are ghosts. `around` is the
  /// matrix of the cells around. *not_finite becomes the lowest own row with a value that is not finite, where that is less than
  /// what it holds. Arrays: size(), size() + 1, n_couplings() and n_couplings() entries.
  virtual void fill(Context& context, BlockRim const& rim, BoxStencilView const& around, block_rim::Couplings const& to,
                    std::int64_t* not_finite) const = 0;
  virtual void fill(Context& context, BlockRim const& rim, std::array<std::int64_t, 3> const& nodes, double const* around,
                    block_rim::Couplings const& to, std::int64_t* not_finite) const = 0;

  /// The same of a box that repeats itself: its ghosts are images of own nodes.
  virtual void fill(Context& context, BlockRim const& rim, block_rim::FoldedRows const& rows, block_rim::Couplings const& to,
                    std::int64_t* not_finite) const = 0;

  /// Makes the block of own rows of such a box, in place, from the diagonals `values` of the matrix without ties, and its
  /// right-hand side, where tied nodes get 0. Without `values` only that, and jumps must be 0. One pass over few rows.
  virtual void fold(Context& context, block_rim::TiedBox const& box, double* values, double* b) const = 0;
  /// Gives tied nodes of such a box the values of those that they are tied to, and the jump.
  virtual void set_tied(Context& context, block_rim::TiedBox const& box, double* u) const = 0;

  /// r = b - A (x + x_low) in the rows of the rim, rounded at the end: accurate sums, which products do not use. `block` is the
  /// matrix of own rows among themselves. x and x_low have the ghosts after own rows; x_low may be null.
  virtual void residual(Context& context, BlockRim const& rim, BoxStencilView const& block, CsrView const& couplings,
                        double const* x, double const* x_low, double const* b, double* r) const = 0;
  virtual void residual(Context& context, BlockRim const& rim, std::array<std::int64_t, 3> const& nodes, double const* block,
                        CsrView const& couplings, double const* x, double const* x_low, double const* b, double* r) const = 0;

  /// Fills the rows of nodes on faces of `block`, laid out as BoxStencilView::face_rows, with those that they have in the box
  /// around, without couplings beyond the block. `offset` is the place there of its first node. 27 numbers there and back.
  virtual void fill_face_rows(Context& context, BoxStencilView const& around, BoxElements const& block,
                              std::array<std::int64_t, 3> const& offset, double* rows) const = 0;

  static BlockRimKernels const& cpu();
  static BlockRimKernels const& cuda();
};

}  // namespace poisson
