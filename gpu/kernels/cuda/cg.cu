#include "gpu/kernels/cg.hpp"

#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>

namespace poisson {

namespace {

constexpr int threads = 256;

struct Reduction {
  double* partial;
  unsigned* counter;
};

template <bool jacobi>
__device__ void add_to(double (&sums)[4], double r, double const* __restrict__ inverse_diagonal, std::int64_t i) {
  sums[0] += r;
  sums[1] = fma(r, r, sums[1]);
  if (jacobi) {
    double const dr = __ldg(inverse_diagonal + i) * r;
    sums[2] += dr;
    sums[3] = fma(dr, r, sums[3]);
  }
}

template <bool jacobi>
__global__ void __launch_bounds__(threads)
    begin_kernel(CgScalars<double>* s, std::int64_t n, double const* __restrict__ r, double const* __restrict__ inverse_diagonal,
                 double* history, Reduction reduction) {
  double sums[5] = {0, 0, 0, 0, 0};
  std::int64_t const stride = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride) {
    double const value = r[i];
    double const d = jacobi ? inverse_diagonal[i] : 0;
    sums[0] += value;
    sums[1] = fma(value, value, sums[1]);
    sums[2] = fma(d, value, sums[2]);
    sums[3] = fma(d * value, value, sums[3]);
    sums[4] += d;
  }
  if (cuda::grid_sum<threads>(sums, reduction.partial, reduction.counter)) {
    s->sum_inverse_diagonal = sums[4];
    cg_begin(*s, CgSums<double>{sums[0], sums[1], sums[2], sums[3]}, history);
  }
}

template <bool jacobi>
__global__ void __launch_bounds__(threads)
    update_kernel(CgScalars<double>* s, std::int64_t n, double const* __restrict__ p, double const* __restrict__ q,
                  double* __restrict__ x, double* __restrict__ r, double const* __restrict__ inverse_diagonal, double* history,
                  Reduction reduction) {
  // What is read here changes only in the last block, once all others are done, or not at all.
  if (s->stop != 0)
    return;
  double const dot = s->dot;
  if (cg_bad_curvature(dot)) {  // the same in every block: nothing is touched
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      s->curvature = dot;
      s->stop = static_cast<std::int32_t>(CgState::breakdown);
    }
    return;
  }
  double const alpha = s->rz / dot, mean = s->mean_r;
  double sums[4] = {0, 0, 0, 0};
  std::int64_t const stride = 2 * std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = 2 * (std::int64_t{blockIdx.x} * threads + threadIdx.x); i < n; i += stride) {
    if (i + 1 < n) {
      double2 const pi = __ldg(reinterpret_cast<double2 const*>(p + i)), qi = __ldg(reinterpret_cast<double2 const*>(q + i));
      double2 xi = *reinterpret_cast<double2*>(x + i), ri = *reinterpret_cast<double2*>(r + i);
      xi.x = fma(alpha, pi.x, xi.x);
      xi.y = fma(alpha, pi.y, xi.y);
      ri.x = fma(-alpha, qi.x, ri.x - mean);
      ri.y = fma(-alpha, qi.y, ri.y - mean);
      *reinterpret_cast<double2*>(x + i) = xi;
      *reinterpret_cast<double2*>(r + i) = ri;
      add_to<jacobi>(sums, ri.x, inverse_diagonal, i);
      add_to<jacobi>(sums, ri.y, inverse_diagonal, i + 1);
    } else {
      x[i] = fma(alpha, p[i], x[i]);
      r[i] = fma(-alpha, q[i], r[i] - mean);
      add_to<jacobi>(sums, r[i], inverse_diagonal, i);
    }
  }
  if (cuda::grid_sum<threads>(sums, reduction.partial, reduction.counter))
    cg_advance(*s, CgSums<double>{sums[0], sums[1], sums[2], sums[3]}, history);
}

template <bool jacobi>
__global__ void __launch_bounds__(threads)
    direction_kernel(CgScalars<double> const* s, std::int64_t n, double const* __restrict__ r,
                     double const* __restrict__ inverse_diagonal, double* __restrict__ p) {
  if (s->stop != 0)
    return;
  double const beta = s->beta, mean_r = s->mean_r, mean_z = s->mean_z;
  auto const next = [=](double ri, double di, double pi) {
    double const z = jacobi ? di * (ri - mean_r) - mean_z : ri - mean_r;
    return fma(beta, pi, z);
  };
  std::int64_t const i = 2 * (std::int64_t{blockIdx.x} * threads + threadIdx.x);
  if (i + 1 < n) {
    double2 const ri = __ldg(reinterpret_cast<double2 const*>(r + i));
    double2 const di = jacobi ? __ldg(reinterpret_cast<double2 const*>(inverse_diagonal + i)) : double2{1, 1};
    double2 pi = *reinterpret_cast<double2*>(p + i);
    pi.x = next(ri.x, di.x, pi.x);
    pi.y = next(ri.y, di.y, pi.y);
    *reinterpret_cast<double2*>(p + i) = pi;
  } else if (i < n)
    p[i] = next(r[i], jacobi ? inverse_diagonal[i] : 1, p[i]);
}

class CudaCg final : public CgKernels<double> {
public:
  void begin(Context& context, CgScalars<double>* scalars, std::int64_t n, double const* r, double const* inverse_diagonal,
             double* history) const override {
    auto& device = cuda::of(context);
    unsigned const blocks = reduction_blocks(device, n);
    auto const kernel = inverse_diagonal != nullptr ? begin_kernel<true> : begin_kernel<false>;
    kernel<<<blocks, threads, 0, device.stream()>>>(scalars, n, r, inverse_diagonal, history,
                                                    {device.partial_sums(5 * blocks), device.block_counter()});
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void update(Context& context, CgScalars<double>* scalars, std::int64_t n, double const* p, double const* q, double* x, double* r,
              double const* inverse_diagonal, double* history) const override {
    auto& device = cuda::of(context);
    unsigned const blocks = reduction_blocks(device, n);
    auto const kernel = inverse_diagonal != nullptr ? update_kernel<true> : update_kernel<false>;
    kernel<<<blocks, threads, 0, device.stream()>>>(scalars, n, p, q, x, r, inverse_diagonal, history,
                                                    {device.partial_sums(4 * blocks), device.block_counter()});
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void direction(Context& context, CgScalars<double> const* scalars, std::int64_t n, double const* r,
                 double const* inverse_diagonal, double* p) const override {
    auto const kernel = inverse_diagonal != nullptr ? direction_kernel<true> : direction_kernel<false>;
    kernel<<<std::max(1U, cuda::n_blocks(n, 2 * threads)), threads, 0, cuda::of(context).stream()>>>(scalars, n, r,
                                                                                                     inverse_diagonal, p);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  /// As many blocks as the device holds at once: the partition of the sums depends on the device and n only.
  static unsigned reduction_blocks(cuda::CudaContext const& device, std::int64_t n) {
    return std::min(std::max(1U, cuda::n_blocks(n, 2 * threads)), 8U * static_cast<unsigned>(device.multiprocessors()));
  }
};

}  // namespace

template <>
CgKernels<double> const& CgKernels<double>::cuda() {
  static CudaCg const kernels;
  return kernels;
}

}  // namespace poisson
