#include "gpu/kernels/box_levels.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace poisson {

namespace {

using namespace box_levels;

/// Calls line(j, k) for all lines of nodes in x, threaded where `work` of all nodes is worth it.
template <class V, class Line>
void for_lines(BoxLevel<V> const& level, std::int64_t work, Line const& line) {
  std::int64_t const lines = std::int64_t{level.nodes[1]} * level.nodes[2];
#pragma omp parallel for schedule(static) if (level.n() * work >= cpu::work_worth_threads)
  for (std::int64_t l = 0; l < lines; ++l)
    line(static_cast<std::int32_t>(l % level.nodes[1]), static_cast<std::int32_t>(l / level.nodes[1]));
}

// Lines of nodes in x that are inner ones need no case for any node but the first and the last; loops over them vectorise.

/// The analysis of the nodes first ... last - 1 of a line in x that are all inner ones. Buffers have an entry for each of them.
template <class V>
void analyse_line(BoxLevel<V> const& level, std::int32_t j, std::int32_t k, std::uint8_t* free, std::vector<V>& buffer,
                  BoxLevelAnalysis& result) {
  std::int64_t const length = level.nodes[0] - 2, at = level.number(1, j, k);
  constexpr int classes = 8;
  buffer.assign(static_cast<std::size_t>((classes + 4) * length), 0);
  V* const couplings = buffer.data() + classes * length;
  V* const absolute = couplings + 3 * length;
  for (int dz = -1; dz <= 1; ++dz)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        V const* const v = entries_towards(level, dx, dy, dz) + at;
        V* const sum = buffer.data() + ((dx & 1) + 2 * (dy & 1) + 4 * (dz & 1)) * length;
#pragma omp simd
        for (std::int64_t i = 0; i < length; ++i)
          sum[i] += v[i];
        if (dx != 0 || dy != 0 || dz != 0)
#pragma omp simd
          for (std::int64_t i = 0; i < length; ++i)
            absolute[i] += std::abs(v[i]);
        for (int const direction : {dx == 1 ? 0 : -1, dy == 1 ? 1 : -1, dz == 1 ? 2 : -1})
          if (direction >= 0) {
            V* const coupling = couplings + direction * length;
#pragma omp simd
            for (std::int64_t i = 0; i < length; ++i)
              coupling[i] -= v[i];
          }
      }
  V const* const diagonal = level.values + at;
  V largest = 0, bound = 0;
#pragma omp simd reduction(max : largest, bound)
  for (std::int64_t i = 0; i < length; ++i) {
    V s[classes];
    for (int c = 0; c < classes; ++c)
      s[c] = buffer[static_cast<std::size_t>(c * length + i)];
    for (int bit = 1; bit < classes; bit *= 2)  // signs of all frequencies
      for (int c = 0; c < classes; ++c)
        if ((c & bit) == 0) {
          V const even = s[c], odd = s[c + bit];
          s[c] = even + odd;
          s[c + bit] = even - odd;
        }
    for (V const symbol : s)
      largest = std::max(largest, symbol / diagonal[i]);
    bound = std::max(bound, (absolute[i] + std::abs(diagonal[i])) / diagonal[i]);
  }
  for (std::int64_t i = 0; i < length; ++i)
    free[at + i] = absolute[i] > 0 ? 1 : 0;
  for (std::size_t d = 0; d < 3; ++d) {
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i)
      sum += static_cast<double>(couplings[static_cast<std::int64_t>(d) * length + i]);
    result.coupling[d] += sum;
  }
  result.largest = std::max(result.largest, static_cast<double>(largest));
  // NaN would be lost in a maximum.
  result.bound = bound >= 0 ? std::max(result.bound, static_cast<double>(bound)) : std::numeric_limits<double>::infinity();
}

