#pragma once

#include "gpu/core/dot_sum.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/kernels/element_tables.hpp"
#include "gpu/kernels/lattice_elements.hpp"
#include "gpu/kernels/lattice_places.hpp"
#include "gpu/kernels/product.hpp"

#include <cmath>
#include <cstdint>
#include <functional>

namespace poisson {

/// The tensors of the cells of a box (LatticeLayout) where k is diagonal: entry c at point q is w_q h_x h_y h_z / h_c^2 k_c with
/// the edges h of the cell and the weights w of the quadrature. Only k is stored.
struct BoxTensors {
  double const* edges[3] = {};     ///< h of the cells in a direction
  double weight[max_points] = {};  ///< of the points of one direction
  CoefficientPlaces k{};           ///< where k is, in the view's values
};

/// The matrix of elements of order p on a mesh of lattices, as tensors at Gauss points. Cells and points are numbered as in
/// LatticeElements. Rows and columns of unknowns with Dirichlet values keep their diagonal entry only.
struct LatticeOperatorView {
  LatticeView lattices;
  double const* values = nullptr;      ///< tensors in batches (LatticeTensors); cells of the last batch that do not exist have 0.
                                       ///< Where stores_k(), k alone
  BoxTensors box{};                    ///< on a box
  double const* low_values = nullptr;  ///< null: see stored_values
  float const* single_values = nullptr;
  std::uint8_t const* fixed = nullptr;  ///< of unknowns on rims: 1 where there is a Dirichlet value; null: nothing is eliminated
  double const* diagonal = nullptr;     ///< a_ii of all rows
  std::int32_t const* mass_faces = nullptr;  ///< 6 lattice + face, of the faces with Robin conditions, by their number
  std::int32_t n_mass_faces = 0;
  double const* face_mass = nullptr;  ///< see LatticeElements
  /// Products on the lattices of one rank call after_cells between their steps, when element vectors are made (on a device:
  /// enqueued).
  std::function<void()> const* after_cells = nullptr;

  /// Whether k is stored in place of tensors: on a box where it is diagonal.
  [[nodiscard]] POISSON_HOST_DEVICE bool stores_k() const { return box.k.components > 0; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t cells_of_lattice() const {
    return std::int64_t{lattices.cells} * lattices.cells * lattices.cells;
  }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_cells() const { return lattices.n_lattices * cells_of_lattice(); }
  /// Returns the distance from one node of element vectors to the next.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t stride() const { return LatticeTensors::padded(n_cells()); }
  [[nodiscard]] POISSON_HOST_DEVICE int points_of_direction() const { return lattices.order + 1; }
  [[nodiscard]] POISSON_HOST_DEVICE int points() const {  ///< Q, of a cell; and its nodes
    return points_of_direction() * points_of_direction() * points_of_direction();
  }
  [[nodiscard]] POISSON_HOST_DEVICE bool is_fixed(std::int64_t unknown) const {
    std::int64_t const on_rim = unknown - lattices.n_inner();
    return on_rim >= 0 && fixed != nullptr && fixed[on_rim] != 0;
  }
};

/// Products in two steps. First every cell makes an element vector of its own from x, by sum factorisation: values at Gauss points
/// by one-dimensional interpolation, their derivatives by collocation, the tensors, and the transposes. Node a of a cell is at
/// [a stride + cell] of the context's buffer for partial sums. Faces with Robin conditions add to it. Then each row gathers from
/// the cells around its node, in a fixed order. The dot is x . A x = the sum of gradients times fluxes at all points, and of a_ii
/// x_i^2 over unknowns with Dirichlet values; so it is never negative but for rounding. Bytes of a cell: 48 Q (24 Q where tensors
/// are in single; where k is stored 8 or 24 Q where that varies in cells, else as good as nothing), x and y, and 16 Q for element
/// vectors in double.
class LatticeOperatorKernels : public ProductKernels<LatticeOperatorView> {
public:
  /// out_i = the sum of vectors[a stride + cell] over the nodes that are unknown i, Dirichlet values or not.
  virtual void gather(Context& context, LatticeOperatorView const& a, double const* vectors, double* out) const = 0;
  /// What the last product in T with `a`, or the last residual, added up at n unknowns on rims from `first` on, which need not be
  /// rows; 0 where there is a Dirichlet value. For lattices that are not all. No other work with the context's buffer may be in
  /// between.
  virtual void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n,
                            float* out) const = 0;
  virtual void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n,
                            double* out) const = 0;
  virtual void sums_on_rims(Context& context, LatticeOperatorView const& a, std::int64_t first, std::int64_t n,
                            DoubleDouble* out) const = 0;
  /// d_i = a_ii, without the view's `diagonal`. Precondition: tensors are in double.
  virtual void diagonal(Context& context, LatticeOperatorView const& a, double* d) const = 0;
  /// r = b - A (x + x_low) in DoubleDouble, rounded at the end, by derivatives of all functions instead of collocation: shares no
  /// loop with the products. x_low may be null. Precondition: tensors are in double.
  virtual void residual(Context& context, LatticeOperatorView const& a, double const* x, double const* x_low, double const* b,
                        double* r) const = 0;

