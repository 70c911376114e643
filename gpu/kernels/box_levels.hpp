#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/columns.hpp"
#include "gpu/kernels/half_cds.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace poisson {

/// A level of multigrid on a box: its nodes, x fastest, and a symmetric matrix by the diagonals of half_stencil, laid out as
/// HalfCdsView says. `free`: 1 for unknowns that are coupled to others; the rest (Dirichlet values) only have their diagonal entry.
template <class V>
struct BoxLevel {
  std::int32_t nodes[3] = {1, 1, 1};
  V const* values = nullptr;
  std::uint8_t const* free = nullptr;

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n() const { return std::int64_t{nodes[0]} * nodes[1] * nodes[2]; }
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t number(std::int32_t i, std::int32_t j, std::int32_t k) const {
    return (std::int64_t{k} * nodes[1] + j) * nodes[0] + i;
  }
};

/// BoxCoarsening says how one level leads to the next. In a direction that is halved every second node stays, and the last one;
/// those between are interpolated. So cells may be of any number; an odd one leaves a last cell as it is. Of two nodes the first
/// stays. `weights` is P by its columns: weights[s * n_coarse + c] with s = 13 + 9 dz + 3 dy + dx is the weight with which the fine
/// node at that distance from the place of coarse node c depends on c; 0 where it does not.
///
/// Where `weights` is null P is linear interpolation between coarse nodes that are not on a face with `held` (-x +x -y +y -z +z).
/// Directions that are halved then have an even number of cells, and vectors are 0 at nodes on such faces.
template <class V>
struct BoxCoarsening {
  bool halved[3] = {false, false, false};
  V const* weights = nullptr;
  bool held[6] = {false, false, false, false, false, false};

  [[nodiscard]] static constexpr std::int32_t coarse_nodes(std::int32_t fine) { return fine == 2 ? 1 : fine / 2 + 1; }
};

/// What the choice of the next level and of the smoother needs.
struct BoxLevelAnalysis {
  /// `coupling` is, for each direction, minus the sum of all entries that couple a plane of nodes with the next. For a box of cells
  /// hx x hy x hz and k that is the integral of k_d / h_d^2.
  std::array<double, 3> coupling{};
  double largest = 0;  ///< an estimate, from above where coefficients are smooth, of the largest eigenvalue of D^-1 A
  double bound = 0;    ///< a bound of it: max_i sum_j |a_ij| / a_ii
};

/// What multigrid on boxes consists of, but for products and smoothers, in the arithmetic V: float or double. Vectors have an entry
/// for every node of a level. P interpolates as the matrix asks for (Dendy 1982, "Black box multigrid"): a node between two coarse
/// ones takes the value that its row, summed over the other directions, gives it; one on a face or inside a cell then follows from
/// those around it. Where coefficients are constant that is linear interpolation. Entries of unknowns that are not free are 0, in
/// rows and in columns. On a device calls enqueue work.
template <class V>
class BoxLevelKernels {
public:
  virtual ~BoxLevelKernels() = default;
  /// Analyses the level, and writes its `free`. Waits for the result.
  virtual BoxLevelAnalysis analyse(Context& context, BoxLevel<V> const& level, std::uint8_t* free) const = 0;
  /// z_i = 1 / sqrt(diagonal_i). Two numbers a row.
  virtual void inverse_roots(Context& context, std::int64_t n, V const* diagonal, V* z) const = 0;
  /// y = D^-1 |A| z, where z > 0, and the largest y_i / z_i: no eigenvalue of D^-1 A is larger (Collatz 1942). Waits for the
  /// result. 14 diagonals, z and y: 16 numbers a row.
  virtual double bound(Context& context, BoxLevel<V> const& level, V const* z, V* y) const = 0;
  /// P, `free` of the coarse level, which is that of the fine node at the same place, and P^T A P, by sums in double.
  virtual void coarsen(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                       V* weights, std::uint8_t* free, V* values) const = 0;

