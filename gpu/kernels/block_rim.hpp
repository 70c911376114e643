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
  /// `dirichlet`: the faces of places.around() whose nodes have Dirichlet values. Precondition: no more than 26 ranks have ghosts.
  BlockRim(BlockPlaces const& places, std::array<bool, 6> const& dirichlet);

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
  Nodes rows_, inner_;  ///< own rows that have none; those of them that are coupled with no ghost
  int n_ghosts_ = 0;    ///< ranks that have ghosts
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

  HalfRows(std::array<std::int64_t, 3> const& nodes, double const* diagonals)
      : values(diagonals), n(nodes[0] * nodes[1] * nodes[2]), line(nodes[0]), plane(nodes[0] * nodes[1]) {}
  [[nodiscard]] POISSON_HOST_DEVICE auto of(box_rows::Node const& node) const {
    std::int64_t const row = node.i[2] * plane + node.i[1] * line + node.i[0];
    return [this, row](int e) {  // upper entries are stored in the other rows
      return e <= 13 ? values[(13 - e) * n + row] : values[(e - 13) * n + row + half_stencil::offset(e - 13, line, plane)];
    };
  }
};

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