  static LatticeOperatorKernels const& cpu();
  static LatticeOperatorKernels const& cuda();
};

/// What both backends do cell by cell and node by node.
namespace lattice_cells {

/// Tables and tensors as they are multiplied by numbers of T.
template <class T>
using Real = std::conditional_t<std::is_same_v<T, float>, float, double>;

/// A sum of products in the arithmetic T, of float in float.
template <class T>
struct Sum : DotSum<T> {};
template <>
struct Sum<float> {
  float sum;
  POISSON_HOST_DEVICE void add(float a, float b) { sum = std::fma(a, b, sum); }
  [[nodiscard]] POISSON_HOST_DEVICE float value() const { return sum; }
};
/// One that begins with v.
[[nodiscard]] inline POISSON_HOST_DEVICE Sum<float> begin_sum(float v) {
  return {v};
}
[[nodiscard]] inline POISSON_HOST_DEVICE Sum<double> begin_sum(double v) {
  return {{v}};
}
[[nodiscard]] inline POISSON_HOST_DEVICE Sum<DoubleDouble> begin_sum(DoubleDouble v) {
  return {{v.hi, v.lo}};
}

/// A cell, or a node, of a lattice.
struct Place {
  std::int32_t lattice, i[3];
};
[[nodiscard]] inline POISSON_HOST_DEVICE Place cell_place(LatticeOperatorView const& a, std::int64_t cell) {
  auto const n = static_cast<std::uint32_t>(a.lattices.cells), of_lattice = static_cast<std::uint32_t>(a.cells_of_lattice());
  auto const number = static_cast<std::uint32_t>(cell);
  std::uint32_t const lattice = number / of_lattice, in_lattice = number - lattice * of_lattice, line = in_lattice / n;
  return {
      static_cast<std::int32_t>(lattice),
      {static_cast<std::int32_t>(in_lattice - line * n), static_cast<std::int32_t>(line % n), static_cast<std::int32_t>(line / n)}};
}
/// The unknown of node (i, j, k) of a cell.
[[nodiscard]] inline POISSON_HOST_DEVICE std::int64_t unknown_of(LatticeView const& lattices, Place const& cell, int i, int j,
                                                                 int k) {
  std::int32_t const p = lattices.order;
  return lattices.unknown(cell.lattice, p * cell.i[0] + i, p * cell.i[1] + j, p * cell.i[2] + k);
}
/// What the tensors of a cell of a box have in common. Products are in the order of lattice_rows::tensor_of, so that a rank, which
/// stores tensors, multiplies by the same numbers.
struct BoxCell {
  double factor[3];  ///< of k: h_x h_y h_z / h_c^2