  /// b = P^T r and x = factor D^-1 b, unless *stop is set. P may be linear interpolation, here and in `prolong`. A node of the
  /// finer level then moves an eighth of four numbers, and its r, or x twice; with weights 27 eighths of a number more.
  virtual void restrict_residual(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening,
                                 BoxLevel<V> const& coarse, V const* r, V const* diagonal, V factor, V* b, V* x,
                                 std::int32_t const* stop) const = 0;
  /// x += P e, unless *stop is set.
  virtual void prolong(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                       V const* e, V* x, std::int32_t const* stop) const = 0;

  /// The same for 1 to most_columns columns, with the same bits. On a device weights are read from memory once for all.
  virtual void restrict_residuals(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening,
                                  BoxLevel<V> const& coarse, V const* diagonal, V factor,
                                  std::span<RestrictedColumn<V> const> columns) const {
    for (RestrictedColumn<V> const& column : columns)
      restrict_residual(context, fine, coarsening, coarse, column.r, diagonal, factor, column.b, column.x, column.stop);
  }
  virtual void prolong_all(Context& context, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                           std::span<ProlongedColumn<V> const> columns) const {
    for (ProlongedColumn<V> const& column : columns)
      prolong(context, fine, coarsening, coarse, column.e, column.x, column.stop);
  }

  static BoxLevelKernels const& cpu();
  static BoxLevelKernels const& cuda();
};

template <>
BoxLevelKernels<float> const& BoxLevelKernels<float>::cpu();
template <>
BoxLevelKernels<float> const& BoxLevelKernels<float>::cuda();
template <>
BoxLevelKernels<double> const& BoxLevelKernels<double>::cpu();
template <>
BoxLevelKernels<double> const& BoxLevelKernels<double>::cuda();

/// What both backends do node by node.
namespace box_levels {

/// The coarse nodes of a direction that a fine one depends on: one at its place, or one on each side.
struct Parents {
  std::int32_t first;
  int count;
};
[[nodiscard]] inline POISSON_HOST_DEVICE Parents parents(bool halved, std::int32_t fine_nodes, std::int32_t i) {
  if (!halved || fine_nodes == 2)
    return {halved ? 0 : i, 1};
  return {i / 2 + (i % 2 != 0 && i == fine_nodes - 1 ? 1 : 0), i % 2 == 0 || i == fine_nodes - 1 ? 1 : 2};
}
/// The fine node at the place of a coarse one.
[[nodiscard]] inline POISSON_HOST_DEVICE std::int32_t fine_node(bool halved, std::int32_t fine_nodes, std::int32_t c) {
  return !halved ? c : 2 * c < fine_nodes ? 2 * c : fine_nodes - 1;
}
/// The entry between a node and its neighbour at (dx, dy, dz), 0 beyond the box.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V entry(BoxLevel<V> const& a, std::int32_t i, std::int32_t j, std::int32_t k, int dx, int dy,
                                          int dz) {
  std::int32_t const i2 = i + dx, j2 = j + dy, k2 = k + dz;
  if (i2 < 0 || j2 < 0 || k2 < 0 || i2 >= a.nodes[0] || j2 >= a.nodes[1] || k2 >= a.nodes[2])
    return 0;
  int const s = 9 * dz + 3 * dy + dx;  // -13 .. 13
  return s <= 0 ? a.values[-s * a.n() + a.number(i, j, k)] : a.values[s * a.n() + a.number(i2, j2, k2)];
}

