#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/lattice_nodes.hpp"

namespace poisson {

namespace {

constexpr int threads = 256;

__global__ void __launch_bounds__(threads)
    put_rims_kernel(LatticeView const lattices, std::int64_t n, double const* __restrict__ on_rims, double* __restrict__ nodes) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place < n)
    lattice_nodes::put_rim(lattices, on_rims, place, nodes);
}

__global__ void __launch_bounds__(threads)
    place_kernel(LatticeView const lattices, std::int64_t n, std::int32_t const* __restrict__ places,
                 std::int32_t const* __restrict__ of, double const* __restrict__ x, double* __restrict__ nodes) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    lattice_nodes::place(lattices, places[i], x + 3 * std::int64_t{of[i]}, nodes);
}

/// A thread for each place in a line: neighbours write to neighbouring nodes. Nodes of a pass are not read by it.
__global__ void __launch_bounds__(threads)
    make_kernel(LatticeInterior const pass, std::int64_t in_line, std::int64_t n, double* nodes) {
  std::int64_t const item = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (item < n)
    lattice_interior::make(pass, item / in_line, item % in_line, nodes);
}

__global__ void __launch_bounds__(threads)
    copy_sides_kernel(LatticeView const lattices, std::int64_t n, std::int32_t const* __restrict__ sides,
                      double const* __restrict__ nodes, double* __restrict__ out) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    out[i] = lattice_nodes::of_side(lattices, sides, i, nodes);
}

class CudaLatticeNodes final : public LatticeNodeKernels {
public:
  void put_rims(Context& context, LatticeView const& lattices, double const* on_rims, double* nodes) const override {
    std::int64_t const n = lattices.n_lattices * lattices.rim().size();
    if (n == 0)
      return;
    put_rims_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(lattices, n, on_rims, nodes);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void place(Context& context, LatticeView const& lattices, std::int64_t n_copies, std::int32_t const* places,
             std::int32_t const* of, double const* x, double* nodes) const override {
    if (n_copies == 0)
      return;
    place_kernel<<<cuda::n_blocks(n_copies, threads), threads, 0, cuda::of(context).stream()>>>(lattices, n_copies, places, of, x,
                                                                                                nodes);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void make(Context& context, LatticeInterior const& pass, double* nodes) const override {
    std::int64_t const n = pass.n_lines() * pass.n_in_line();
    if (n <= 0)
      return;
    make_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(pass, pass.n_in_line(), n, nodes);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void copy_sides(Context& context, LatticeView const& lattices, std::int64_t n_sides, std::int32_t const* sides,
                  double const* nodes, double* out) const override {
    std::int64_t const n = n_sides * 3 * (lattices.order + 1) * lattices.m * lattices.m;
    if (n == 0)
      return;
    copy_sides_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(lattices, n, sides, nodes, out);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

LatticeNodeKernels const& LatticeNodeKernels::cuda() {
  static CudaLatticeNodes const kernels;
  return kernels;
}

}  // namespace poisson
