#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/half_cds.hpp"
#include "gpu/kernels/lattice_places.hpp"

#include <cstdint>

namespace poisson {

/// Two levels of multigrid on a mesh of lattices of order 1: those of `coarse` have half the cells, and every second node. `free`,
/// by unknown: 1 for unknowns that are coupled to others; the rest (Dirichlet values) only have their diagonal entry. `owned`, of
/// the fine level, by place on a rim: 1 where this copy is the first one of its unknown.
///
/// P is trilinear interpolation in the indices of each lattice, which on faces that lattices share is the same from both sides; 0
/// in rows and columns of unknowns that are not free.
struct LatticeLevels {
  LatticeView fine, coarse;
  std::uint8_t const *free_of_fine = nullptr, *free_of_coarse = nullptr;
  std::uint8_t const* owned = nullptr;
};

/// Lattices of order 1 that were cut into pieces, with the pieces in any order (gpu/core/shared_lattices.hpp).
struct LatticeMerge {
  std::int64_t n_lattices = 0;
  std::int32_t a_side = 1, cells = 1;   ///< pieces of a lattice; cells of a piece
  std::int32_t const* piece = nullptr;  ///< [((lattice a_side + z) a_side + y) a_side + x]: the number of the piece
  [[nodiscard]] POISSON_HOST_DEVICE std::int32_t nodes() const { return a_side * cells + 1; }  ///< a side of a lattice
};

/// What multigrid on lattices consists of, but for products and smoothers, in the arithmetic V: float or double. Pointers are in
/// the backend's memory. On a device calls enqueue work.
template <class V>
class LatticeLevelKernels {
public:
  virtual ~LatticeLevelKernels() = default;
  /// `free` of a level from its values, which LatticeHalfCdsView describes.
  virtual void find_free(Context& context, LatticeView const& lattices, V const* values, std::uint8_t* free) const = 0;
  /// `free` of the coarse level is that of the fine unknown at the same place.
  virtual void copy_free(Context& context, LatticeView const& fine, LatticeView const& coarse, std::uint8_t const* free_of_fine,
                         std::uint8_t* free_of_coarse) const = 0;
  /// The values of P^T A P, lattice by lattice, by sums in double.
  virtual void coarsen(Context& context, LatticeLevels const& levels, V const* values, V* coarse_values) const = 0;

  /// The values of the lattices from those of all pieces, both as LatticeHalfCdsView says.
  virtual void merge(Context& context, LatticeMerge const& merge, V const* of_pieces, V* values) const = 0;

  /// b = P^T r and x = factor D^-1 b, unless *stop is set.
  virtual void restrict_residual(Context& context, LatticeLevels const& levels, V const* r, V const* diagonal, V factor, V* b, V* x,
                                 std::int32_t const* stop) const = 0;
  /// x += P e, unless *stop is set. Precondition: e is 0 at unknowns that are not free.
  virtual void prolong(Context& context, LatticeLevels const& levels, V const* e, V* x, std::int32_t const* stop) const = 0;

  static LatticeLevelKernels const& cpu();
  static LatticeLevelKernels const& cuda();
};

template <>
LatticeLevelKernels<float> const& LatticeLevelKernels<float>::cpu();
template <>
LatticeLevelKernels<float> const& LatticeLevelKernels<float>::cuda();
template <>
LatticeLevelKernels<double> const& LatticeLevelKernels<double>::cpu();
template <>
LatticeLevelKernels<double> const& LatticeLevelKernels<double>::cuda();

/// What both backends do unknown by unknown.
namespace lattice_levels {

/// A node of all lattices together: those of one after those of the other, x fastest.
[[nodiscard]] inline POISSON_HOST_DEVICE std::int64_t node_number(LatticeView const& lattices, std::int64_t lattice, std::int32_t i,
                                                                  std::int32_t j, std::int32_t k) {
  return ((lattice * lattices.m + k) * lattices.m + j) * lattices.m + i;
}

/// Whether the unknown has a coupling to another one.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE bool is_free(LatticeView const& lattices, V const* values, std::int64_t unknown) {
  bool free = false;
  std::int64_t const n = lattices.n_lattices * lattices.nodes_of_lattice();
  std::int32_t const m = lattices.m;
  for_nodes_of(lattices, unknown, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
    std::int64_t const own = node_number(lattices, lattice, i, j, k);
    auto const holds = [m](std::int32_t index) { return index >= 0 && index < m; };
    for (int d = 1; d < half_stencil::diagonals; ++d) {
      int const dx = half_stencil::dx(d), dy = half_stencil::dy(d), dz = half_stencil::dz(d);
      if (holds(i - dx) && holds(j - dy) && holds(k - dz))
        free = free || values[d * n + own] != 0;
      if (holds(i + dx) && holds(j + dy) && holds(k + dz))
        free = free || values[d * n + own + half_stencil::offset(d, m, std::int64_t{m} * m)] != 0;
    }
  });
  return free;
}

