#include "gpu/kernels/lattice_levels.hpp"

#include <algorithm>
#include <vector>

namespace poisson {

namespace {

using namespace lattice_levels;

/// galerkin_value of the inner nodes of an inner line, where these and the nodes they are coupled to are free.
template <class V>
void line_of_values(LatticeLevels const& levels, V const* values, std::int64_t lattice, std::int32_t j, std::int32_t k,
                    int diagonal, std::vector<double>& sums) {
  LatticeView const& fine = levels.fine;
  std::int64_t const n = fine.n_lattices * fine.nodes_of_lattice();
  int const x = -half_stencil::dx(diagonal), y = -half_stencil::dy(diagonal), z = -half_stencil::dz(diagonal);
  std::int32_t const m = levels.coarse.m;
  std::fill(sums.begin(), sums.end(), 0.0);
  for_pairs(z, [&](int dz, int ez) {
    for_pairs(y, [&](int dy, int ey) {
      for_pairs(x, [&](int dx, int ex) {
        int const s = 9 * (2 * z + ez - dz) + 3 * (2 * y + ey - dy) + 2 * x + ex - dx;  // -13 .. 13
        double const weight = weight_at(dx) * weight_at(dy) * weight_at(dz) * weight_at(ex) * weight_at(ey) * weight_at(ez);
        V const* const from = s <= 0 ? values - s * n + node_number(fine, lattice, dx, 2 * j + dy, 2 * k + dz)
                                     : values + s * n + node_number(fine, lattice, 2 * x + ex, 2 * (j + y) + ey, 2 * (k + z) + ez);
        double* const sum = sums.data();
#pragma omp simd
        for (std::int32_t i = 1; i < m - 1; ++i)
          sum[i] += weight * static_cast<double>(from[2 * i]);
      });
    });
  });
}

template <class V>
class CpuLatticeLevels final : public LatticeLevelKernels<V> {
public:
  void find_free(Context&, LatticeView const& lattices, V const* values, std::uint8_t* free) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t unknown = 0; unknown < lattices.n_unknowns; ++unknown)
      free[unknown] = is_free(lattices, values, unknown) ? 1 : 0;
  }
  void copy_free(Context&, LatticeView const& fine, LatticeView const& coarse, std::uint8_t const* free_of_fine,
                 std::uint8_t* free_of_coarse) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t unknown = 0; unknown < coarse.n_unknowns; ++unknown)
      free_of_coarse[unknown] = free_of_fine[fine_unknown(fine, coarse, unknown)];
  }
  void coarsen(Context&, LatticeLevels const& levels, V const* values, V* coarse_values) const override {
    LatticeView const& coarse = levels.coarse;
    std::int32_t const m = coarse.m;
    std::int64_t const n_lines = coarse.n_lattices * m * m, n = n_lines * m;
#pragma omp parallel
    {
      std::vector<double> sums(static_cast<std::size_t>(m));
#pragma omp for schedule(static)
      for (std::int64_t line = 0; line < n_lines; ++line) {
        std::int64_t const lattice = line / m / m;
        auto const j = static_cast<std::int32_t>(line % m), k = static_cast<std::int32_t>(line / m % m);
        bool const inner = j > 0 && k > 0 && j + 1 < m && k + 1 < m;
        for (int d = 0; d < half_stencil::diagonals; ++d) {
          V* const out = coarse_values + d * n + line * m;
          if (inner)
            line_of_values(levels, values, lattice, j, k, d, sums);
          int const x = half_stencil::dx(d), y = half_stencil::dy(d), z = half_stencil::dz(d);
          for (std::int32_t i = 0; i < m; ++i) {
            // Both nodes are inner ones, and so are all fine nodes around them.
            bool const both_inner =
                inner && i > 0 && i + 1 < m && i - x > 0 && i - x + 1 < m && j - y > 0 && j - y + 1 < m && k - z > 0;
            out[i] = static_cast<V>(both_inner ? sums[static_cast<std::size_t>(i)]
                                               : galerkin_value(levels, values, lattice, {i, j, k}, d));
          }
        }
      }
    }
  }

  void merge(Context&, LatticeMerge const& merge, V const* of_pieces, V* values) const override {
    std::int32_t const m = merge.nodes();
    std::int64_t const n_lines = merge.n_lattices * m * m, n = n_lines * m;
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < n_lines; ++line)
      for (int d = 0; d < half_stencil::diagonals; ++d)
        for (std::int32_t i = 0; i < m; ++i)
          values[d * n + line * m + i] = merged_value(merge, of_pieces, line / m / m, i, static_cast<std::int32_t>(line % m),
                                                      static_cast<std::int32_t>(line / m % m), d);
  }

  // 1 reading of r (8 fine unknowns) and of the diagonal, 2 writings: 44 bytes a coarse unknown in single precision.
  void restrict_residual(Context&, LatticeLevels const& levels, V const* r, V const* diagonal, V factor, V* b, V* x,
                         std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    LatticeView const &fine = levels.fine, &coarse = levels.coarse;
    auto const set = [&](std::int64_t unknown, V value) {
      b[unknown] = value;
      x[unknown] = factor * value / diagonal[unknown];
    };
    std::int32_t const m = coarse.m, inner = m - 2;
    std::int64_t const n_lines = coarse.n_lattices * inner * inner, line_y = fine.m - 2, line_z = line_y * line_y;
#pragma omp parallel
    {
      // All fine nodes around an inner one are inner ones.
#pragma omp for schedule(static) nowait
      for (std::int64_t line = 0; line < n_lines; ++line) {
        std::int64_t const lattice = line / (inner * inner);
        auto const j = static_cast<std::int32_t>(1 + line % inner), k = static_cast<std::int32_t>(1 + line / inner % inner);
        std::int64_t const first = coarse.inner_unknown(lattice, 1, j, k), at = fine.inner_unknown(lattice, 2, 2 * j, 2 * k);
        for (std::int32_t i = 0; i < inner; ++i) {
          if (levels.free_of_coarse[first + i] == 0) {
            set(first + i, 0);
            continue;
          }
          V sum = 0;
          for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy) {
              V const* const of_line = r + at + dz * line_z + dy * line_y + 2 * i;
              sum += static_cast<V>(weight_at(dy) * weight_at(dz)) * (of_line[0] + V(0.5) * (of_line[-1] + of_line[1]));
            }
          set(first + i, sum);
        }
      }
#pragma omp for schedule(static)
      for (std::int64_t unknown = coarse.n_inner(); unknown < coarse.n_unknowns; ++unknown)
        set(unknown, restricted(levels, r, unknown));
    }
  }

  // x read and written, e read once: 8 1/2 bytes a fine unknown in single precision.
  void prolong(Context&, LatticeLevels const& levels, V const* e, V* x, std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    LatticeView const &fine = levels.fine, &coarse = levels.coarse;
    std::int32_t const inner = fine.m - 2;
    std::int64_t const n_lines = fine.n_lattices * inner * inner;
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
      for (std::int64_t line = 0; line < n_lines; ++line) {
        std::int64_t const lattice = line / (inner * inner);
        auto const j = static_cast<std::int32_t>(1 + line % inner), k = static_cast<std::int32_t>(1 + line / inner % inner);
        V* const of_line = x + fine.inner_unknown(lattice, 1, j, k);
        // The sum over the coarse lines around; what lies at a coarse node takes one of its values, what lies between two the mean.
        V const weight = static_cast<V>(weight_at(j % 2) * weight_at(k % 2));
        auto const at = [&](std::int32_t i) {
          V sum = 0;
          for (int z = 0; z <= k % 2; ++z)
            for (int y = 0; y <= j % 2; ++y)
              sum += e[coarse.unknown(lattice, i, j / 2 + y, k / 2 + z)];
          return weight * sum;
        };
        V left = at(0);
        for (std::int32_t i = 0; 2 * i + 1 < fine.m; ++i) {
          V const right = at(i + 1);
          of_line[2 * i] += V(0.5) * (left + right);
          if (2 * i + 2 <= inner)
            of_line[2 * i + 1] += right;
          left = right;
        }
      }
#pragma omp for schedule(static)
      for (std::int64_t unknown = fine.n_inner(); unknown < fine.n_unknowns; ++unknown)
        x[unknown] += prolonged(levels, e, unknown);
    }
  }
};

}  // namespace

template <>
LatticeLevelKernels<float> const& LatticeLevelKernels<float>::cpu() {
  static CpuLatticeLevels<float> const kernels;
  return kernels;
}
template <>
LatticeLevelKernels<double> const& LatticeLevelKernels<double>::cpu() {
  static CpuLatticeLevels<double> const kernels;
  return kernels;
}

}  // namespace poisson
