#include "gpu/kernels/box_levels.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
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

template <class V>
class CpuBoxLevels final : public BoxLevelKernels<V> {
public:
  BoxLevelAnalysis analyse(Context&, BoxLevel<V> const& level, std::uint8_t* free) const override {
    std::int64_t const planes = level.nodes[2];
    std::vector<BoxLevelAnalysis> of_plane(static_cast<std::size_t>(planes));
#pragma omp parallel for schedule(static) if (100 * level.n() >= cpu::work_worth_threads)
    for (std::int64_t k = 0; k < planes; ++k) {
      BoxLevelAnalysis& result = of_plane[static_cast<std::size_t>(k)];
      for (std::int32_t j = 0; j < level.nodes[1]; ++j)
        for (std::int32_t i = 0; i < level.nodes[0]; ++i) {
          RowAnalysis const row = analyse_row(level, i, j, static_cast<std::int32_t>(k));
          free[level.number(i, j, static_cast<std::int32_t>(k))] = row.free ? 1 : 0;
          for (std::size_t d = 0; d < 3; ++d)
            result.coupling[d] += row.coupling[d];
          result.largest = std::max(result.largest, static_cast<double>(row.largest));
          result.bound = std::max(result.bound, static_cast<double>(row.bound));
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

  void coarsen(Context&, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, V* weights,
               std::uint8_t* free, V* values) const override {
    std::int64_t const n = coarse.n();
    for_lines(coarse, 1, [&](std::int32_t j, std::int32_t k) {
      for (std::int32_t i = 0; i < coarse.nodes[0]; ++i) {
        std::int64_t const at = coarse.number(i, j, k);
        free[at] = fine.free[fine.number(fine_node(coarsening.halved[0], fine.nodes[0], i),
                                         fine_node(coarsening.halved[1], fine.nodes[1], j),
                                         fine_node(coarsening.halved[2], fine.nodes[2], k))];
        weights[13 * n + at] = free[at];
      }
    });
    for (int between = 1; between <= 3; ++between)
      for_lines(coarse, 300, [&](std::int32_t j, std::int32_t k) {
        for (int place = 0; place < 27; ++place) {
          int const distance[3] = {place % 3 - 1, place / 3 % 3 - 1, place / 9 - 1};
          if (std::count(std::begin(distance), std::end(distance), 0) != 3 - between)
            continue;
          for (std::int32_t i = 0; i < coarse.nodes[0]; ++i)
            weights[place * n + coarse.number(i, j, k)] = interpolation_weight(fine, coarsening, coarse, {i, j, k}, distance);
        }
      });
    for_lines(coarse, 1000, [&](std::int32_t j, std::int32_t k) {
      for (std::int32_t i = 0; i < coarse.nodes[0]; ++i) {
        std::int64_t const at = coarse.number(i, j, k);
        double row[14] = {1, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0};
        if (free[at] != 0)
          galerkin_row(fine, coarsening, coarse, {i, j, k}, row);
        for (std::int64_t s = 0; s < 14; ++s)
          values[s * n + at] = static_cast<V>(row[s]);
      }
    });
  }

  void restrict_residual(Context&, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse,
                         V const* b, V const* y, V* r, std::int32_t const* stop) const override {
    if (*stop == 0)
      for_lines(coarse, 60, [&](std::int32_t j, std::int32_t k) {
        for (std::int32_t i = 0; i < coarse.nodes[0]; ++i) {
          std::int32_t const c[3] = {i, j, k};
          r[coarse.number(i, j, k)] = restricted(fine, coarsening, coarse, b, y, c);
        }
      });
  }

  void prolong(Context&, BoxLevel<V> const& fine, BoxCoarsening<V> const& coarsening, BoxLevel<V> const& coarse, V const* e, V* x,
               std::int32_t const* stop) const override {
    if (*stop == 0)
      for_lines(fine, 10, [&](std::int32_t j, std::int32_t k) {
        for (std::int32_t i = 0; i < fine.nodes[0]; ++i)
          if (std::int64_t const at = fine.number(i, j, k); fine.free[at] != 0)
            x[at] += prolonged(fine, coarsening, coarse, e, i, j, k);
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
