#include "gpu/kernels/lattice_levels.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

using namespace lattice_levels;

constexpr int threads = 256;

__device__ std::int64_t own_number() {
  return std::int64_t{blockIdx.x} * threads + threadIdx.x;
}

template <class V>
__global__ void __launch_bounds__(threads)
    free_kernel(LatticeView const lattices, V const* __restrict__ values, std::uint8_t* free) {
  if (std::int64_t const unknown = own_number(); unknown < lattices.n_unknowns)
    free[unknown] = is_free(lattices, values, unknown) ? 1 : 0;
}

__global__ void __launch_bounds__(threads) copy_free_kernel(LatticeView const fine, LatticeView const coarse,
                                                            std::uint8_t const* free_of_fine, std::uint8_t* free_of_coarse) {
  if (std::int64_t const unknown = own_number(); unknown < coarse.n_unknowns)
    free_of_coarse[unknown] = free_of_fine[fine_unknown(fine, coarse, unknown)];
}

/// A row of blocks for each diagonal.
template <class V>
__global__ void __launch_bounds__(threads)
    coarsen_kernel(LatticeLevels const levels, V const* __restrict__ values, V* coarse_values) {
  std::int64_t const node = own_number(), m = levels.coarse.m, n = levels.coarse.n_lattices * m * m * m;
  if (node >= n)
    return;
  std::int32_t const c[3] = {static_cast<std::int32_t>(node % m), static_cast<std::int32_t>(node / m % m),
                             static_cast<std::int32_t>(node / (m * m) % m)};
  auto const d = static_cast<int>(blockIdx.y);
  coarse_values[d * n + node] = static_cast<V>(galerkin_value(levels, values, node / (m * m * m), c, d));
}

template <class V>
__global__ void __launch_bounds__(threads)
    restrict_kernel(LatticeLevels const levels, V const* __restrict__ r, V const* __restrict__ diagonal, V factor, V* b, V* x,
                    std::int32_t const* stop) {
  std::int64_t const unknown = own_number();
  if (*stop != 0 || unknown >= levels.coarse.n_unknowns)
    return;
  V sum = 0;
  if (unknown < levels.coarse.n_inner()) {  // all fine nodes around it are inner ones
    LatticeView::Node const node = levels.coarse.inner_node(unknown);
    std::int64_t const line = levels.fine.m - 2, plane = line * line;
    V const* const center = r + levels.fine.inner_unknown(node.lattice, 2 * node.i, 2 * node.j, 2 * node.k);
#pragma unroll
    for (int dz = -1; dz <= 1; ++dz)
#pragma unroll
      for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
        for (int dx = -1; dx <= 1; ++dx)
          sum += static_cast<V>(weight_at(dx) * weight_at(dy) * weight_at(dz)) * center[dz * plane + dy * line + dx];
    sum = levels.free_of_coarse[unknown] != 0 ? sum : V(0);
  } else
    sum = restricted(levels, r, unknown);
  b[unknown] = sum;
  x[unknown] = factor * sum / diagonal[unknown];
}

template <class V>
__global__ void __launch_bounds__(threads)
    prolong_kernel(LatticeLevels const levels, V const* __restrict__ e, V* __restrict__ x, std::int32_t const* stop) {
  std::int64_t const unknown = own_number();
  if (*stop == 0 && unknown < levels.fine.n_unknowns)
    x[unknown] += prolonged(levels, e, unknown);
}

/// Launches kernel(arguments) with a thread for each of n, in `rows` rows of blocks.
template <class... Parameters, class... Arguments>
void launch(Context& context, std::int64_t n, unsigned rows, void (*kernel)(Parameters...), Arguments... arguments) {
  if (n == 0)
    return;
  kernel<<<dim3(cuda::n_blocks(n, threads), rows), threads, 0, cuda::of(context).stream()>>>(arguments...);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

template <class V>
class CudaLatticeLevels final : public LatticeLevelKernels<V> {
public:
  void find_free(Context& context, LatticeView const& lattices, V const* values, std::uint8_t* free) const override {
    launch(context, lattices.n_unknowns, 1, free_kernel<V>, lattices, values, free);
  }
  void copy_free(Context& context, LatticeView const& fine, LatticeView const& coarse, std::uint8_t const* free_of_fine,
                 std::uint8_t* free_of_coarse) const override {
    launch(context, coarse.n_unknowns, 1, copy_free_kernel, fine, coarse, free_of_fine, free_of_coarse);
  }
  void coarsen(Context& context, LatticeLevels const& levels, V const* values, V* coarse_values) const override {
    launch(context, levels.coarse.n_lattices * levels.coarse.nodes_of_lattice(), half_stencil::diagonals, coarsen_kernel<V>, levels,
           values, coarse_values);
  }
  void restrict_residual(Context& context, LatticeLevels const& levels, V const* r, V const* diagonal, V factor, V* b, V* x,
                         std::int32_t const* stop) const override {
    launch(context, levels.coarse.n_unknowns, 1, restrict_kernel<V>, levels, r, diagonal, factor, b, x, stop);
  }
  void prolong(Context& context, LatticeLevels const& levels, V const* e, V* x, std::int32_t const* stop) const override {
    launch(context, levels.fine.n_unknowns, 1, prolong_kernel<V>, levels, e, x, stop);
  }
};

}  // namespace

template <>
LatticeLevelKernels<float> const& LatticeLevelKernels<float>::cuda() {
  static CudaLatticeLevels<float> const kernels;
  return kernels;
}
template <>
LatticeLevelKernels<double> const& LatticeLevelKernels<double>::cuda() {
  static CudaLatticeLevels<double> const kernels;
  return kernels;
}

}  // namespace poisson