  POISSON_HOST_DEVICE BoxCell(LatticeOperatorView const& a, std::int64_t cell) {
    LatticeView::InBox const at = a.lattices.box_cell(cell);
    double h[3];
    for (int d = 0; d < 3; ++d)
      h[d] = a.box.edges[d][at.i[d]];
    double const c[3] = {h[1] * h[2], h[0] * h[2], h[0] * h[1]}, inverse = 1 / (h[0] * c[0]);
    for (int d = 0; d < 3; ++d)
      factor[d] = c[d] * c[d] * inverse;
  }
};
/// The weight of point q of a cell of a box.
[[nodiscard]] inline POISSON_HOST_DEVICE double box_weight(LatticeOperatorView const& a, int q) {
  int const n1 = a.points_of_direction();
  return a.box.weight[q % n1] * a.box.weight[q / n1 % n1] * a.box.weight[q / (n1 * n1)];
}
/// The tensor at point q of a cell, from what is stored: xx, yy, zz, xy, xz, yz. Of cells that do not exist, in the last batch, it
/// is 0.
template <class Stored>
POISSON_HOST_DEVICE void tensor_at(LatticeOperatorView const& a, Stored const* stored, std::int64_t cell, int q, double (&d)[6]) {
  if (!a.stores_k()) {
    LatticeTensors::Place const place = LatticeTensors::in_batch(a.points(), cell);
    POISSON_UNROLL
    for (int c = 0; c < 6; ++c)
      d[c] = static_cast<double>(stored[place.first + q * place.of_point + c * place.of_entry]);
    return;
  }
  bool const exists = cell < a.n_cells();
  BoxCell const box(a, exists ? cell : 0);
  double const weight = exists ? box_weight(a, q) : 0;
  POISSON_UNROLL
  for (int c = 0; c < 3; ++c) {
    d[c] = weight * (box.factor[c] * static_cast<double>(stored[a.box.k.at(exists ? cell : 0, q, c)]));
    d[c + 3] = 0;
  }
}

/// x at an unknown, 0 where it has a Dirichlet value.
template <class T>
[[nodiscard]] POISSON_HOST_DEVICE T free_entry(LatticeOperatorView const& a, ConstPointer<T> x, std::int64_t unknown) {
  return a.is_fixed(unknown) ? T(0) : load(x, unknown);
}

/// Calls visit(cell, a) for the cells of a lattice around one of its nodes, by ascending number; it is node a of that cell.
template <class Visit>
POISSON_HOST_DEVICE void for_cells_around(LatticeOperatorView const& view, std::int64_t lattice, std::int32_t i, std::int32_t j,
                                          std::int32_t k, Visit const& visit) {
  std::int32_t const p = view.lattices.order, n = view.lattices.cells, n1 = p + 1;
  std::int32_t const node[3] = {i, j, k};
  std::int32_t first[3], count[3];  // cells of each direction
  for (int d = 0; d < 3; ++d) {
    std::int32_t const own = node[d] / p;
    bool const between = node[d] % p == 0;
    first[d] = between && own > 0 ? own - 1 : own;
    count[d] = between && own > 0 && own < n ? 2 : 1;
  }
  for (std::int32_t z = first[2]; z < first[2] + count[2]; ++z)
    for (std::int32_t y = first[1]; y < first[1] + count[1]; ++y)
      for (std::int32_t x = first[0]; x < first[0] + count[0]; ++x)
        visit(((lattice * n + z) * n + y) * n + x, ((k - p * z) * n1 + j - p * y) * n1 + i - p * x);
}

/// The sum of what element vectors hold for an unknown on rims.
template <class T>
[[nodiscard]] POISSON_HOST_DEVICE T gathered_on_rim(LatticeOperatorView const& a, ConstPointer<T> vectors, std::int64_t unknown) {
  T sum = 0;
  std::int64_t const stride = a.stride();
  if (a.lattices.is_box()) {
    std::int32_t const n1 = a.lattices.order + 1;
    for_nodes_in_box(a.lattices, unknown, [&](std::int64_t cell, std::int32_t i, std::int32_t j, std::int32_t k) {
      sum = sum + load(vectors, ((k * n1 + j) * n1 + i) * stride + cell);
    });
    return sum;
  }
  if (a.lattices.all_on_rim) {  // a lattice is a cell, and its nodes are listed in the order of the cell's
    std::int64_t const i = unknown - a.lattices.n_inner();
    auto const nodes = static_cast<std::uint32_t>(a.lattices.nodes_of_lattice());
    for (std::int64_t e = a.lattices.copy_offsets[i]; e < a.lattices.copy_offsets[i + 1]; ++e) {
      auto const place = static_cast<std::uint32_t>(a.lattices.copies[e]), cell = place / nodes;
      sum = sum + load(vectors, (place - cell * nodes) * stride + cell);
    }
    return sum;
  }
  for_nodes_of(a.lattices, unknown, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
    for_cells_around(a, lattice, i, j, k,
                     [&](std::int64_t cell, std::int32_t node) { sum = sum + load(vectors, node * stride + cell); });
  });
  return sum;
}

/// A cell at a face with a Robin condition. Points and nodes of the face are numbered in the directions u and v, u fastest.
struct FaceCell {
  Place cell;
  int face, u, v;

