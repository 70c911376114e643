#pragma once

#include "gpu/core/dynamic_library.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <cublas_v2.h>

#include <string>

namespace poisson::cuda {

/// The functions of cuBLAS that are used; null where `library` has something missing.
struct CuBlas {
  DynamicLibrary library{"cuBLAS",
                         {"libcublas.so.13", "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so.13",
                          "/usr/local/cuda/lib64/libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"}};
  decltype(&cublasGetStatusString) GetStatusString = nullptr;
  decltype(&cublasCreate_v2) Create = nullptr;
  decltype(&cublasDestroy_v2) Destroy = nullptr;
  decltype(&cublasSetStream_v2) SetStream = nullptr;
  decltype(&cublasDcopy_v2) Dcopy = nullptr;
  decltype(&cublasDdot_v2) Ddot = nullptr;
  decltype(&cublasDaxpy_v2) Daxpy = nullptr;
  decltype(&cublasDscal_v2) Dscal = nullptr;
  decltype(&cublasDgemm_v2) Dgemm = nullptr;
  decltype(&cublasDgemmStridedBatched) DgemmStridedBatched = nullptr;

  CuBlas() {
    library.find(GetStatusString, "cublasGetStatusString");
    library.find(Create, "cublasCreate_v2");
    library.find(Destroy, "cublasDestroy_v2");
    library.find(SetStream, "cublasSetStream_v2");
    library.find(Dcopy, "cublasDcopy_v2");
    library.find(Ddot, "cublasDdot_v2");
    library.find(Daxpy, "cublasDaxpy_v2");
    library.find(Dscal, "cublasDscal_v2");
    library.find(Dgemm, "cublasDgemm_v2");
    library.find(DgemmStridedBatched, "cublasDgemmStridedBatched");
  }
};

inline CuBlas const& cublas() {
  static CuBlas const functions;
  return functions;
}

inline void check(cublasStatus_t status, char const* what) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  cudaGetLastError();  // clears an error that is not sticky
  throw EnvironmentError(std::string("cuBLAS: ") + what + " failed: " + cublas().GetStatusString(status));
}

}  // namespace poisson::cuda
