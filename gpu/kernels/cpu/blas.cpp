#include "gpu/kernels/blas.hpp"

#include "gpu/kernels/cpu/lapack.hpp"

#include <cassert>
#include <limits>

namespace poisson {

namespace {

int narrow(std::int64_t n) {
  assert(n >= 0 && n <= std::numeric_limits<int>::max());
  return static_cast<int>(n);
}

class CpuBlas final : public BlasKernels {
public:
  void gemm(Context&, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
            double const* a, std::int64_t lda, double const* b, std::int64_t ldb, double beta, double* c,
            std::int64_t ldc) const override {
    if (m == 0 || n == 0)
      return;
    int const sizes[] = {narrow(m), narrow(n), narrow(k)}, leading[] = {narrow(lda), narrow(ldb), narrow(ldc)};
    lapack().dgemm(transpose_a ? "T" : "N", transpose_b ? "T" : "N", &sizes[0], &sizes[1], &sizes[2], &alpha, a, &leading[0], b,
                   &leading[1], &beta, c, &leading[2]);
  }

  void gemm_batched(Context& context, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                    double alpha, double const* a, std::int64_t lda, std::int64_t stride_a, double const* b, std::int64_t ldb,
                    std::int64_t stride_b, double beta, double* c, std::int64_t ldc, std::int64_t stride_c,
                    std::int64_t count) const override {
    for (std::int64_t i = 0; i < count; ++i)
      gemm(context, transpose_a, transpose_b, m, n, k, alpha, a + i * stride_a, lda, b + i * stride_b, ldb, beta, c + i * stride_c,
           ldc);
  }
};

}  // namespace

BlasKernels const& BlasKernels::cpu() {
  static CpuBlas const kernels;
  return kernels;
}

}  // namespace poisson
