#include "gpu/kernels/check.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <bit>
#include <cstdint>

namespace poisson {

namespace {

constexpr int threads = 256;

/// One thread a row: as plain as can be, since speed is of no concern. Errors are not negative, and then doubles are in the order
/// of their bits.
__global__ void error_kernel(CsrView a, double const* x, double const* y, unsigned long long* largest) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= a.n_rows)
    return;
  double sum = 0, absolute = 0;
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    double const term = a.values[e] * x[a.columns[e]];
    sum += term;
    absolute += fabs(term);
  }
  double const difference = fabs(y[row] - sum);
  double error = difference == 0 ? 0 : difference / absolute;
  if (!isfinite(error))
    error = __longlong_as_double(0x7ff0000000000000ll);
  auto const bits = static_cast<unsigned long long>(__double_as_longlong(error));
  if (bits > *largest)  // an old value only costs an atomic that changes nothing
    atomicMax(largest, bits);
}

__global__ void residual_kernel(CsrView a, double const* x, double const* x_lo, double const* b, double* r) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row < a.n_rows)
    r[row] = residual_of_row(a, row, x, x_lo, b[row]);
}

__global__ void residual_kernel(HalfCdsView a, std::int64_t n_offsets, double const* x, double const* x_lo, double const* b,
                                double* r) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row < a.n)
    r[row] = residual_of_row(a, n_offsets, row, x, x_lo, b[row]);
}

__global__ void residual_kernel(LatticeHalfCdsView a, double const* x, double const* x_lo, double const* b, double* r) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row < a.lattices.n_unknowns)
    r[row] = residual_of_row(a, row, x, x_lo, b[row]);
}

__global__ void products_kernel(LatticeHalfCdsView a, std::int64_t n, std::int32_t const* unknowns, double const* x,
                                double const* x_lo, DoubleDouble* out) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    out[i] = product_at(a, unknowns[i], x, x_lo);
}

class CudaCheck final : public CheckKernels {
public:
  double largest_error(Context& context, CsrView const& a, double const* x, double const* y) const override {
    if (a.n_rows == 0)
      return 0;
    Array<unsigned long long> largest(context, 1);
    largest.set_zero();
    error_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, x, y, largest.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    unsigned long long bits = 0;
    largest.download(std::span(&bits, 1));
    return std::bit_cast<double>(bits);
  }

  void residual(Context& context, CsrView const& a, double const* x, double const* x_lo, double const* b,
                double* r) const override {
    if (a.n_rows == 0)
      return;
    residual_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, x, x_lo, b, r);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void residual(Context& context, HalfCdsView const& a, double const* x, double const* x_lo, double const* b,
                double* r) const override {
    if (a.n == 0)
      return;
    residual_kernel<<<cuda::n_blocks(a.n, threads), threads, 0, cuda::of(context).stream()>>>(
        a, static_cast<std::int64_t>(a.offsets.size()), x, x_lo, b, r);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void residual(Context& context, LatticeHalfCdsView const& a, double const* x, double const* x_lo, double const* b,
                double* r) const override {
    std::int64_t const n = a.lattices.n_unknowns;
    if (n == 0)
      return;
    residual_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(a, x, x_lo, b, r);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void products_at(Context& context, LatticeHalfCdsView const& a, std::int64_t n, std::int32_t const* unknowns, double const* x,
                   double const* x_lo, DoubleDouble* out) const override {
    if (n == 0)
      return;
    products_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(a, n, unknowns, x, x_lo, out);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

CheckKernels const& CheckKernels::cuda() {
  static CudaCheck const kernels;
  return kernels;
}

}  // namespace poisson