struct RowAnalysis {
  double coupling[3] = {0, 0, 0};
  float largest = 0, bound = 0;
  bool free = false;
};
/// The symbol of the row's stencil at the eight frequencies 0 or pi in every direction is largest where it is that for any
/// frequency, if the stencil is symmetric in each direction.
/// entry(dx, dy, dz): between the node and its neighbours.
template <class V, class Entry>
[[nodiscard]] POISSON_HOST_DEVICE RowAnalysis analyse_row(Entry const& entry) {
  RowAnalysis result;
  V symbol[8] = {0, 0, 0, 0, 0, 0, 0, 0}, coupling[3] = {0, 0, 0}, others = 0;
  POISSON_UNROLL
  for (int dz = -1; dz <= 1; ++dz)
    POISSON_UNROLL
  for (int dy = -1; dy <= 1; ++dy)
    POISSON_UNROLL
  for (int dx = -1; dx <= 1; ++dx) {
    V const v = entry(dx, dy, dz);
    others += dx == 0 && dy == 0 && dz == 0 ? V(0) : v < 0 ? -v : v;
    coupling[0] -= dx == 1 ? v : V(0);
    coupling[1] -= dy == 1 ? v : V(0);
    coupling[2] -= dz == 1 ? v : V(0);
    symbol[(dx & 1) + 2 * (dy & 1) + 4 * (dz & 1)] += v;  // as yet sums of what has the same sign for all frequencies
  }
  POISSON_UNROLL
  for (int bit = 1; bit < 8; bit *= 2)
    POISSON_UNROLL
  for (int f = 0; f < 8; ++f)
    if ((f & bit) == 0) {
      V const even = symbol[f], odd = symbol[f + bit];
      symbol[f] = even + odd;
      symbol[f + bit] = even - odd;
    }
  V const diagonal = entry(0, 0, 0);
  result.free = others > 0;
  for (int d = 0; d < 3; ++d)
    result.coupling[d] = static_cast<double>(coupling[d]);
  POISSON_UNROLL
  for (V const s : symbol)
    if (auto const ratio = static_cast<float>(s / diagonal); ratio > result.largest)
      result.largest = ratio;
  result.bound = static_cast<float>((others + (diagonal < 0 ? -diagonal : diagonal)) / diagonal);
  return result;
}

template <class V>
[[nodiscard]] POISSON_HOST_DEVICE RowAnalysis analyse_row(BoxLevel<V> const& a, std::int32_t i, std::int32_t j, std::int32_t k) {
  return analyse_row<V>([&](int dx, int dy, int dz) { return entry(a, i, j, k, dx, dy, dz); });
}

/// (|A| z)_i / a_ii.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V absolute_row(BoxLevel<V> const& a, std::int32_t i, std::int32_t j, std::int32_t k, V const* z) {
  V sum = 0;
  for (int dz = -1; dz <= 1; ++dz)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx)
        if (V const v = entry(a, i, j, k, dx, dy, dz); v != 0)
          sum += (v < 0 ? -v : v) * z[a.number(i + dx, j + dy, k + dz)];
  return sum / a.values[a.number(i, j, k)];
}

/// Whether fine node f + distance, with f the place of a coarse node, lies between that and another one (distance -1 or 1), or is
/// at its place (0).
[[nodiscard]] inline POISSON_HOST_DEVICE bool depends(bool halved, std::int32_t fine_nodes, std::int32_t f, int distance) {
  std::int32_t const i = f + distance;
  return distance == 0 || (halved && i > 0 && i % 2 != 0 && (i < fine_nodes - 1 || fine_nodes == 2));
}

/// The quotient, or the weight of linear interpolation where that makes no sense, because the row is not that of a diffusion in
/// these directions. Weights a little below 0 or above 1 do: they let those of a node sum up to 1.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V admissible_weight(V sum, V center, int between) {
  V const weight = sum / center;
  return center > 0 && weight >= V(-10) && weight <= V(10) ? weight : between == 1 ? V(0.5) : between == 2 ? V(0.25) : V(0.125);
}

