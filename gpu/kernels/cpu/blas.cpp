#include "gpu/kernels/blas.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <limits>

extern "C" void dgemm_(char const* transpose_a, char const* transpose_b, int const* m, int const* n, int const* k,
                       double const* alpha, double const* a, int const* lda, double const* b, int const* ldb, double const* beta,
                       double* c, int const* ldc);

// OpenBLAS's own, absent (null) where another BLAS is linked.
extern "C" {
__attribute__((weak)) char* openblas_get_corename();
__attribute__((weak)) void gotoblas_dynamic_init();
__attribute__((weak)) void gotoblas_dynamic_quit();
}

namespace poisson {

namespace {

/// OpenBLAS chooses its kernels by the processor's model number. For one newer than itself it takes those of 2004, with a fifth of
/// the speed (Debian 12's on a Xeon of 2023). Then it is told to choose again, by what the processor can do; before any thread is
/// there.
bool const chosen_again = [] {
  if (openblas_get_corename == nullptr || gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr ||
      std::getenv("OPENBLAS_CORETYPE") != nullptr || std::strcmp(openblas_get_corename(), "Prescott") != 0)
    return false;
  bool const wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
    return false;
  setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");
  return true;
}();

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
    dgemm_(transpose_a ? "T" : "N", transpose_b ? "T" : "N", &sizes[0], &sizes[1], &sizes[2], &alpha, a, &leading[0], b,
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
