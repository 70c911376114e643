#include "gpu/kernels/block.hpp"

#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/half_cds.hpp"

namespace poisson {

namespace {

constexpr int threads = 256;

/// Of joined() nodes. A thread a node of a vector; a node's number has 32 bits, of which divisions are quick.
template <class From, class To>
__global__ void copy_kernel(CommonNodes nodes, From const* from, To* to, std::int32_t const* stop) {
  if (stop != nullptr && *stop != 0)
    return;
  std::uint32_t const node = blockIdx.x * threads + threadIdx.x;
  if (node >= nodes.size())
    return;
  from += nodes.first_from + blockIdx.y * nodes.vector_from;
  to += nodes.first_to + blockIdx.y * nodes.vector_to;
  if (nodes.count[1] == 1 && nodes.count[2] == 1) {
    to[node] = static_cast<To>(from[node]);
    return;
  }
  auto const nx = static_cast<std::uint32_t>(nodes.count[0]), ny = static_cast<std::uint32_t>(nodes.count[1]);
  std::uint32_t const line = node / nx, i = node - line * nx, k = line / ny, j = line - k * ny;
  to[k * nodes.plane_to + j * nodes.line_to + i] = static_cast<To>(from[k * nodes.plane_from + j * nodes.line_from + i]);
}

/// A thread a row.
template <class V>
__global__ void entries_kernel(CsrView entries, std::int32_t const* rows, CommonNodes own, std::int64_t nx, std::int64_t ny,
                               std::int64_t n, std::int32_t const* columns, V* values) {
  std::int64_t const r = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (r >= entries.n_rows)
    return;
  std::int64_t const row = place_of(own, rows[r]);
  for (std::int64_t k = entries.row_ptr[r]; k < entries.row_ptr[r + 1]; ++k)
    if (int const s = diagonal_between(row, columns[entries.columns[k]], nx, ny); s >= 0)
      values[s * n + row] = static_cast<V>(entries.values[k]);
}

struct Nodes {
  std::int32_t n[3];
};

template <class V>
__global__ void clip_kernel(Nodes nodes, V* values) {
  std::int64_t const n = std::int64_t{nodes.n[0]} * nodes.n[1] * nodes.n[2];
  std::uint32_t const node = blockIdx.x * threads + threadIdx.x;
  if (node >= n)
    return;
  auto const nx = static_cast<std::uint32_t>(nodes.n[0]), ny = static_cast<std::uint32_t>(nodes.n[1]);
  std::uint32_t const line = node / nx, of_plane = line / ny;
  auto const i = static_cast<std::int32_t>(node - line * nx), j = static_cast<std::int32_t>(line - of_plane * ny),
             k = static_cast<std::int32_t>(of_plane);
  if (i > 0 && i + 1 < nodes.n[0] && j > 0 && j + 1 < nodes.n[1] && k > 0)
    return;
  for (int s = 0; s < half_stencil::diagonals; ++s) {
    std::int64_t const x = i - half_stencil::dx(s), y = j - half_stencil::dy(s), z = k - half_stencil::dz(s);
    if (x < 0 || x >= nodes.n[0] || y < 0 || y >= nodes.n[1] || z < 0)
      values[s * n + node] = -V(0);
  }
}

/// A thread a node.
__global__ void list_kernel(CommonNodes nodes, std::int32_t* places) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < nodes.size())
    places[i] = static_cast<std::int32_t>(place_of(nodes, i));
}

template <class V>
class CudaBlock final : public BlockKernels<V> {
public:
  void copy(Context& context, CommonNodes const& nodes, V const* from, V* to) const override {
    launch_copy(context, nodes, from, to, nullptr);
  }
  void copy_from_double(Context& context, CommonNodes const& nodes, double const* from, V* to) const override {
    launch_copy(context, nodes, from, to, nullptr);
  }
  void copy_to_double(Context& context, CommonNodes const& nodes, V const* from, double* to,
                      std::int32_t const* stop) const override {
    launch_copy(context, nodes, from, to, stop);
  }
  void add_entries(Context& context, CsrView const& entries, std::int32_t const* rows, CommonNodes const& own,
                   std::array<std::int32_t, 3> const& nodes, std::int32_t const* columns, V* values) const override {
    if (entries.n_rows == 0)
      return;
    entries_kernel<V><<<cuda::n_blocks(entries.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(
        entries, rows, own, nodes[0], nodes[1], std::int64_t{nodes[0]} * nodes[1] * nodes[2], columns, values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void clip(Context& context, std::array<std::int32_t, 3> const& nodes, V* values) const override {
    Nodes const box{{nodes[0], nodes[1], nodes[2]}};
    std::int64_t const n = std::int64_t{box.n[0]} * box.n[1] * box.n[2];
    clip_kernel<V><<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(box, values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void list(Context& context, CommonNodes const& nodes, std::int32_t* places) const override {
    if (nodes.size() == 0)
      return;
    list_kernel<<<cuda::n_blocks(nodes.size(), threads), threads, 0, cuda::of(context).stream()>>>(nodes, places);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  /// Threads for n nodes of every vector.
  static dim3 grid(std::int64_t n, std::int32_t vectors) {
    return {static_cast<unsigned>(cuda::n_blocks(n, threads)), static_cast<unsigned>(vectors), 1};
  }
  template <class From, class To>
  static void launch_copy(Context& context, CommonNodes const& nodes, From const* from, To* to, std::int32_t const* stop) {
    if (nodes.size() == 0)
      return;
    copy_kernel<From, To>
        <<<grid(nodes.size(), nodes.vectors), threads, 0, cuda::of(context).stream()>>>(joined(nodes), from, to, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

template <>
BlockKernels<float> const& BlockKernels<float>::cuda() {
  static CudaBlock<float> const kernels;
  return kernels;
}
template <>
BlockKernels<double> const& BlockKernels<double>::cuda() {
  static CudaBlock<double> const kernels;
  return kernels;
}

}  // namespace poisson