/// One weight, for the fine node at `distance` from coarse node c, which is not its place. Those for nodes that lie between fewer
/// coarse ones are known. 0 where the node does not depend on c.
///
/// What the row has lost to Dirichlet values beside the node (the sum of its entries) does not belong into the sum over the other
/// directions: of two free neighbours both together have weight 1. That counts where a direction has an odd number of cells, whose
/// last node but one stays and is coupled to the face.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V interpolation_weight(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening,
                                                         BoxLevel<V> const& coarse, std::int32_t const (&c)[3],
                                                         int const (&distance)[3]) {
  std::int32_t i[3];
  int between = 0;
  for (int d = 0; d < 3; ++d) {
    std::int32_t const f = fine_node(coarsening.halved[d], fine.nodes[d], c[d]);
    if (!depends(coarsening.halved[d], fine.nodes[d], f, distance[d]))
      return 0;
    i[d] = f + distance[d];
    between += distance[d] != 0 ? 1 : 0;
  }
  std::int64_t const own = coarse.number(c[0], c[1], c[2]);
  if (fine.free[fine.number(i[0], i[1], i[2])] == 0 || coarse.free[own] == 0)
    return 0;
  // In directions in which the node is at a coarse one its row is summed up; in the others it sees c, or the nodes on the way to c.
  V center = 0, sum = 0, lost = 0;
  int const stride[3] = {1, 3, 9};
  bool between_free = true;
  for (int d = 0; d < 3; ++d)
    for (int side = -1; side <= 1; side += 2)
      if (distance[d] != 0) {
        std::int32_t neighbour[3] = {i[0], i[1], i[2]};
        neighbour[d] += side;
        between_free = between_free && neighbour[d] >= 0 && neighbour[d] < fine.nodes[d] &&
                       fine.free[fine.number(neighbour[0], neighbour[1], neighbour[2])] != 0;
      }
  for (int dz = -1; dz <= 1; ++dz)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        int const step[3] = {dx, dy, dz};
        bool here = true, towards = true;
        int left = 13;  // the place of that node among the weights of c
        for (int d = 0; d < 3; ++d)
          if (distance[d] != 0) {
            here = here && step[d] == 0;
            towards = towards && (step[d] == 0 || step[d] == -distance[d]);
            left += step[d] == 0 ? stride[d] * distance[d] : 0;
          }
        V const v = entry(fine, i[0], i[1], i[2], dx, dy, dz);
        lost += v;
        if (!towards)
          continue;
        if (here)
          center += v;
        else
          sum += left == 13 ? v : v * coarsening.weights[left * coarse.n() + own];
      }
  return admissible_weight(-sum, between_free ? center - lost : center, between);
}

/// The row of P^T A P of a coarse node that is free: entries by half_stencil.
template <class V>
POISSON_HOST_DEVICE void galerkin_row(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                                      std::int32_t const (&c)[3], double (&out)[14]) {
  std::int64_t const own = coarse.number(c[0], c[1], c[2]), n = coarse.n();
  std::int32_t f[3];
  for (int d = 0; d < 3; ++d)
    f[d] = fine_node(coarsening.halved[d], fine.nodes[d], c[d]);
  double sums[27];
  for (double& sum : sums)
    sum = 0;
  for (int place = 0; place < 27; ++place) {
    V const weight = coarsening.weights[place * n + own];
    if (weight == 0)
      continue;
    std::int32_t const i = f[0] + place % 3 - 1, j = f[1] + place / 3 % 3 - 1, k = f[2] + place / 9 - 1;
    for (int dz = -1; dz <= 1; ++dz) {
      if (k + dz < 0 || k + dz >= fine.nodes[2])
        continue;
      Parents const pz = parents(coarsening.halved[2], fine.nodes[2], k + dz);
      for (int dy = -1; dy <= 1; ++dy) {
        if (j + dy < 0 || j + dy >= fine.nodes[1])
          continue;
        Parents const py = parents(coarsening.halved[1], fine.nodes[1], j + dy);
        for (int dx = -1; dx <= 1; ++dx) {
          if (i + dx < 0 || i + dx >= fine.nodes[0])
            continue;
          V const v = entry(fine, i, j, k, dx, dy, dz);
          if (v == 0)
            continue;
          Parents const px = parents(coarsening.halved[0], fine.nodes[0], i + dx);
          double const term = static_cast<double>(weight) * static_cast<double>(v);
          for (int z = 0; z < pz.count; ++z)
            for (int y = 0; y < py.count; ++y)
              for (int x = 0; x < px.count; ++x) {
                std::int32_t const cx = px.first + x, cy = py.first + y, cz = pz.first + z;
                int const to = 13 + 9 * (cz - c[2]) + 3 * (cy - c[1]) + cx - c[0];
                if (to > 13)  // the upper half is the lower one of other rows
                  continue;
                int const at = 13 + 9 * (k + dz - fine_node(coarsening.halved[2], fine.nodes[2], cz)) +
                               3 * (j + dy - fine_node(coarsening.halved[1], fine.nodes[1], cy)) + i + dx -
                               fine_node(coarsening.halved[0], fine.nodes[0], cx);
                sums[to] += term * static_cast<double>(coarsening.weights[at * n + coarse.number(cx, cy, cz)]);
              }
        }
      }
    }
  }
  for (int s = 0; s < 14; ++s) {
    std::int32_t const x = c[0] - half_stencil::dx(s), y = c[1] - half_stencil::dy(s), z = c[2] - half_stencil::dz(s);
    bool const exists = x >= 0 && y >= 0 && z >= 0 && x < coarse.nodes[0] && y < coarse.nodes[1];
    out[s] = exists && coarse.free[coarse.number(x, y, z)] != 0 ? sums[13 - s] : -0.0;
  }
}

