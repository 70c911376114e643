#include "gpu/kernels/blas.hpp"

#include "gpu/core/error.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/dynamic_library.hpp"

#include <cublas_v2.h>

#include <cassert>
#include <limits>
#include <memory>
#include <string>

namespace poisson {

namespace {

struct CuBlas {
  cuda::DynamicLibrary library{"cuBLAS",
                               {"libcublas.so.13", "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so.13",
                                "/usr/local/cuda/lib64/libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"}};
  decltype(&cublasGetStatusString) GetStatusString = nullptr;
  decltype(&cublasCreate_v2) Create = nullptr;
  decltype(&cublasDestroy_v2) Destroy = nullptr;
  decltype(&cublasSetStream_v2) SetStream = nullptr;
  decltype(&cublasDgemm_v2) Dgemm = nullptr;
  decltype(&cublasDgemmStridedBatched) DgemmStridedBatched = nullptr;

  CuBlas() {
    library.find(GetStatusString, "cublasGetStatusString");
    library.find(Create, "cublasCreate_v2");
    library.find(Destroy, "cublasDestroy_v2");
    library.find(SetStream, "cublasSetStream_v2");
    library.find(Dgemm, "cublasDgemm_v2");
    library.find(DgemmStridedBatched, "cublasDgemmStridedBatched");
  }
};

CuBlas const& cublas() {
  static CuBlas const functions;
  if (!functions.library.missing().empty())
    throw EnvironmentError(functions.library.missing() + "; use the cpu backend, or install the CUDA toolkit's libraries");
  return functions;
}

void check(cublasStatus_t status, char const* what) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  cudaGetLastError();  // clears an error that is not sticky
  throw EnvironmentError(std::string("cuBLAS: ") + what + " failed: " + cublas().GetStatusString(status));
}

/// The context's handle, made when it is first needed: that takes a while and some memory.
cublasHandle_t handle_of(cuda::CudaContext& device) {
  std::shared_ptr<void>& kept = device.blas();
  if (kept == nullptr) {
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
