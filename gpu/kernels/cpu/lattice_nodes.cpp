#include "gpu/kernels/lattice_nodes.hpp"

namespace poisson {

namespace {

class CpuLatticeNodes final : public LatticeNodeKernels {
public:
  void put_rims(Context&, LatticeView const& lattices, double const* on_rims, double* nodes) const override {
    std::int64_t const n = lattices.n_lattices * lattices.rim().size();
#pragma omp parallel for schedule(static)
    for (std::int64_t at = 0; at < n; ++at)
      lattice_nodes::put_rim(lattices, on_rims, at, nodes);
  }

  void place(Context&, LatticeView const& lattices, std::int64_t n_copies, std::int32_t const* places, std::int32_t const* of,
             double const* x, double* nodes) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n_copies; ++i)
      lattice_nodes::place(lattices, places[i], x + 3 * std::int64_t{of[i]}, nodes);
  }

  void make(Context&, LatticeInterior const& pass, double* nodes) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < pass.n_lines(); ++line)
      for (std::int64_t i = 0; i < pass.n_in_line(); ++i)
        lattice_interior::make(pass, line, i, nodes);
  }

  void copy_sides(Context&, LatticeView const& lattices, std::int64_t n_sides, std::int32_t const* sides, double const* nodes,
                  double* out) const override {
    std::int64_t const n = n_sides * 3 * (lattices.order + 1) * lattices.m * lattices.m;
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = lattice_nodes::of_side(lattices, sides, i, nodes);
  }
};

}  // namespace

LatticeNodeKernels const& LatticeNodeKernels::cpu() {
  static CpuLatticeNodes const kernels;
  return kernels;
}

}  // namespace poisson
