#include "gpu/kernels/box.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

constexpr int threads = 256;

/// One warp a row: lane l is the neighbour at (l % 3 - 1, l / 3 % 3 - 1, l / 9 - 1), so that a row is written at once.
__global__ void __launch_bounds__(threads) fill_kernel(Box const box, std::int64_t* __restrict__ row_ptr,
                                                       std::int32_t* __restrict__ columns, double* __restrict__ values) {
  std::int64_t const row = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  int const lane = threadIdx.x % 32;
  if (row > box.n_rows())
    return;
  std::int64_t const first = box.row_ptr(row);
  if (lane == 0)
    row_ptr[row] = first;
  std::int64_t const x = row % box.nx, y = row / box.nx % box.ny, z = row / box.nx / box.ny;
  int const dx = lane % 3 - 1, dy = lane / 3 % 3 - 1, dz = lane / 9 - 1;
  std::int64_t const x2 = x + dx, y2 = y + dy, z2 = z + dz;
  if (row == box.n_rows() || lane >= 27 || x2 < 0 || y2 < 0 || z2 < 0 || x2 >= box.nx || y2 >= box.ny || z2 >= box.nz)
    return;
  // Neighbours below are missing where a coordinate is 0.
  std::int64_t const of_x = dx + (x > 0), of_y = dy + (y > 0), of_z = dz + (z > 0);
  std::int64_t const e = first + (of_z * Box::neighbours(y, box.ny) + of_y) * Box::neighbours(x, box.nx) + of_x;
  columns[e] = static_cast<std::int32_t>((z2 * box.ny + y2) * box.nx + x2);
  values[e] = Box::weight((dx != 0) + (dy != 0) + (dz != 0));
}

__global__ void __launch_bounds__(threads) product_kernel(Box const box, double const* __restrict__ x, double* __restrict__ y) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= box.n_rows())
    return;
  std::int64_t const x1 = row % box.nx, y1 = row / box.nx % box.ny, z1 = row / box.nx / box.ny;
  double sum = 0;
#pragma unroll
  for (int dz = -1; dz <= 1; ++dz)
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
      for (int dx = -1; dx <= 1; ++dx) {
        std::int64_t const x2 = x1 + dx, y2 = y1 + dy, z2 = z1 + dz;
        if (x2 >= 0 && y2 >= 0 && z2 >= 0 && x2 < box.nx && y2 < box.ny && z2 < box.nz)
          sum = fma(Box::weight((dx != 0) + (dy != 0) + (dz != 0)), __ldg(x + (z2 * box.ny + y2) * box.nx + x2), sum);
      }
  y[row] = sum;
}

class CudaBox final : public BoxKernels {
public:
  void fill(Context& context, Box const& box, std::int64_t* row_ptr, std::int32_t* columns, double* values) const override {
    fill_kernel<<<cuda::n_blocks(box.n_rows() + 1, threads / 32), threads, 0, cuda::of(context).stream()>>>(box, row_ptr, columns,
                                                                                                            values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void product(Context& context, Box const& box, double const* x, double* y) const override {
    product_kernel<<<cuda::n_blocks(box.n_rows(), threads), threads, 0, cuda::of(context).stream()>>>(box, x, y);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

BoxKernels const& BoxKernels::cuda() {
  static CudaBox const kernels;
  return kernels;
}

}  // namespace poisson