/// The fine unknown at the place of a coarse one.
[[nodiscard]] inline POISSON_HOST_DEVICE std::int64_t fine_unknown(LatticeView const& fine, LatticeView const& coarse,
                                                                   std::int64_t unknown) {
  std::int64_t result = 0;
  for_nodes_of(coarse, unknown, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
    result = fine.unknown(lattice, 2 * i, 2 * j, 2 * k);
  });
  return result;
}

/// Calls term(d, e) in one direction for the distances d and e of two fine nodes that are neighbours or the same from the coarse
/// nodes they depend on, of which the second is t beyond the first.
template <class Term>
POISSON_HOST_DEVICE void for_pairs(int t, Term const& term) {
  for (int d = -1; d <= 1; ++d)
    for (int e = -1; e <= 1; ++e)
      if (int const step = 2 * t + e - d; step >= -1 && step <= 1)
        term(d, e);
}
[[nodiscard]] inline POISSON_HOST_DEVICE double weight_at(int distance) {
  return distance == 0 ? 1 : 0.5;
}

/// Value d of a coarse node of a lattice.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE double galerkin_value(LatticeLevels const& levels, V const* values, std::int64_t lattice,
                                                        std::int32_t const (&c)[3], int diagonal) {
  LatticeView const &fine = levels.fine, &coarse = levels.coarse;
  std::int32_t const m = fine.m;
  int const t[3] = {-half_stencil::dx(diagonal), -half_stencil::dy(diagonal), -half_stencil::dz(diagonal)};
  for (int a = 0; a < 3; ++a)
    if (c[a] + t[a] < 0 || c[a] + t[a] >= coarse.m)
      return -0.0;
  std::int64_t const n = fine.n_lattices * fine.nodes_of_lattice();
  bool const own_free = levels.free_of_coarse[coarse.unknown(lattice, c[0], c[1], c[2])] != 0;
  if (diagonal == 0 && !own_free)
    return static_cast<double>(values[node_number(fine, lattice, 2 * c[0], 2 * c[1], 2 * c[2])]);
  if (!own_free || levels.free_of_coarse[coarse.unknown(lattice, c[0] + t[0], c[1] + t[1], c[2] + t[2])] == 0)
    return -0.0;
  double sum = 0;
  for_pairs(t[2], [&](int dz, int ez) {
    std::int32_t const fz = 2 * c[2] + dz, gz = 2 * (c[2] + t[2]) + ez;
    if (fz < 0 || gz < 0 || fz >= m || gz >= m)
      return;
    for_pairs(t[1], [&](int dy, int ey) {
      std::int32_t const fy = 2 * c[1] + dy, gy = 2 * (c[1] + t[1]) + ey;
      if (fy < 0 || gy < 0 || fy >= m || gy >= m)
        return;
      for_pairs(t[0], [&](int dx, int ex) {
        std::int32_t const fx = 2 * c[0] + dx, gx = 2 * (c[0] + t[0]) + ex;
        if (fx < 0 || gx < 0 || fx >= m || gx >= m)
          return;
        int const s = 9 * (gz - fz) + 3 * (gy - fy) + gx - fx;  // -13 .. 13
        // Unknowns that are not free are coupled to nothing but themselves.
        if (s == 0 && levels.free_of_fine[fine.unknown(lattice, fx, fy, fz)] == 0)
          return;
        V const v = s <= 0 ? values[-s * n + node_number(fine, lattice, fx, fy, fz)]
                           : values[s * n + node_number(fine, lattice, gx, gy, gz)];
        sum +=
            weight_at(dx) * weight_at(dy) * weight_at(dz) * weight_at(ex) * weight_at(ey) * weight_at(ez) * static_cast<double>(v);
      });
    });
  });
  return sum;
}