/// The weights of coarse nodes first ... last - 1 of a line, all of them regular; `stride`: fine nodes from one to the next.
template <int stride, class V>
void line_of_weights(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, std::int32_t first,
                     std::int32_t last, std::int32_t j, std::int32_t k, V* weights, std::vector<V>& buffer) {
  std::int64_t const length = last - first, n = coarse.n(), own = coarse.number(first, j, k);
  std::int64_t const line = fine.nodes[0], plane = line * fine.nodes[1];
  std::int64_t const f = fine.number(stride * first, coarsening.halved[1] ? 2 * j : j, coarsening.halved[2] ? 2 * k : k);
  buffer.resize(static_cast<std::size_t>(2 * length));
  V *const center = buffer.data(), *const sum = center + length;
  int const stride_of[3] = {1, 3, 9};
  for (int between = 1; between <= 3; ++between)
    for (int place = 0; place < 27; ++place) {
      int const distance[3] = {place % 3 - 1, place / 3 % 3 - 1, place / 9 - 1};
      if (std::count(std::begin(distance), std::end(distance), 0) != 3 - between)
        continue;
      V* const weight = weights + place * n + own;
      bool depends = true;
      for (int d = 0; d < 3; ++d)
        depends = depends && (distance[d] == 0 || coarsening.halved[d]);
      if (!depends) {
        std::fill(weight, weight + length, V(0));
        continue;
      }
      std::int64_t const at = f + distance[2] * plane + distance[1] * line + distance[0];
      std::fill(buffer.begin(), buffer.end(), V(0));
      for (int dz = -1; dz <= 1; ++dz)
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx) {
            int const step[3] = {dx, dy, dz};
            bool here = true, towards = true;
            int left = 13;
            for (int d = 0; d < 3; ++d)
              if (distance[d] != 0) {
                here = here && step[d] == 0;
                towards = towards && (step[d] == 0 || step[d] == -distance[d]);
                left += step[d] == 0 ? stride_of[d] * distance[d] : 0;
              }
            if (!towards)
              continue;
            V const* const v = entries_towards(fine, dx, dy, dz) + at;
            V const* const of_left = weights + left * n + own;
            if (here)
#pragma omp simd
              for (std::int64_t c = 0; c < length; ++c)
                center[c] += v[stride * c];
            else if (left == 13)
#pragma omp simd
              for (std::int64_t c = 0; c < length; ++c)
                sum[c] += v[stride * c];
            else
#pragma omp simd
              for (std::int64_t c = 0; c < length; ++c)
                sum[c] += v[stride * c] * of_left[c];
          }
      std::uint8_t const *const free = fine.free + at, *const free_of_coarse = coarse.free + own;
      for (std::int64_t c = 0; c < length; ++c)
        weight[c] = free[stride * c] == 0 || free_of_coarse[c] == 0 ? V(0) : admissible_weight(-sum[c], center[c], between);
    }
}

/// Calls term(e, at) for the steps e from a fine node at distance d of a coarse one to a node that depends on the coarse node at
/// distance t, at whose place it has the distance `at`; in one direction.
template <class Term>
void for_steps(bool halved, int t, int d, Term const& term) {
  if (!halved)
    return term(t, 0);
  for (int e = -1; e <= 1; ++e)
    if (int const at = d + e - 2 * t; at >= -1 && at <= 1)
      term(e, at);
}

