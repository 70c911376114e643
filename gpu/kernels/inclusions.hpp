#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/box_levels.hpp"

#include <cstdint>

namespace poisson {

/// Some planes of nodes of a box, with those around them: `level` has the nodes of the planes from `first_plane` on, of which
/// begin <= plane < end are looked at (numbers in the whole box). The planes next to these are in it, where there are any.
struct BoxSlab {
  BoxLevel<double> level;
  std::int64_t first_plane = 0, begin = 0, end = 0;

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t plane() const { return std::int64_t{level.nodes[0]} * level.nodes[1]; }
  /// The number in the whole box of a node of `level`, less that in `level`.
  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t shift() const { return first_plane * plane(); }
};

/// Functions e_c of inclusions, each by its nodes and values, one after another in chunks: chunk c has the entries from
/// chunk_first[c] to chunk_first[c + 1]; the chunks of inclusion i are those from chunks_of[i] to chunks_of[i + 1]. The same by
/// nodes: node rows[k] has the entries of_row[j] (inclusion) and row_values[j] from row_first[k] to row_first[k + 1]. All arrays
/// are in the backend's memory.
struct InclusionView {
  std::int32_t n_chunks = 0, n_inclusions = 0, n_rows = 0;
  std::int32_t const *nodes = nullptr, *chunk_first = nullptr, *chunks_of = nullptr, *rows = nullptr, *row_first = nullptr,
                     *of_row = nullptr;
  double const *values = nullptr, *row_values = nullptr;
  double const* inverse_energy = nullptr;      ///< of each inclusion: 1 / (e^T A e)
  double *sums = nullptr, *factors = nullptr;  ///< of each chunk, and of each inclusion: for the kernels
};

/// Looks for inclusions on a box, and corrects by them. Two nodes are coupled strongly where |a_ij| is not far below
/// sqrt(a_ii a_jj); what strong couplings connect is a component, whose root is its lowest node. All functions but `add` wait.
class InclusionKernels {
public:
  virtual ~InclusionKernels() = default;
  /// Whether, of the entries on the diagonal of two neighbours along a direction, one is less than `ratio` of the other.
  virtual bool has_jump(Context& context, std::int64_t n, std::int64_t line, std::int64_t plane, float const* diagonal,
                        double ratio) const = 0;
  virtual bool has_jump(Context& context, std::int64_t n, std::int64_t line, std::int64_t plane, double const* diagonal,
                        double ratio) const = 0;
  /// parent[i] = i for i < n.
  virtual void begin(Context& context, std::int64_t n, std::int32_t* parent) const = 0;
  /// Joins the nodes of a slab to those before them to which they are coupled by |a_ij| >= strong sqrt(a_ii a_jj). 14 numbers a
  /// row, and random access to `parent`.
  virtual void join(Context& context, BoxSlab const& slab, double strong, std::int32_t* parent) const = 0;
  /// parent[i] becomes the root of node i.
  virtual void find_roots(Context& context, std::int64_t n, std::int32_t* parent) const = 0;
  /// anchored[root] = 1 where the sum of the row of a node of the component, or what couples it to other components, is more than
  /// `weak` of its diagonal: a Dirichlet value is beside it, or something that is not weak. The rest is left as it is.
  virtual void mark_anchored(Context& context, BoxSlab const& slab, double weak, std::int32_t const* root,
                             std::uint8_t* anchored) const = 0;
  /// Returns how many nodes are of components that are not anchored, and writes the first `capacity` of those that it meets, in any
  /// order: node and root, 2 numbers each.
  virtual std::int64_t collect(Context& context, std::int64_t n, std::int32_t const* root, std::uint8_t const* anchored,
                               std::int64_t capacity, std::int32_t* found) const = 0;
  /// entries[27 i + 13 + 9 dz + 3 dy + dx]: the entries of the rows of `count` nodes, as far as these are in the slab; the rest is
  /// left as it is.
  virtual void rows(Context& context, BoxSlab const& slab, std::int64_t count, std::int32_t const* nodes,
                    double* entries) const = 0;
  /// z += sum_c e_c (e_c^T r) / (e_c^T A e_c), unless *stop is set. Sums have one order. 20 bytes an entry of e_c to sum and 28 to
  /// add.
  virtual void add(Context& context, InclusionView const& inclusions, double const* r, double* z,
                   std::int32_t const* stop) const = 0;

