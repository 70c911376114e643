#include "gpu/kernels/vectors.hpp"

#include "gpu/core/memory.hpp"
#include "gpu/kernels/host/host.hpp"

namespace poisson {

namespace {

class HostVectors final : public VectorKernels<double> {
public:
  void copy(Context&, std::int64_t n, double const* x, double* y) const override {
    parallel_copy(y, x, n * std::int64_t{sizeof(double)});
  }

  void invert(Context&, std::int64_t n, double* x) const override {
    host::for_blocks(n, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i)
        x[i] = 1 / x[i];
    });
  }

  void dot(Context& context, std::int64_t n, double const* x, double const* y, double* result) const override {
    *result = host::sum_blocks(context, n, [=](std::int64_t begin, std::int64_t end) {
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = begin; i < end; ++i)
        sum += x[i] * y[i];
      return sum;
    });
  }

  void distance_squared(Context& context, std::int64_t n, double const* x, double const* y, double* result) const override {
    *result = host::sum_blocks(context, n, [=](std::int64_t begin, std::int64_t end) {
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = begin; i < end; ++i)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
      return sum;
    });
  }
};

}  // namespace

template <>
VectorKernels<double> const& VectorKernels<double>::host() {
  static HostVectors const kernels;
  return kernels;
}

}  // namespace poisson