/// Whether coarse node c of a direction and its neighbours are inner ones, and stand at fine nodes 2 (c - 1), 2 c, 2 (c + 1) if the
/// direction is halved. Where that holds in all directions nothing below needs a case.
[[nodiscard]] inline POISSON_HOST_DEVICE bool is_regular(bool halved, std::int32_t fine_nodes, std::int32_t c) {
  return c >= 1 && (halved ? 2 * c + 2 <= fine_nodes - 1 : c <= fine_nodes - 2);
}
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE bool is_regular(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, std::int32_t i,
                                                  std::int32_t j, std::int32_t k) {
  return is_regular(coarsening.halved[0], fine.nodes[0], i) && is_regular(coarsening.halved[1], fine.nodes[1], j) &&
         is_regular(coarsening.halved[2], fine.nodes[2], k);
}

/// Where the entries between inner nodes and their neighbours at (dx, dy, dz) begin: that of node i is at [i].
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V const* entries_towards(BoxLevel<V> const& a, int dx, int dy, int dz) {
  int const s = 9 * dz + 3 * dy + dx;
  std::int64_t const line = a.nodes[0], plane = line * a.nodes[1];
  return s <= 0 ? a.values - s * a.n() : a.values + s * a.n() + dz * plane + dy * line + dx;
}

/// Calls term(d, e, at) for all pairs of a distance d of a fine node from a coarse one and a step e from there to a node that
/// depends on the coarse node at distance t, at whose place it has the distance `at`; in one direction.
template <class Term>
POISSON_HOST_DEVICE void for_pairs(bool halved, int t, Term const& term) {
  if (!halved)
    return term(0, t, 0);
  for (int d = -1; d <= 1; ++d)
    for (int e = -1; e <= 1; ++e)
      if (int const at = d + e - 2 * t; at >= -1 && at <= 1)
        term(d, e, at);
}

/// Entry s of that row for a regular coarse node.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE double galerkin_entry(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening,
                                                        BoxLevel<V> const& coarse, std::int32_t const (&c)[3], int s) {
  int const tx = -half_stencil::dx(s), ty = -half_stencil::dy(s), tz = -half_stencil::dz(s);
  std::int64_t const own = coarse.number(c[0], c[1], c[2]), n = coarse.n(), to = coarse.number(c[0] + tx, c[1] + ty, c[2] + tz);
  if (coarse.free[own] == 0 || coarse.free[to] == 0)
    return s == 0 ? 1 : -0.0;
  std::int64_t const line = fine.nodes[0], plane = line * fine.nodes[1];
  std::int64_t const f = fine.number(coarsening.halved[0] ? 2 * c[0] : c[0], coarsening.halved[1] ? 2 * c[1] : c[1],
                                     coarsening.halved[2] ? 2 * c[2] : c[2]);
  double sum = 0;
  for_pairs(coarsening.halved[2], tz, [&](int dz, int ez, int az) {
    for_pairs(coarsening.halved[1], ty, [&](int dy, int ey, int ay) {
      for_pairs(coarsening.halved[0], tx, [&](int dx, int ex, int ax) {
        V const own_weight = coarsening.weights[(13 + 9 * dz + 3 * dy + dx) * n + own];
        V const weight = coarsening.weights[(13 + 9 * az + 3 * ay + ax) * n + to];
        V const v = entries_towards(fine, ex, ey, ez)[f + dz * plane + dy * line + dx];
        sum += static_cast<double>(own_weight) * static_cast<double>(v) * static_cast<double>(weight);
      });
    });
  });
  return sum;
}

/// Whether a coarse node is on a face with `held`.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE bool is_held(BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, std::int32_t i,
                                               std::int32_t j, std::int32_t k) {
  return (i == 0 && coarsening.held[0]) || (i == coarse.nodes[0] - 1 && coarsening.held[1]) || (j == 0 && coarsening.held[2]) ||
         (j == coarse.nodes[1] - 1 && coarsening.held[3]) || (k == 0 && coarsening.held[4]) ||
         (k == coarse.nodes[2] - 1 && coarsening.held[5]);
}