  static InclusionKernels const& cpu();
  static InclusionKernels const& cuda();
};

/// What both backends do node by node. `Links` reads and changes parents beside other threads: load(place), store(place, value),
/// and exchange(place, expected, value), which returns what was there.
namespace inclusion_rows {

template <class Links>
[[nodiscard]] POISSON_HOST_DEVICE std::int32_t root_of(Links const& links, std::int32_t* parent, std::int32_t node) {
  std::int32_t next = links.load(parent + node);
  while (next != node) {  // half of the path goes away
    std::int32_t const after = links.load(parent + next);
    if (after != next)
      links.store(parent + node, after);
    node = next;
    next = after;
  }
  return node;
}

/// The higher root gets the lower one as its parent, so that the root of a component is its lowest node, whoever comes first.
template <class Links>
POISSON_HOST_DEVICE void join(Links const& links, std::int32_t* parent, std::int32_t a, std::int32_t b) {
  for (;;) {
    a = root_of(links, parent, a);
    b = root_of(links, parent, b);
    if (a == b)
      return;
    std::int32_t const low = a < b ? a : b, high = a < b ? b : a;
    if (links.exchange(parent + high, high, low) == high)
      return;
    a = high;
    b = low;
  }
}

/// Node `row` of the slab's level, and those before it.
template <class Links>
POISSON_HOST_DEVICE void join_row(Links const& links, BoxSlab const& slab, double strong, std::int64_t row, std::int32_t* parent) {
  BoxLevel<double> const& a = slab.level;
  auto const i = static_cast<std::int32_t>(row % a.nodes[0]), j = static_cast<std::int32_t>(row / a.nodes[0] % a.nodes[1]);
  std::int64_t const n = a.n(), plane = slab.plane(), shift = slab.shift();
  double const own = a.values[row];
  for (int s = 1; s < half_stencil::diagonals; ++s) {
    std::int32_t const x = i - half_stencil::dx(s), y = j - half_stencil::dy(s);
    std::int64_t const other = row - half_stencil::offset(s, a.nodes[0], plane);
    if (x < 0 || y < 0 || x >= a.nodes[0] || y >= a.nodes[1] || other < 0)
      continue;
    double const v = a.values[s * n + row];
    if (v * v >= strong * strong * own * a.values[other] && v != 0)
      join(links, parent, static_cast<std::int32_t>(row + shift), static_cast<std::int32_t>(other + shift));
  }
}

template <class V>
[[nodiscard]] POISSON_HOST_DEVICE bool has_jump(std::int64_t n, std::int64_t line, std::int64_t plane, V const* diagonal,
                                                double ratio, std::int64_t i) {
  auto const own = static_cast<double>(diagonal[i]);
  auto const jumps = [&](std::int64_t other) {
    auto const d = static_cast<double>(diagonal[other]);
    return d < ratio * own || own < ratio * d;
  };
  return (i % line < line - 1 && jumps(i + 1)) || (i % plane < plane - line && jumps(i + line)) ||
         (i < n - plane && jumps(i + plane));
}

/// Calls action(v, s, other) for the entries of a row that are not 0, with s = 13 + 9 dz + 3 dy + dx and the number of the other
/// node in the level.
template <class Action>
POISSON_HOST_DEVICE void for_entries(BoxSlab const& slab, std::int64_t row, Action const& action) {
  BoxLevel<double> const& a = slab.level;
  auto const i = static_cast<std::int32_t>(row % a.nodes[0]), j = static_cast<std::int32_t>(row / a.nodes[0] % a.nodes[1]),
             k = static_cast<std::int32_t>(row / slab.plane());
  for (int s = 0; s < 27; ++s) {
    int const dx = s % 3 - 1, dy = s / 3 % 3 - 1, dz = s / 9 - 1;
    if (double const v = box_levels::entry(a, i, j, k, dx, dy, dz); v != 0)
      action(v, s, a.number(i + dx, j + dy, k + dz));
  }
}

/// Whether a row has more to do with others than those of an inclusion: see InclusionKernels::mark_anchored.
[[nodiscard]] inline POISSON_HOST_DEVICE bool is_anchored(BoxSlab const& slab, double weak, std::int64_t row,
                                                          std::int32_t const* root) {
  std::int64_t const shift = slab.shift();
  std::int32_t const own = root[row + shift];
  double all = 0, outside = 0;
  for_entries(slab, row, [&](double v, int, std::int64_t other) {
    all += v;
    if (root[other + shift] != own)
      outside += v < 0 ? -v : v;
  });
  return !((all < 0 ? -all : all) + outside <= weak * slab.level.values[row]);
}

/// entries[0 .. 26] of a row.
inline POISSON_HOST_DEVICE void take_row(BoxSlab const& slab, std::int64_t row, double* entries) {
  for (int s = 0; s < 27; ++s)
    entries[s] = 0;
  for_entries(slab, row, [&](double v, int s, std::int64_t) { entries[s] = v; });
}

}  // namespace inclusion_rows

}  // namespace poisson