/// Value `diagonal` of node (i, j, k) of a lattice: the sum over the pieces that have the node and its neighbour.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V merged_value(LatticeMerge const& merge, V const* of_pieces, std::int64_t lattice,
                                                 std::int32_t i, std::int32_t j, std::int32_t k, int diagonal) {
  std::int32_t const n = merge.cells, m = n + 1, p = merge.a_side;
  std::int32_t const dx = half_stencil::dx(diagonal), dy = half_stencil::dy(diagonal), dz = half_stencil::dz(diagonal);
  std::int64_t const all = merge.n_lattices * p * p * p * m * m * m;
  V sum = V(-0.0);
  // The pieces with a node in one direction: the one that begins before its index or there, and at a cut the one before.
  for (std::int32_t z = k / n; z >= 0 && k - z * n <= n; --z)
    for (std::int32_t y = j / n; y >= 0 && j - y * n <= n; --y)
      for (std::int32_t x = i / n; x >= 0 && i - x * n <= n; --x) {
        std::int32_t const a = i - x * n, b = j - y * n, c = k - z * n;
        auto const holds = [n](std::int32_t index) { return index >= 0 && index <= n; };
        if (x >= p || y >= p || z >= p || !holds(a - dx) || !holds(b - dy) || !holds(c - dz))
          continue;
        std::int64_t const piece = merge.piece[((lattice * p + z) * p + y) * p + x];
        sum += of_pieces[diagonal * all + ((piece * m + c) * m + b) * m + a];
      }
  return sum;
}

/// P^T r at a coarse unknown on a rim. Fine nodes that several lattices have count in the first one.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V restricted(LatticeLevels const& levels, V const* r, std::int64_t unknown) {
  if (levels.free_of_coarse[unknown] == 0)
    return 0;
  LatticeView const& fine = levels.fine;
  LatticeRim const rim = fine.rim();
  V sum = 0;
  for_nodes_of(levels.coarse, unknown, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
    for (int dz = -1; dz <= 1; ++dz)
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          std::int32_t const x = 2 * i + dx, y = 2 * j + dy, z = 2 * k + dz;
          if (x < 0 || y < 0 || z < 0 || x >= fine.m || y >= fine.m || z >= fine.m)
            continue;
          std::int64_t at = 0;
          if (rim.holds(x, y, z)) {
            std::int64_t const place = lattice * rim.size() + rim.place(x, y, z);
            if (levels.owned[place] == 0)
              continue;
            at = fine.rim_unknowns[place];
          } else
            at = fine.inner_unknown(lattice, x, y, z);
          if (levels.free_of_fine[at] != 0)
            sum += static_cast<V>(weight_at(dx) * weight_at(dy) * weight_at(dz)) * r[at];
        }
  });
  return sum;
}

/// (P e) at a node of a lattice, if its unknown is free.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V interpolated(LatticeLevels const& levels, V const* e, std::int64_t lattice, std::int32_t i,
                                                 std::int32_t j, std::int32_t k) {
  int const nx = i % 2, ny = j % 2, nz = k % 2;
  V sum = 0;
  for (int z = 0; z <= nz; ++z)
    for (int y = 0; y <= ny; ++y)
      for (int x = 0; x <= nx; ++x)
        sum += e[levels.coarse.unknown(lattice, i / 2 + x, j / 2 + y, k / 2 + z)];
  return sum * static_cast<V>(weight_at(nx) * weight_at(ny) * weight_at(nz));
}

/// P e at an unknown.
template <class V>
[[nodiscard]] POISSON_HOST_DEVICE V prolonged(LatticeLevels const& levels, V const* e, std::int64_t unknown) {
  if (levels.free_of_fine[unknown] == 0)
    return 0;
  LatticeView const& fine = levels.fine;
  std::int64_t const on_rim = unknown - fine.n_inner();
  if (on_rim < 0) {
    LatticeView::Node const node = fine.inner_node(unknown);
    return interpolated(levels, e, node.lattice, node.i, node.j, node.k);
  }
  LatticeRim const rim = fine.rim();
  std::int64_t const place = fine.copies[fine.copy_offsets[on_rim]];
  LatticeRim::Node const node = rim.node(place % rim.size());
  return interpolated(levels, e, place / rim.size(), node.i, node.j, node.k);
}

}  // namespace lattice_levels

}  // namespace poisson