/// The rows of P^T A P of these nodes.
template <int stride, class V>
void line_of_rows(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, std::int32_t first,
                  std::int32_t last, std::int32_t j, std::int32_t k, V* values, std::vector<double>& buffer,
                  std::vector<V>& of_nodes) {
  std::int64_t const length = last - first, n = coarse.n(), own = coarse.number(first, j, k);
  std::int64_t const line = fine.nodes[0], plane = line * fine.nodes[1];
  std::int64_t const f = fine.number(stride * first, coarsening.halved[1] ? 2 * j : j, coarsening.halved[2] ? 2 * k : k);
  for (int s = 0; s < half_stencil::diagonals; ++s) {
    int const tx = -half_stencil::dx(s), ty = -half_stencil::dy(s), tz = -half_stencil::dz(s);
    std::int64_t const to = coarse.number(first + tx, j + ty, k + tz);
    buffer.assign(static_cast<std::size_t>(length), 0);
    double* const sums = buffer.data();
    // Every fine node that depends on c gives its row of A P: few terms, in V. The sums of these are in double.
    int const rx = stride - 1, ry = coarsening.halved[1] ? 1 : 0, rz = coarsening.halved[2] ? 1 : 0;
    for (int dz = -rz; dz <= rz; ++dz)
      for (int dy = -ry; dy <= ry; ++dy)
        for (int dx = -rx; dx <= rx; ++dx) {
          bool any = false;
          of_nodes.assign(static_cast<std::size_t>(length), V(0));
          V* const of_node = of_nodes.data();
          for_steps(coarsening.halved[2], tz, dz, [&](int ez, int az) {
            for_steps(coarsening.halved[1], ty, dy, [&](int ey, int ay) {
              for_steps(coarsening.halved[0], tx, dx, [&](int ex, int ax) {
                V const* const weight = coarsening.weights + (13 + 9 * az + 3 * ay + ax) * n + to;
                V const* const v = entries_towards(fine, ex, ey, ez) + f + dz * plane + dy * line + dx;
                any = true;
#pragma omp simd
                for (std::int64_t c = 0; c < length; ++c)
                  of_node[c] += v[stride * c] * weight[c];
              });
            });
          });
          V const* const own_weight = coarsening.weights + (13 + 9 * dz + 3 * dy + dx) * n + own;
          if (any)
#pragma omp simd
            for (std::int64_t c = 0; c < length; ++c)
              sums[c] += static_cast<double>(own_weight[c]) * static_cast<double>(of_node[c]);
        }
    std::uint8_t const *const free = coarse.free + own, *const free_to = coarse.free + to;
    V* const out = values + s * n + own;
    for (std::int64_t c = 0; c < length; ++c)
      out[c] = static_cast<V>(free[c] != 0 && free_to[c] != 0 ? sums[c] : s == 0 ? 1 : -0.0);
  }
}

/// The regular nodes of a line are first ... last - 1.
struct RegularNodes {
  std::int32_t first, last;
};
template <class V>
RegularNodes regular_nodes(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse) {
  RegularNodes result{0, coarse.nodes[0]};
  while (result.first < result.last && !is_regular(coarsening.halved[0], fine.nodes[0], result.first))
    ++result.first;
  while (result.last > result.first && !is_regular(coarsening.halved[0], fine.nodes[0], result.last - 1))
    --result.last;
  return result;
}

/// b = P^T r there.
template <int stride, class V>
void restrict_line(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, std::int32_t first,
                   std::int32_t last, std::int32_t j, std::int32_t k, V const* r, V* b) {
  std::int64_t const length = last - first, n = coarse.n(), own = coarse.number(first, j, k);
  std::int64_t const line = fine.nodes[0], plane = line * fine.nodes[1];
  std::int64_t const f = fine.number(stride * first, coarsening.halved[1] ? 2 * j : j, coarsening.halved[2] ? 2 * k : k);
  int const rx = stride - 1, ry = coarsening.halved[1] ? 1 : 0, rz = coarsening.halved[2] ? 1 : 0;
  V* const out = b + own;
  std::fill(out, out + length, V(0));
  for (int dz = -rz; dz <= rz; ++dz)
    for (int dy = -ry; dy <= ry; ++dy)
      for (int dx = -rx; dx <= rx; ++dx) {
        V const* const weight = coarsening.weights + (13 + 9 * dz + 3 * dy + dx) * n + own;
        std::int64_t const at = f + dz * plane + dy * line + dx;
#pragma omp simd
        for (std::int64_t c = 0; c < length; ++c)
          out[c] += weight[c] * r[at + stride * c];
      }
}

