#include "gpu/kernels/refinement.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <cmath>

namespace poisson {

namespace {

class CpuRefinement final : public RefinementKernels {
public:
  void add(Context&, std::int64_t n, double sign, double* d, Pointer<DoubleDouble> x) const override {
    cpu::for_blocks(n, n * cpu::work_of<DoubleDouble>, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i) {
        store(x, i, load(x, i) + sign * d[i]);
        d[i] = 0;
      }
    });
  }

  void largest(Context&, std::int64_t n, double const* x, double* result) const override {
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest) if (n >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n; ++i)
      largest = std::max(largest, std::abs(x[i]));
    *result = largest;
  }
};

}  // namespace

RefinementKernels const& RefinementKernels::cpu() {
  static CpuRefinement const kernels;
  return kernels;
}

}  // namespace poisson