  /// Node t of the face, as a node of the cell.
  POISSON_HOST_DEVICE void node(int order, int t, int (&i)[3]) const {
    i[face / 2] = face % 2 == 0 ? 0 : order;
    i[u] = t % (order + 1);
    i[v] = t / (order + 1);
  }
};
/// Cell number c, n cells v + u, of the face with number `number`.
[[nodiscard]] inline POISSON_HOST_DEVICE FaceCell face_cell(LatticeOperatorView const& a, std::int32_t number, std::int32_t c) {
  std::int32_t const n = a.lattices.cells;
  FaceCell result{{a.mass_faces[number] / 6, {0, 0, 0}}, a.mass_faces[number] % 6, 0, 0};
  result.u = (result.face / 2 + 1) % 3;
  result.v = (result.face / 2 + 2) % 3;
  result.cell.i[result.face / 2] = result.face % 2 == 0 ? 0 : n - 1;
  result.cell.i[result.u] = c % n;
  result.cell.i[result.v] = c / n;
  return result;
}
[[nodiscard]] inline POISSON_HOST_DEVICE std::int64_t cell_number(LatticeOperatorView const& a, Place const& cell) {
  std::int64_t const n = a.lattices.cells;
  return ((cell.lattice * n + cell.i[2]) * n + cell.i[1]) * n + cell.i[0];
}
/// The function of node t of a face at its point q.
[[nodiscard]] inline POISSON_HOST_DEVICE double face_value(ElementTables const& tables, int t, int q) {
  int const n1 = tables.points();
  return tables.value[q % n1][t % n1] * tables.value[q / n1][t / n1];
}
/// At point q of a face the weight times alpha times what the nodes' values make there.
template <class T, class Value>
[[nodiscard]] POISSON_HOST_DEVICE T face_flux(ElementTables const& tables, int q, double mass, Value const& value_at, T& at_point) {
  int const n1 = tables.points();
  Sum<T> sum{};
  for (int v = 0; v < n1; ++v) {
    Sum<T> line{};
    for (int u = 0; u < n1; ++u)
      line.add(static_cast<Real<T>>(tables.value[q % n1][u]), value_at(v * n1 + u));
    sum.add(static_cast<Real<T>>(tables.value[q / n1][v]), line.value());
  }
  at_point = sum.value();
  return static_cast<T>(static_cast<Real<T>>(mass) * at_point);
}
/// What fluxes at the points of a face add to node t.
template <class T, class Flux>
[[nodiscard]] POISSON_HOST_DEVICE T face_term(ElementTables const& tables, int t, Flux const& flux_at) {
  int const n1 = tables.points();
  Sum<T> sum{};
  for (int v = 0; v < n1; ++v) {
    Sum<T> line{};
    for (int u = 0; u < n1; ++u)
      line.add(static_cast<Real<T>>(tables.value[u][t % n1]), flux_at(v * n1 + u));
    sum.add(static_cast<Real<T>>(tables.value[v][t / n1]), line.value());
  }
  return sum.value();
}

/// Contributions of tensors at a point to the diagonal, for node a: the squares and products of derivatives of its function. In the
/// order of the entries of a tensor, those off the diagonal twice.
inline POISSON_HOST_DEVICE void diagonal_weights(ElementTables const& tables, SquareTable const& derivative, int a, int q,
                                                 double (&weights)[6]) {
  int const n1 = tables.points();
  int const qs[3] = {q % n1, q / n1 % n1, q / (n1 * n1)}, as[3] = {a % n1, a / n1 % n1, a / (n1 * n1)};
  double v[3], g[3];
  for (int d = 0; d < 3; ++d) {
    v[d] = tables.value[qs[d]][as[d]];
    g[d] = derivative[qs[d]][as[d]];
  }
  double const x = g[0] * v[1] * v[2], y = v[0] * g[1] * v[2], z = v[0] * v[1] * g[2];
  weights[0] = x * x;
  weights[1] = y * y;
  weights[2] = z * z;
  weights[3] = 2 * x * y;
  weights[4] = 2 * x * z;
  weights[5] = 2 * y * z;
}

/// Derivatives of functions of one direction without rounding errors worth mentioning: see ElementTables.
struct AccurateTables {
  ElementTables element;
  SquareTable derivative{}, derivative_low{};
  [[nodiscard]] POISSON_HOST_DEVICE DoubleDouble slope(int q, int a) const { return {derivative[q][a], derivative_low[q][a]}; }
};
[[nodiscard]] inline AccurateTables accurate_tables(std::int32_t order) {
  AccurateTables tables{element_tables(order), {}, {}};
  auto const n1 = static_cast<std::size_t>(order + 1);
  for (std::size_t q = 0; q < n1; ++q)
    for (std::size_t a = 0; a < n1; ++a) {
      DoubleDouble sum = 0;
      for (std::size_t r = 0; r < n1; ++r)
        sum = sum + two_prod(tables.element.collocation[q][r], tables.element.value[r][a]);
      tables.derivative[q][a] = sum.hi;
      tables.derivative_low[q][a] = sum.lo;
    }
  return tables;
}