/// x += P e in a line of fine nodes, three or more if x is halved. Weights of nodes that are not free are 0.
template <class V>
void prolong_line(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, std::int32_t j,
                  std::int32_t k, V const* e, V* x) {
  std::int64_t const nx = fine.nodes[0], n_coarse = coarse.nodes[0], n = coarse.n();
  V* const out = x + fine.number(0, j, k);
  Parents const py = parents(coarsening.halved[1], fine.nodes[1], j), pz = parents(coarsening.halved[2], fine.nodes[2], k);
  for (std::int32_t cz = pz.first; cz < pz.first + pz.count; ++cz)
    for (std::int32_t cy = py.first; cy < py.first + py.count; ++cy) {
      std::int64_t const at = coarse.number(0, cy, cz);
      int const place = 13 + 9 * (k - fine_node(coarsening.halved[2], fine.nodes[2], cz)) +
                        3 * (j - fine_node(coarsening.halved[1], fine.nodes[1], cy));
      V const* const own = e + at;
      V const* const here = coarsening.weights + place * n + at;
      if (!coarsening.halved[0]) {
#pragma omp simd
        for (std::int64_t c = 0; c < nx; ++c)
          out[c] += here[c] * own[c];
        continue;
      }
      V const *const after = here + n, *const before = here - n;
#pragma omp simd
      for (std::int64_t c = 0; c < (nx - 1) / 2; ++c) {
        out[2 * c] += here[c] * own[c];
        out[2 * c + 1] += after[c] * own[c] + before[c + 1] * own[c + 1];
      }
      if (nx % 2 == 0)  // the last two nodes are coarse ones
        out[nx - 2] += here[n_coarse - 2] * own[n_coarse - 2];
      out[nx - 1] += here[n_coarse - 1] * own[n_coarse - 1];
    }
}

/// The coarse lines whose sum, times `weight`, a line of fine nodes takes part in.
struct LinesOfParents {
  std::int64_t at[4];
  int count;
  double weight;
};
template <class V>
LinesOfParents parents_of_line(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                               std::int32_t j, std::int32_t k) {
  Parents const py = parents(coarsening.halved[1], fine.nodes[1], j), pz = parents(coarsening.halved[2], fine.nodes[2], k);
  LinesOfParents result{{0, 0, 0, 0}, 0, 1.0 / (py.count * pz.count)};
  for (std::int32_t z = pz.first; z < pz.first + pz.count; ++z)
    for (std::int32_t y = py.first; y < py.first + py.count; ++y)
      result.at[result.count++] = coarse.number(0, y, z);
  return result;
}

/// x += P e in a line of fine nodes, for linear interpolation.
template <class V>
void prolong_line_linearly(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, std::int32_t j,
                           std::int32_t k, V const* e, V* x) {
  LinesOfParents const of = parents_of_line(fine, coarsening, coarse, j, k);
  auto const weight = static_cast<V>(of.weight);
  V* const out = x + fine.number(0, j, k);
  for (int p = 0; p < of.count; ++p) {
    V const* const own = e + of.at[p];
    if (!coarsening.halved[0]) {
#pragma omp simd
      for (std::int64_t c = 0; c < coarse.nodes[0]; ++c)
        out[c] += weight * own[c];
      continue;
    }
#pragma omp simd
    for (std::int64_t c = 0; c < coarse.nodes[0] - 1; ++c) {
      out[2 * c] += weight * own[c];
      out[2 * c + 1] += weight * V(0.5) * (own[c] + own[c + 1]);
    }
    out[fine.nodes[0] - 1] += weight * own[coarse.nodes[0] - 1];
  }
}

