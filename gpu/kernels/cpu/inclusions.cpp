#include "gpu/kernels/inclusions.hpp"

#include <atomic>

namespace poisson {

namespace {

/// Threads that join nodes see each other's numbers sooner or later, which is enough.
struct Links {
  [[nodiscard]] std::int32_t load(std::int32_t* place) const {
    return std::atomic_ref<std::int32_t>(*place).load(std::memory_order_relaxed);
  }
  void store(std::int32_t* place, std::int32_t value) const {
    std::atomic_ref<std::int32_t>(*place).store(value, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int32_t exchange(std::int32_t* place, std::int32_t expected, std::int32_t value) const {
    std::atomic_ref<std::int32_t>(*place).compare_exchange_strong(expected, value, std::memory_order_relaxed);
    return expected;
  }
};

class CpuInclusions final : public InclusionKernels {
public:
  bool has_jump(Context&, std::int64_t n, std::int64_t line, std::int64_t plane, float const* diagonal,
                double ratio) const override {
    return finds_jump(n, line, plane, diagonal, ratio);
  }
  bool has_jump(Context&, std::int64_t n, std::int64_t line, std::int64_t plane, double const* diagonal,
                double ratio) const override {
    return finds_jump(n, line, plane, diagonal, ratio);
  }
  void begin(Context&, std::int64_t n, std::int32_t* parent) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      parent[i] = static_cast<std::int32_t>(i);
  }
  void join(Context&, BoxSlab const& slab, double strong, std::int32_t* parent) const override {
    for_rows(slab, [&](std::int64_t row) { inclusion_rows::join_row(Links(), slab, strong, row, parent); });
  }
  void find_roots(Context&, std::int64_t n, std::int32_t* parent) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      Links().store(parent + i, inclusion_rows::root_of(Links(), parent, static_cast<std::int32_t>(i)));
  }
  void mark_anchored(Context&, BoxSlab const& slab, double weak, std::int32_t const* root, std::uint8_t* anchored) const override {
    for_rows(slab, [&](std::int64_t row) {
      std::atomic_ref<std::uint8_t> mark(anchored[root[row + slab.shift()]]);
      if (mark.load(std::memory_order_relaxed) == 0 && inclusion_rows::is_anchored(slab, weak, row, root))
        mark.store(1, std::memory_order_relaxed);
    });
  }
  std::int64_t collect(Context&, std::int64_t n, std::int32_t const* root, std::uint8_t const* anchored, std::int64_t capacity,
                       std::int32_t* found) const override {
    std::int64_t count = 0;
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      if (anchored[root[i]] == 0) {
        std::int64_t place = 0;
#pragma omp atomic capture
        place = count++;
        if (place < capacity) {
          found[2 * place] = static_cast<std::int32_t>(i);
          found[2 * place + 1] = root[i];
        }
      }
    return count;
  }
  void rows(Context&, BoxSlab const& slab, std::int64_t count, std::int32_t const* nodes, double* entries) const override {
    std::int64_t const plane = slab.plane();
#pragma omp parallel for schedule(static)
    for (std::int64_t c = 0; c < count; ++c)
      if (nodes[c] >= slab.begin * plane && nodes[c] < slab.end * plane)
        inclusion_rows::take_row(slab, nodes[c] - slab.shift(), entries + 27 * c);
  }
  void add(Context&, InclusionView const& inclusions, double const* r, double* z, std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
#pragma omp parallel
    {
#pragma omp for schedule(static)
      for (std::int32_t c = 0; c < inclusions.n_chunks; ++c) {
        double sum = 0;
        for (std::int32_t i = inclusions.chunk_first[c]; i < inclusions.chunk_first[c + 1]; ++i)
          sum += inclusions.values[i] * r[inclusions.nodes[i]];
        inclusions.sums[c] = sum;
      }
#pragma omp for schedule(static)
      for (std::int32_t i = 0; i < inclusions.n_inclusions; ++i) {
        double sum = 0;
        for (std::int32_t c = inclusions.chunks_of[i]; c < inclusions.chunks_of[i + 1]; ++c)
          sum += inclusions.sums[c];
        inclusions.factors[i] = inclusions.inverse_energy[i] * sum;
      }
#pragma omp for schedule(static)
      for (std::int32_t k = 0; k < inclusions.n_rows; ++k) {
        double sum = 0;
        for (std::int32_t j = inclusions.row_first[k]; j < inclusions.row_first[k + 1]; ++j)
          sum += inclusions.row_values[j] * inclusions.factors[inclusions.of_row[j]];
        z[inclusions.rows[k]] += sum;
      }
    }
  }

private:
  template <class V>
  static bool finds_jump(std::int64_t n, std::int64_t line, std::int64_t plane, V const* diagonal, double ratio) {
    bool found = false;
#pragma omp parallel for schedule(static) reduction(|| : found)
    for (std::int64_t i = 0; i < n; ++i)
      found = found || inclusion_rows::has_jump(n, line, plane, diagonal, ratio, i);
    return found;
  }
  /// Calls action(row) for the nodes of the slab that are looked at, by their numbers in its level.
  template <class Action>
  static void for_rows(BoxSlab const& slab, Action const& action) {
    std::int64_t const plane = slab.plane(), begin = (slab.begin - slab.first_plane) * plane,
                       end = (slab.end - slab.first_plane) * plane;
#pragma omp parallel for schedule(static)
    for (std::int64_t row = begin; row < end; ++row)
      action(row);
  }
};

}  // namespace

InclusionKernels const& InclusionKernels::cpu() {
  static CpuInclusions const kernels;
  return kernels;
}

}  // namespace poisson
