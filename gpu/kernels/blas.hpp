#pragma once

#include "gpu/core/context.hpp"
#include "gpu/kernels/backends.hpp"

#include <cstdint>

namespace poisson {

/// Dense matrix products by the platform's library: BLAS on the host, cuBLAS (loaded when first used) on a device.
class BlasKernels {
public:
  virtual ~BlasKernels() = default;
  /// See gemm below.
  virtual void gemm(Context& context, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                    double alpha, double const* a, std::int64_t lda, double const* b, std::int64_t ldb, double beta, double* c,
                    std::int64_t ldc) const = 0;
  /// See gemm_batched below.
  virtual void gemm_batched(Context& context, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                            double alpha, double const* a, std::int64_t lda, std::int64_t stride_a, double const* b,
                            std::int64_t ldb, std::int64_t stride_b, double beta, double* c, std::int64_t ldc,
                            std::int64_t stride_c, std::int64_t count) const = 0;

  static BlasKernels const& cpu();
  static BlasKernels const& cuda();
};

/// C = alpha op(A) op(B) + beta C, all column-major in the backend's memory; op(A) is m x k, op(B) k x n, C m x n. C is not read
/// where beta = 0. Leading dimensions are at least the rows of what is stored. Enqueues; C overlaps neither A nor B. Throws
/// EnvironmentError when the backend's library cannot be loaded.
inline void gemm(Context& context, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
                 double const* a, std::int64_t lda, double const* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc) {
  kernels_for<BlasKernels>(context).gemm(context, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/// `count` such products, of matrices `stride_a`, `stride_b` and `stride_c` entries after each other.
inline void gemm_batched(Context& context, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                         double alpha, double const* a, std::int64_t lda, std::int64_t stride_a, double const* b, std::int64_t ldb,
                         std::int64_t stride_b, double beta, double* c, std::int64_t ldc, std::int64_t stride_c,
                         std::int64_t count) {
  kernels_for<BlasKernels>(context).gemm_batched(context, transpose_a, transpose_b, m, n, k, alpha, a, lda, stride_a, b, ldb,
                                                 stride_b, beta, c, ldc, stride_c, count);
}

}  // namespace poisson