/// b = P^T r in a line of coarse nodes, for linear interpolation: the fine lines around it are summed up in `sums` first.
template <class V>
void restrict_line_linearly(BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, std::int32_t j,
                            std::int32_t k, V const* r, V* b, std::vector<V>& sums) {
  std::int64_t const length = fine.nodes[0], n_coarse = coarse.nodes[0];
  sums.assign(static_cast<std::size_t>(length), 0);
  V* const sum = sums.data();
  int const ry = coarsening.halved[1] ? 1 : 0, rz = coarsening.halved[2] ? 1 : 0;
  for (int dz = -rz; dz <= rz; ++dz)
    for (int dy = -ry; dy <= ry; ++dy) {
      std::int32_t const fj = (j << ry) + dy, fk = (k << rz) + dz;
      if (fj < 0 || fk < 0 || fj >= fine.nodes[1] || fk >= fine.nodes[2])
        continue;
      auto const weight = static_cast<V>((dy == 0 ? 1 : 0.5) * (dz == 0 ? 1 : 0.5));
      V const* const line = r + fine.number(0, fj, fk);
#pragma omp simd
      for (std::int64_t i = 0; i < length; ++i)
        sum[i] += weight * line[i];
    }
  V* const out = b + coarse.number(0, j, k);
  if (coarsening.halved[0]) {
    out[0] = sum[0] + V(0.5) * sum[1];
#pragma omp simd
    for (std::int64_t c = 1; c < n_coarse - 1; ++c)
      out[c] = sum[2 * c] + V(0.5) * (sum[2 * c - 1] + sum[2 * c + 1]);
    out[n_coarse - 1] = sum[length - 1] + V(0.5) * sum[length - 2];
  } else
    std::copy_n(sum, n_coarse, out);
  if (is_held(coarsening, coarse, 1, j, k))  // all of the line; x has three nodes or more
    std::fill_n(out, n_coarse, V(0));
  if (coarsening.held[0])
    out[0] = 0;
  if (coarsening.held[1])
    out[n_coarse - 1] = 0;
}

template <class V>
class CpuBoxLevels final : public BoxLevelKernels<V> {
public:
  BoxLevelAnalysis analyse(Context&, BoxLevel<V> const& level, std::uint8_t* free) const override {
    std::int32_t const nx = level.nodes[0], ny = level.nodes[1], nz = level.nodes[2];
    std::vector<BoxLevelAnalysis> of_plane(static_cast<std::size_t>(nz));
#pragma omp parallel if (100 * level.n() >= cpu::work_worth_threads)
    {
      std::vector<V> buffer;
#pragma omp for schedule(static)
      for (std::int32_t k = 0; k < nz; ++k) {
        BoxLevelAnalysis& result = of_plane[static_cast<std::size_t>(k)];
        auto const one = [&](std::int32_t i, std::int32_t j) {
          RowAnalysis const row = analyse_row(level, i, j, k);
          free[level.number(i, j, k)] = row.free ? 1 : 0;
          for (std::size_t d = 0; d < 3; ++d)
            result.coupling[d] += row.coupling[d];
          result.largest = std::max(result.largest, static_cast<double>(row.largest));
          result.bound = std::max(result.bound, static_cast<double>(row.bound));
        };
        for (std::int32_t j = 0; j < ny; ++j)
          if (k > 0 && k < nz - 1 && j > 0 && j < ny - 1 && nx > 2) {
            one(0, j);
            analyse_line(level, j, k, free, buffer, result);
            one(nx - 1, j);
          } else
            for (std::int32_t i = 0; i < nx; ++i)
              one(i, j);
      }
    }
    BoxLevelAnalysis total;
    for (BoxLevelAnalysis const& plane : of_plane) {
      for (std::size_t d = 0; d < 3; ++d)
        total.coupling[d] += plane.coupling[d];
      total.largest = std::max(total.largest, plane.largest);
      total.bound = std::max(total.bound, plane.bound);
    }
    return total;
  }

  void inverse_roots(Context&, std::int64_t n, V const* diagonal, V* z) const override {
#pragma omp parallel for schedule(static) if (4 * n >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n; ++i)
      z[i] = V(1) / std::sqrt(diagonal[i]);
  }

