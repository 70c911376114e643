#include "gpu/kernels/block_rim.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

constexpr int threads = 128;

/// A thread a row.
template <class Rows>
__global__ void __launch_bounds__(threads)
    fill_kernel(__grid_constant__ BlockRim const rim, __grid_constant__ Rows const rows, block_rim::Couplings to,
                std::int64_t n_couplings, std::int64_t* not_finite) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t == 0)
    to.row_ptr[rim.size()] = n_couplings;
  if (t < rim.size() && !block_rim::fill_row(rim, rows, t, to))
    atomicMin(reinterpret_cast<unsigned long long*>(not_finite), static_cast<unsigned long long>(to.rows[t]));
}

template <class Rows>
__global__ void __launch_bounds__(threads)
    residual_kernel(__grid_constant__ BlockRim const rim, __grid_constant__ Rows const rows, CsrView couplings, double const* x,
                    double const* x_low, double const* b, double* r) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= rim.size())
    return;
  std::int64_t const row = rim.row(rim(t));
  r[row] = block_rim::residual(rim, rows, couplings, t, x, x_low, b[row]);
}

/// A thread a node.
__global__ void __launch_bounds__(threads) without_jumps_kernel(__grid_constant__ block_rim::TiedBox const box,
                                                                __grid_constant__ block_rim::HalfRows const rows, double* b) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < box.n())
    if (box_rows::Node const node = box.node(i); box.is_near_tied(node))
      b[i] = block_rim::without_jumps(box, rows, node, b[i]);
}
__global__ void __launch_bounds__(threads) fold_kernel(__grid_constant__ block_rim::TiedBox const box, double* values, double* b) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < box.n())
    block_rim::fold_row(box, box.node(i), values, b);
}
__global__ void __launch_bounds__(threads) clear_kernel(__grid_constant__ block_rim::TiedBox const box, double* values, double* b) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < box.n())
    block_rim::clear_ties(box, box.node(i), values, b);
}
__global__ void __launch_bounds__(threads) set_tied_kernel(__grid_constant__ block_rim::TiedBox const box, double* u) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < box.n())
    block_rim::set_tied(box, box.node(i), u);
}

struct Offset {
  std::int64_t i[3];
};

/// A thread a node.
__global__ void __launch_bounds__(threads)
    face_rows_kernel(__grid_constant__ BoxStencilView const around, box_rows::Shell const shell_around, BoxElements const block,
                     box_rows::Shell const shell, std::int64_t n, Offset offset, double* rows) {
  std::int64_t const t = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (t >= n)
    return;
  box_rows::Node const node = shell(t);
  box_rows::Node const in_around{{node.i[0] + offset.i[0], node.i[1] + offset.i[1], node.i[2] + offset.i[2]}};
  std::int64_t const number = shell_around.number(in_around);
  for (int e = 0; e < 27; ++e) {
    std::int64_t const other[3] = {node.i[0] + e % 3 - 1, node.i[1] + e / 3 % 3 - 1, node.i[2] + e / 9 - 1};
    bool inside = true;
    for (int d = 0; d < 3; ++d)
      inside = inside && other[d] >= 0 && other[d] < block.nodes[d];
    rows[e * n + t] = !inside       ? -0.0
                      : number >= 0 ? around.face_rows[e * around.n_face_rows + number]
                                    : box_rows::inner_entry(around, in_around, e);
  }
}

class CudaBlockRim final : public BlockRimKernels {
public:
  void fill(Context& context, BlockRim const& rim, BoxStencilView const& around, block_rim::Couplings const& to,
            std::int64_t* not_finite) const override {
    launch_fill(context, rim, block_rim::StencilRows(around), to, not_finite);
  }
  void fill(Context& context, BlockRim const& rim, std::array<std::int64_t, 3> const& nodes, double const* around,
            block_rim::Couplings const& to, std::int64_t* not_finite) const override {
    launch_fill(context, rim, block_rim::HalfRows(nodes, around), to, not_finite);
  }

  void fill(Context& context, BlockRim const& rim, block_rim::FoldedRows const& rows, block_rim::Couplings const& to,
            std::int64_t* not_finite) const override {
    launch_fill(context, rim, rows, to, not_finite);
  }

  void fold(Context& context, block_rim::TiedBox const& box, double* values, double* b) const override {
    auto const stream = cuda::of(context).stream();
    auto const blocks = cuda::n_blocks(box.n(), threads);
    if (values != nullptr && (box.jump[0] != 0 || box.jump[1] != 0 || box.jump[2] != 0)) {
      without_jumps_kernel<<<blocks, threads, 0, stream>>>(
          box, block_rim::HalfRows(box.nodes[0], box.nodes[1], box.nodes[2], values), b);
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    fold_kernel<<<blocks, threads, 0, stream>>>(box, values, b);
    POISSON_CUDA_CHECK(cudaGetLastError());
    clear_kernel<<<blocks, threads, 0, stream>>>(box, values, b);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  void set_tied(Context& context, block_rim::TiedBox const& box, double* u) const override {
    set_tied_kernel<<<cuda::n_blocks(box.n(), threads), threads, 0, cuda::of(context).stream()>>>(box, u);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void residual(Context& context, BlockRim const& rim, BoxStencilView const& block, CsrView const& couplings, double const* x,
                double const* x_low, double const* b, double* r) const override {
    launch_residual(context, rim, block_rim::StencilRows(block), couplings, x, x_low, b, r);
  }
  void residual(Context& context, BlockRim const& rim, std::array<std::int64_t, 3> const& nodes, double const* block,
                CsrView const& couplings, double const* x, double const* x_low, double const* b, double* r) const override {
    launch_residual(context, rim, block_rim::HalfRows(nodes, block), couplings, x, x_low, b, r);
  }

  void fill_face_rows(Context& context, BoxStencilView const& around, BoxElements const& block,
                      std::array<std::int64_t, 3> const& offset, double* rows) const override {
    box_rows::Shell const shell(block, 0, block.nodes[2], 1), shell_around(around.box, 0, around.box.nodes[2], 1);
    std::int64_t const n = shell.size();
    face_rows_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(
        around, shell_around, block, shell, n, Offset{{offset[0], offset[1], offset[2]}}, rows);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  template <class Rows>
  static void launch_fill(Context& context, BlockRim const& rim, Rows const& rows, block_rim::Couplings const& to,
                          std::int64_t* not_finite) {
    fill_kernel<<<cuda::n_blocks(rim.size() + 1, threads), threads, 0, cuda::of(context).stream()>>>(rim, rows, to,
                                                                                                     rim.n_couplings(), not_finite);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  template <class Rows>
  static void launch_residual(Context& context, BlockRim const& rim, Rows const& rows, CsrView const& couplings, double const* x,
                              double const* x_low, double const* b, double* r) {
    if (rim.size() == 0)
      return;
    residual_kernel<<<cuda::n_blocks(rim.size(), threads), threads, 0, cuda::of(context).stream()>>>(rim, rows, couplings, x, x_low,
                                                                                                     b, r);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

BlockRimKernels const& BlockRimKernels::cuda() {
  static CudaBlockRim const kernels;
  return kernels;
}

}  // namespace poisson