/// The flux at point q of a cell of which values_at(a) gives the nodes' values: its tensor times the gradient.
template <class Values>
POISSON_HOST_DEVICE void accurate_flux(AccurateTables const& tables, int q, double const (&tensor)[6], Values const& value_at,
                                       DoubleDouble (&flux)[3]) {
  int const n1 = tables.element.points(), qx = q % n1, qy = q / n1 % n1, qz = q / (n1 * n1);
  DoubleDouble by_x = 0, by_y = 0, by_z = 0;
  for (int c = 0; c < n1; ++c) {
    DoubleDouble plane = 0, plane_by_x = 0, plane_by_y = 0;
    for (int b = 0; b < n1; ++b) {
      DoubleDouble line = 0, line_by_x = 0;
      for (int a = 0; a < n1; ++a) {
        DoubleDouble const value = value_at((c * n1 + b) * n1 + a);
        line = line + tables.element.value[qx][a] * value;
        line_by_x = line_by_x + tables.slope(qx, a) * value;
      }
      plane = plane + tables.element.value[qy][b] * line;
      plane_by_x = plane_by_x + tables.element.value[qy][b] * line_by_x;
      plane_by_y = plane_by_y + tables.slope(qy, b) * line;
    }
    by_x = by_x + tables.element.value[qz][c] * plane_by_x;
    by_y = by_y + tables.element.value[qz][c] * plane_by_y;
    by_z = by_z + tables.slope(qz, c) * plane;
  }
  double const xx = tensor[0], yy = tensor[1], zz = tensor[2], xy = tensor[3], xz = tensor[4], yz = tensor[5];
  flux[0] = xx * by_x + xy * by_y + xz * by_z;
  flux[1] = xy * by_x + yy * by_y + yz * by_z;
  flux[2] = xz * by_x + yz * by_y + zz * by_z;
}
/// What fluxes at the points of a cell add to node a: flux_at(d, q) is component d at point q.
template <class Flux>
[[nodiscard]] POISSON_HOST_DEVICE DoubleDouble accurate_term(AccurateTables const& tables, int a, Flux const& flux_at) {
  int const n1 = tables.element.points(), ax = a % n1, ay = a / n1 % n1, az = a / (n1 * n1);
  DoubleDouble sum = 0;
  for (int z = 0; z < n1; ++z) {
    DoubleDouble plane = 0, plane_of_z = 0;
    for (int y = 0; y < n1; ++y) {
      DoubleDouble line = 0, line_of_y = 0, line_of_z = 0;
      for (int x = 0; x < n1; ++x) {
        int const q = (z * n1 + y) * n1 + x;
        line = line + tables.slope(x, ax) * flux_at(0, q);
        line_of_y = line_of_y + tables.element.value[x][ax] * flux_at(1, q);
        line_of_z = line_of_z + tables.element.value[x][ax] * flux_at(2, q);
      }
      plane = plane + tables.element.value[y][ay] * line + tables.slope(y, ay) * line_of_y;
      plane_of_z = plane_of_z + tables.element.value[y][ay] * line_of_z;
    }
    sum = sum + tables.element.value[z][az] * plane + tables.slope(z, az) * plane_of_z;
  }
  return sum;
}
/// What a Robin condition adds to node t of a face, of which value_at(s) gives the nodes' values; `mass` is that of its points.
template <class Values>
[[nodiscard]] POISSON_HOST_DEVICE DoubleDouble accurate_face_term(ElementTables const& tables, double const* mass, int t,
                                                                  Values const& value_at) {
  int const n1 = tables.points();
  auto const function = [&](int s, int q) { return two_prod(tables.value[q % n1][s % n1], tables.value[q / n1][s / n1]); };
  DoubleDouble sum = 0;
  for (int q = 0; q < n1 * n1; ++q) {
    DoubleDouble at_point = 0;
    for (int s = 0; s < n1 * n1; ++s)
      at_point = at_point + function(s, q) * value_at(s);
    sum = sum + function(t, q) * (mass[q] * at_point);
  }
  return sum;
}
/// A row of LatticeOperatorKernels::residual from the element vectors of A (x + x_low).
[[nodiscard]] inline POISSON_HOST_DEVICE double residual_of_row(LatticeOperatorView const& a, std::int64_t row,
                                                                ConstPointer<DoubleDouble> vectors, double const* x,
                                                                double const* x_low, double b) {
  DoubleDouble sum = b;
  if (a.is_fixed(row)) {
    sum = sum - two_prod(a.diagonal[row], x[row]);
    return x_low == nullptr ? sum.hi : (sum - two_prod(a.diagonal[row], x_low[row])).hi;
  }
  std::int64_t const stride = a.stride();
  for_nodes_of(a.lattices, row, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
    for_cells_around(a, lattice, i, j, k,
                     [&](std::int64_t cell, std::int32_t node) { sum = sum - load(vectors, node * stride + cell); });
  });
  return sum.hi;
}

}  // namespace lattice_cells

}  // namespace poisson