  double bound(Context&, BoxLevel<V> const& level, V const* z, V* y) const override {
    std::int64_t const nx = level.nodes[0], line = nx, plane = line * level.nodes[1];
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest) if (30 * level.n() >= cpu::work_worth_threads)
    for (std::int64_t l = 0; l < std::int64_t{level.nodes[1]} * level.nodes[2]; ++l) {
      auto const j = static_cast<std::int32_t>(l % level.nodes[1]), k = static_cast<std::int32_t>(l / level.nodes[1]);
      bool const inner = j > 0 && k > 0 && j + 1 < level.nodes[1] && k + 1 < level.nodes[2];
      std::int64_t const at = l * nx;
      if (inner) {
        std::fill_n(y + at + 1, nx - 2, V(0));
        for (int dz = -1; dz <= 1; ++dz)
          for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
              V const* const v = entries_towards(level, dx, dy, dz) + at;
              V const* const of = z + at + dz * plane + dy * line + dx;
              V* const sum = y + at;
#pragma omp simd
              for (std::int64_t i = 1; i < nx - 1; ++i)
                sum[i] += std::abs(v[i]) * of[i];
            }
#pragma omp simd
        for (std::int64_t i = at + 1; i < at + nx - 1; ++i)
          y[i] /= level.values[i];
      }
      for (std::int64_t i = 0; i < nx; i += inner ? std::max<std::int64_t>(nx - 1, 1) : 1)
        y[at + i] = absolute_row(level, static_cast<std::int32_t>(i), j, k, z);
      for (std::int64_t i = at; i < at + nx; ++i)
        largest = std::max(largest, static_cast<double>(y[i] / z[i]));
    }
    return largest;
  }

  void coarsen(Context&, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, V* weights,
               std::uint8_t* free, V* values) const override {
    std::int64_t const n = coarse.n();
    std::int32_t const nx = coarse.nodes[0], ny = coarse.nodes[1], nz = coarse.nodes[2];
    for_lines(coarse, 1, [&](std::int32_t j, std::int32_t k) {
      for (std::int32_t i = 0; i < nx; ++i) {
        std::int64_t const at = coarse.number(i, j, k);
        free[at] = fine.free[fine.number(fine_node(coarsening.halved[0], fine.nodes[0], i),
                                         fine_node(coarsening.halved[1], fine.nodes[1], j),
                                         fine_node(coarsening.halved[2], fine.nodes[2], k))];
        weights[13 * n + at] = free[at];
      }
    });
    RegularNodes const ends = regular_nodes(fine, coarsening, coarse);
    std::int32_t const first = ends.first, last = ends.last;
    std::int64_t const lines = std::int64_t{ny} * nz;
    auto const for_parts = [&](auto& buffer, auto const& regular, auto const& other) {
#pragma omp for schedule(static)
      for (std::int64_t l = 0; l < lines; ++l) {
        auto const j = static_cast<std::int32_t>(l % ny), k = static_cast<std::int32_t>(l / ny);
        bool const inner = last > first && is_regular(coarsening.halved[1], fine.nodes[1], j) &&
                           is_regular(coarsening.halved[2], fine.nodes[2], k);
        if (inner)
          regular(j, k, buffer);
        for (std::int32_t i = 0; i < nx; ++i)
          if (!inner || i < first || i >= last)
            other(i, j, k);
      }
    };
#pragma omp parallel if (1000 * n >= cpu::work_worth_threads)
    {
      std::vector<V> buffer;
      for_parts(
          buffer,
          [&](std::int32_t j, std::int32_t k, std::vector<V>& own) {
            if (coarsening.halved[0])
              line_of_weights<2>(fine, coarsening, coarse, first, last, j, k, weights, own);
            else
              line_of_weights<1>(fine, coarsening, coarse, first, last, j, k, weights, own);
          },
          [&](std::int32_t i, std::int32_t j, std::int32_t k) {
            for (int between = 1; between <= 3; ++between)
              for (int place = 0; place < 27; ++place) {
                int const distance[3] = {place % 3 - 1, place / 3 % 3 - 1, place / 9 - 1};
                if (std::count(std::begin(distance), std::end(distance), 0) == 3 - between)
                  weights[place * n + coarse.number(i, j, k)] = interpolation_weight(fine, coarsening, coarse, {i, j, k}, distance);
              }
          });
      std::vector<double> sums;
      std::vector<V> of_nodes;
      for_parts(
          sums,
          [&](std::int32_t j, std::int32_t k, std::vector<double>& own) {
            if (coarsening.halved[0])
              line_of_rows<2>(fine, coarsening, coarse, first, last, j, k, values, own, of_nodes);
            else
              line_of_rows<1>(fine, coarsening, coarse, first, last, j, k, values, own, of_nodes);
          },
          [&](std::int32_t i, std::int32_t j, std::int32_t k) {
            std::int64_t const at = coarse.number(i, j, k);
            double row[14] = {1, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0};
            if (free[at] != 0)
              galerkin_row(fine, coarsening, coarse, {i, j, k}, row);
            for (std::int64_t s = 0; s < 14; ++s)
              values[s * n + at] = static_cast<V>(row[s]);
          });
    }
  }

  void restrict_residual(Context&, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                         V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    if (coarsening.weights == nullptr) {
      for_lines(coarse, 20, [&](std::int32_t j, std::int32_t k) {
        thread_local std::vector<V> sums;
        restrict_line_linearly(fine, coarsening, coarse, j, k, r, b, sums);
        std::int64_t const begin = coarse.number(0, j, k);
#pragma omp simd
        for (std::int64_t i = begin; i < begin + coarse.nodes[0]; ++i)
          x[i] = factor * b[i] / diagonal[i];
      });
      return;
    }
    RegularNodes const ends = regular_nodes(fine, coarsening, coarse);
    std::int32_t const first = ends.first, last = ends.last;
    for_lines(coarse, 60, [&](std::int32_t j, std::int32_t k) {
      bool const inner =
          last > first && is_regular(coarsening.halved[1], fine.nodes[1], j) && is_regular(coarsening.halved[2], fine.nodes[2], k);
      if (inner && coarsening.halved[0])
        restrict_line<2>(fine, coarsening, coarse, first, last, j, k, r, b);
      else if (inner)
        restrict_line<1>(fine, coarsening, coarse, first, last, j, k, r, b);
      for (std::int32_t i = 0; i < coarse.nodes[0]; ++i)
        if (!inner || i < first || i >= last) {
          std::int32_t const c[3] = {i, j, k};
          b[coarse.number(i, j, k)] = restricted(fine, coarsening, coarse, r, c);
        }
      std::int64_t const begin = coarse.number(0, j, k);
#pragma omp simd
      for (std::int64_t i = begin; i < begin + coarse.nodes[0]; ++i)
        x[i] = factor * b[i] / diagonal[i];
    });
  }

  void prolong(Context&, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, V const* e, V* x,
               std::int32_t const* stop) const override {
    if (*stop == 0)
      for_lines(fine, 10, [&](std::int32_t j, std::int32_t k) {
        if (coarsening.weights == nullptr)
          prolong_line_linearly(fine, coarsening, coarse, j, k, e, x);
        else
          prolong_line(fine, coarsening, coarse, j, k, e, x);
      });
  }
};

template <class V>
BoxLevelKernels<V> const& kernels() {
  static CpuBoxLevels<V> const instance;
  return instance;
}

}  // namespace

template <>
BoxLevelKernels<float> const& BoxLevelKernels<float>::cpu() {
  return kernels<float>();
}
template <>
BoxLevelKernels<double> const& BoxLevelKernels<double>::cpu() {
  return kernels<double>();
}

}  // namespace poisson
