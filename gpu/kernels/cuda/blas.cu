#include "gpu/kernels/blas.hpp"

#include "gpu/kernels/cuda/cublas.cuh"

#include <cassert>
#include <limits>
#include <memory>
#include <string>

namespace poisson {

namespace {

using cuda::check, cuda::cublas;

/// The context's handle, made when it is first needed: that takes a while and some memory.
cublasHandle_t handle_of(cuda::CudaContext& device) {
  std::shared_ptr<void>& kept = device.blas();
  if (kept == nullptr) {
    if (std::string const& missing = cublas().library.missing(); !missing.empty())
      throw EnvironmentError(missing + "; use the cpu backend, or install the CUDA toolkit's libraries");
    cublasHandle_t handle = nullptr;
    check(cublas().Create(&handle), "cublasCreate");
    kept = std::shared_ptr<void>(handle, [](void* h) { static_cast<void>(cublas().Destroy(static_cast<cublasHandle_t>(h))); });
    check(cublas().SetStream(handle, device.stream()), "cublasSetStream");
  }
  return static_cast<cublasHandle_t>(kept.get());
}

int narrow(std::int64_t n) {
  assert(n >= 0 && n <= std::numeric_limits<int>::max());
  return static_cast<int>(n);
}

class CudaBlas final : public BlasKernels {
public:
  void gemm(Context& context, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
            double const* a, std::int64_t lda, double const* b, std::int64_t ldb, double beta, double* c,
            std::int64_t ldc) const override {
    if (m == 0 || n == 0)
      return;
    auto const operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    check(cublas().Dgemm(handle_of(cuda::of(context)), operation(transpose_a), operation(transpose_b), narrow(m), narrow(n),
                         narrow(k), &alpha, a, narrow(lda), b, narrow(ldb), &beta, c, narrow(ldc)),
          "cublasDgemm");
  }

  void gemm_batched(Context& context, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                    double alpha, double const* a, std::int64_t lda, std::int64_t stride_a, double const* b, std::int64_t ldb,
                    std::int64_t stride_b, double beta, double* c, std::int64_t ldc, std::int64_t stride_c,
                    std::int64_t count) const override {
    if (m == 0 || n == 0 || count == 0)
      return;
    auto const operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    check(cublas().DgemmStridedBatched(handle_of(cuda::of(context)), operation(transpose_a), operation(transpose_b), narrow(m),
                                       narrow(n), narrow(k), &alpha, a, narrow(lda), stride_a, b, narrow(ldb), stride_b, &beta, c,
                                       narrow(ldc), stride_c, narrow(count)),
          "cublasDgemmStridedBatched");
  }
};

}  // namespace

BlasKernels const& BlasKernels::cuda() {
  static CudaBlas const kernels;
  return kernels;
}

}  // namespace poisson