/// P^T r at a coarse node, for linear interpolation.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V restricted_linearly(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening,
                                                        BoxLevel<V> const& coarse, V const* r, std::int32_t i, std::int32_t j,
                                                        std::int32_t k) {
  if (is_held(coarsening, coarse, i, j, k))
    return 0;
  std::int64_t const line = fine.nodes[0], plane = line * fine.nodes[1];
  std::int64_t const at =
      fine.number(coarsening.halved[0] ? 2 * i : i, coarsening.halved[1] ? 2 * j : j, coarsening.halved[2] ? 2 * k : k);
  // Beyond a face there is nothing, and the node itself stands in with weight 0.
  V const before_x = coarsening.halved[0] && i > 0 ? V(0.5) : V(0), before_y = coarsening.halved[1] && j > 0 ? V(0.5) : V(0),
          before_z = coarsening.halved[2] && k > 0 ? V(0.5) : V(0);
  V const after_x = coarsening.halved[0] && i + 1 < coarse.nodes[0] ? V(0.5) : V(0),
          after_y = coarsening.halved[1] && j + 1 < coarse.nodes[1] ? V(0.5) : V(0),
          after_z = coarsening.halved[2] && k + 1 < coarse.nodes[2] ? V(0.5) : V(0);
  V const wx[3] = {before_x, 1, after_x}, wy[3] = {before_y, 1, after_y}, wz[3] = {before_z, 1, after_z};
  std::int64_t const sx[3] = {before_x > 0 ? -1 : 0, 0, after_x > 0 ? 1 : 0},
                     sy[3] = {before_y > 0 ? -line : 0, 0, after_y > 0 ? line : 0},
                     sz[3] = {before_z > 0 ? -plane : 0, 0, after_z > 0 ? plane : 0};
  V sum = 0;
  POISSON_UNROLL
  for (int z = 0; z < 3; ++z) {
    V of_plane = 0;
    POISSON_UNROLL
    for (int y = 0; y < 3; ++y) {
      V const* const p = r + at + sz[z] + sy[y];
      of_plane += wy[y] * (wx[0] * p[sx[0]] + p[0] + wx[2] * p[sx[2]]);
    }
    sum += wz[z] * of_plane;
  }
  return sum;
}

/// P^T r at a coarse node.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V restricted(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening,
                                               BoxLevel<V> const& coarse, V const* r, std::int32_t const (&c)[3]) {
  std::int64_t const own = coarse.number(c[0], c[1], c[2]), n = coarse.n();
  std::int64_t const at =
      fine.number(fine_node(coarsening.halved[0], fine.nodes[0], c[0]), fine_node(coarsening.halved[1], fine.nodes[1], c[1]),
                  fine_node(coarsening.halved[2], fine.nodes[2], c[2]));
  std::int64_t const line = fine.nodes[0], plane = line * fine.nodes[1];
  int const rx = coarsening.halved[0] ? 1 : 0, ry = coarsening.halved[1] ? 1 : 0, rz = coarsening.halved[2] ? 1 : 0;
  // Where a weight is 0 there may be no node. Loads do not wait for each other.
  std::int64_t const last = fine.n() - 1;
  V sum = 0;
  POISSON_UNROLL
  for (int dz = -1; dz <= 1; ++dz)
    POISSON_UNROLL
  for (int dy = -1; dy <= 1; ++dy)
    POISSON_UNROLL
  for (int dx = -1; dx <= 1; ++dx) {
    bool const counts = dx * dx <= rx && dy * dy <= ry && dz * dz <= rz;
    V const weight = counts ? coarsening.weights[(13 + 9 * dz + 3 * dy + dx) * n + own] : V(0);
    std::int64_t node = at + dz * plane + dy * line + dx;
    node = node < 0 ? 0 : node > last ? last : node;
    V const value = r[node];
    sum += weight != 0 ? weight * value : V(0);
  }
  return sum;
}

}  // namespace box_levels

}  // namespace poisson
