#include "gpu/kernels/block.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/half_cds.hpp"

#include <algorithm>
#include <numeric>

namespace poisson {

namespace {

template <class From, class To>
void copy_nodes(CommonNodes const& nodes, From const* from, To* to) {
  std::int64_t const of_vector = std::int64_t{nodes.count[1]} * nodes.count[2], lines = of_vector * nodes.vectors;
#pragma omp parallel for schedule(static) if (nodes.size() >= cpu::work_worth_threads)
  for (std::int64_t line = 0; line < lines; ++line) {
    std::int64_t const v = line / of_vector, j = line % of_vector % nodes.count[1], k = line % of_vector / nodes.count[1];
    From const* const source = from + nodes.first_from + v * nodes.vector_from + k * nodes.plane_from + j * nodes.line_from;
    To* const target = to + nodes.first_to + v * nodes.vector_to + k * nodes.plane_to + j * nodes.line_to;
    for (std::int64_t i = 0; i < nodes.count[0]; ++i)
      target[i] = static_cast<To>(source[i]);
  }
}

template <class V>
class CpuBlock final : public BlockKernels<V> {
public:
  void copy(Context&, CommonNodes const& nodes, V const* from, V* to) const override { copy_nodes(nodes, from, to); }
  void copy_from_double(Context&, CommonNodes const& nodes, double const* from, V* to) const override {
    copy_nodes(nodes, from, to);
  }
  void copy_to_double(Context&, CommonNodes const& nodes, V const* from, double* to, std::int32_t const* stop) const override {
    if (*stop == 0)
      copy_nodes(nodes, from, to);
  }
  void add_entries(Context&, CsrView const& entries, std::int32_t const* rows, CommonNodes const& own,
                   std::array<std::int32_t, 3> const& nodes, std::int32_t const* columns, V* values) const override {
    std::int64_t const n = std::int64_t{nodes[0]} * nodes[1] * nodes[2];
#pragma omp parallel for schedule(static) if (entries.nnz >= cpu::work_worth_threads)
    for (std::int64_t r = 0; r < entries.n_rows; ++r) {
      std::int64_t const row = place_of(own, rows[r]);
      for (std::int64_t k = entries.row_ptr[r]; k < entries.row_ptr[r + 1]; ++k)
        if (int const s = diagonal_between(row, columns[entries.columns[k]], nodes[0], nodes[1]); s >= 0)
          values[s * n + row] = static_cast<V>(entries.values[k]);
    }
  }
  void clip(Context&, std::array<std::int32_t, 3> const& nodes, V* values) const override {
    std::int64_t const line = nodes[0], lines = std::int64_t{nodes[1]} * nodes[2], n = line * lines;
    for (int s = 0; s < half_stencil::diagonals; ++s)
#pragma omp parallel for schedule(static) if (n >= cpu::work_worth_threads)
      for (std::int64_t l = 0; l < lines; ++l) {
        std::int64_t const j = l % nodes[1] - half_stencil::dy(s), k = l / nodes[1] - half_stencil::dz(s);
        V* const of_line = values + s * n + l * line;
        if (j < 0 || j >= nodes[1] || k < 0)
          std::fill(of_line, of_line + line, -V(0));
        else if (half_stencil::dx(s) > 0)
          of_line[0] = -V(0);
        else if (half_stencil::dx(s) < 0)
          of_line[line - 1] = -V(0);
      }
  }
  void list(Context&, CommonNodes const& nodes, std::int32_t* places) const override {
    std::int64_t const line = nodes.count[0], lines = nodes.size() > 0 ? nodes.size() / line : 0;
#pragma omp parallel for schedule(static) if (nodes.size() >= cpu::work_worth_threads)
    for (std::int64_t l = 0; l < lines; ++l)
      std::iota(places + l * line, places + (l + 1) * line, static_cast<std::int32_t>(place_of(nodes, l * line)));
  }
};

}  // namespace

template <>
BlockKernels<float> const& BlockKernels<float>::cpu() {
  static CpuBlock<float> const kernels;
  return kernels;
}
template <>
BlockKernels<double> const& BlockKernels<double>::cpu() {
  static CpuBlock<double> const kernels;
  return kernels;
}

}  // namespace poisson
