#include "gpu/kernels/order_levels.hpp"

#include "gpu/core/host_vector.hpp"

#include <algorithm>
#include <array>

namespace poisson {

namespace {

template <class V>
class CpuOrderLevels final : public OrderLevelKernels<V> {
public:
  // 1 reading of r (p^3 fine unknowns) and of the diagonal, 2 writings: 4 p^3 + 12 bytes a coarse unknown in single precision.
  void restrict_residual(Context&, OrderLevels const& levels, V const* r, V const* diagonal, V factor, V* b, V* x,
                         std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    LatticeView const &fine = levels.fine, &coarse = levels.coarse;
    std::int32_t const p = fine.order, inner = coarse.all_on_rim ? 0 : coarse.m - 2;
    std::int64_t const n_lines = coarse.n_lattices * inner * inner;
    auto const set = [&](std::int64_t unknown, V value) {
      b[unknown] = value;
      x[unknown] = factor * value / diagonal[unknown];
    };
#pragma omp parallel
    {
      HostVector<V> line(static_cast<std::size_t>(inner));
      // All fine nodes around an inner one are inner ones.
#pragma omp for schedule(static) nowait
      for (std::int64_t number = 0; number < n_lines; ++number) {
        std::int64_t const lattice = number / (inner * inner);
        auto const j = static_cast<std::int32_t>(1 + number % inner), k = static_cast<std::int32_t>(1 + number / inner % inner);
        std::fill(line.begin(), line.end(), V(0));
        for_distances(p, [&](std::int32_t z, std::int32_t before_z, std::int32_t dz) {
          for_distances(p, [&](std::int32_t y, std::int32_t before_y, std::int32_t dy) {
            for_distances(p, [&](std::int32_t of_x, std::int32_t before_x, std::int32_t dx) {
              order_levels::Kind const kind(fine, lattice, of_x, y, z);
              V const* const from = r + kind.unknown(1 - before_x, j - before_y, k - before_z);
              auto const weight = static_cast<V>(levels.weight[dx] * levels.weight[dy] * levels.weight[dz]);
              V* const to = line.data();
#pragma omp simd
              for (std::int32_t i = 0; i < inner; ++i)
                to[i] += weight * from[i];
            });
          });
        });
        std::int64_t const first = coarse.inner_unknown(lattice, 1, j, k);
        for (std::int32_t i = 0; i < inner; ++i)
          set(first + i, line[static_cast<std::size_t>(i)]);
      }
#pragma omp for schedule(static)
      for (std::int64_t on_rim = 0; on_rim < coarse.n_rim(); ++on_rim)
        set(coarse.n_inner() + on_rim,
            levels.fixed_of_coarse[on_rim] != 0 ? V(0) : order_levels::restricted(levels, r, on_rim, 0, 1));
    }
  }

  // x read and written, e read once: 8 + 4 / p^3 bytes a fine unknown in single precision.
  void prolong(Context&, OrderLevels const& levels, V const* e, V* x, std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    LatticeView const &fine = levels.fine, &coarse = levels.coarse;
    std::int32_t const p = fine.order, cells = fine.cells;
    std::int64_t const n_lines = fine.all_on_rim ? 0 : fine.n_lattices * cells * cells;
#pragma omp parallel
    {
      std::array<HostVector<V>, 4> corner;  // of the lines of vertices around a line of cells
      for (HostVector<V>& line : corner)
        line.resize(static_cast<std::size_t>(cells) + 1);
#pragma omp for schedule(static) nowait
      for (std::int64_t number = 0; number < n_lines; ++number) {
        std::int64_t const lattice = number / (cells * cells);
        auto const j = static_cast<std::int32_t>(number % cells), k = static_cast<std::int32_t>(number / cells % cells);
        for (std::int32_t c = 0; c < 4; ++c)
          for (std::int32_t i = 0; i <= cells; ++i)
            corner[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)] = e[coarse.unknown(lattice, i, j + c % 2, k + c / 2)];
        auto const weights = [&](std::int32_t d) {
          return std::array<double, 2>{levels.weight[d], d == 0 ? 0.0 : levels.weight[p - d]};
        };
        for (std::int32_t z = k == 0 ? 1 : 0; z < p; ++z)
          for (std::int32_t y = j == 0 ? 1 : 0; y < p; ++y)
            for (std::int32_t of_x = 0; of_x < p; ++of_x) {
              auto const wx = weights(of_x), wy = weights(y), wz = weights(z);
              V w[4][2];
              for (std::size_t c = 0; c < 4; ++c)
                for (std::size_t end = 0; end < 2; ++end)
                  w[c][end] = static_cast<V>(wx[end] * wy[c % 2] * wz[c / 2]);
              V* const to = x + order_levels::Kind(fine, lattice, of_x, y, z).unknown(0, j, k);
              V const *const e0 = corner[0].data(), *const e1 = corner[1].data(), *const e2 = corner[2].data(),
                             *const e3 = corner[3].data();
#pragma omp simd
              for (std::int32_t i = of_x == 0 ? 1 : 0; i < cells; ++i)
                to[i] += w[0][0] * e0[i] + w[1][0] * e1[i] + w[2][0] * e2[i] + w[3][0] * e3[i] + w[0][1] * e0[i + 1] +
                         w[1][1] * e1[i + 1] + w[2][1] * e2[i + 1] + w[3][1] * e3[i + 1];
            }
      }
#pragma omp for schedule(static)
      for (std::int64_t on_rim = 0; on_rim < fine.n_rim(); ++on_rim)
        x[fine.n_inner() + on_rim] += order_levels::prolonged(levels, e, on_rim);
    }
  }

private:
  /// Calls visit(residue, cells before, |distance|) for the distances -(p - 1) ... p - 1 of fine nodes from a vertex.
  template <class Visit>
  static void for_distances(std::int32_t p, Visit const& visit) {
    for (std::int32_t d = 1 - p; d < p; ++d)
      visit(d < 0 ? p + d : d, d < 0 ? 1 : 0, d < 0 ? -d : d);
  }
};

}  // namespace

template <>
OrderLevelKernels<float> const& OrderLevelKernels<float>::cpu() {
  static CpuOrderLevels<float> const kernels;
  return kernels;
}
template <>
OrderLevelKernels<double> const& OrderLevelKernels<double>::cpu() {
  static CpuOrderLevels<double> const kernels;
  return kernels;
}

}  // namespace poisson
