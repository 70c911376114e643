#include "gpu/kernels/svd_peers.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/dynamic_library.hpp"

#include <cusolverDn.h>

#include <chrono>
#include <vector>

namespace poisson {

namespace {

struct CuSolver {
  cuda::DynamicLibrary library{"cuSOLVER",
                               {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so",
                                "/usr/local/cuda/lib64/libcusolver.so.12", "/usr/local/cuda/lib64/libcusolver.so"}};
#define POISSON_CUSOLVER_FUNCTION(name) decltype(&cusolverDn##name) name = nullptr
  POISSON_CUSOLVER_FUNCTION(Create);
  POISSON_CUSOLVER_FUNCTION(Destroy);
  POISSON_CUSOLVER_FUNCTION(SetStream);
  POISSON_CUSOLVER_FUNCTION(CreateParams);
  POISSON_CUSOLVER_FUNCTION(DestroyParams);
  POISSON_CUSOLVER_FUNCTION(CreateGesvdjInfo);
  POISSON_CUSOLVER_FUNCTION(DestroyGesvdjInfo);
  POISSON_CUSOLVER_FUNCTION(Xgesvd_bufferSize);
  POISSON_CUSOLVER_FUNCTION(Xgesvd);
  POISSON_CUSOLVER_FUNCTION(Dgesvdj_bufferSize);
  POISSON_CUSOLVER_FUNCTION(Dgesvdj);
  POISSON_CUSOLVER_FUNCTION(Xgesvdp_bufferSize);
  POISSON_CUSOLVER_FUNCTION(Xgesvdp);
  POISSON_CUSOLVER_FUNCTION(Xsyevd_bufferSize);
  POISSON_CUSOLVER_FUNCTION(Xsyevd);
#undef POISSON_CUSOLVER_FUNCTION

  CuSolver() {
#define POISSON_CUSOLVER_FIND(name) library.find(name, "cusolverDn" #name)
    POISSON_CUSOLVER_FIND(Create);
    POISSON_CUSOLVER_FIND(Destroy);
    POISSON_CUSOLVER_FIND(SetStream);
    POISSON_CUSOLVER_FIND(CreateParams);
    POISSON_CUSOLVER_FIND(DestroyParams);
    POISSON_CUSOLVER_FIND(CreateGesvdjInfo);
    POISSON_CUSOLVER_FIND(DestroyGesvdjInfo);
    POISSON_CUSOLVER_FIND(Xgesvd_bufferSize);
    POISSON_CUSOLVER_FIND(Xgesvd);
    POISSON_CUSOLVER_FIND(Dgesvdj_bufferSize);
    POISSON_CUSOLVER_FIND(Dgesvdj);
    POISSON_CUSOLVER_FIND(Xgesvdp_bufferSize);
    POISSON_CUSOLVER_FIND(Xgesvdp);
    POISSON_CUSOLVER_FIND(Xsyevd_bufferSize);
    POISSON_CUSOLVER_FIND(Xsyevd);
#undef POISSON_CUSOLVER_FIND
  }
};

CuSolver const& cusolver() {
  static CuSolver const functions;
  return functions;
}

void check(cusolverStatus_t status, char const* what) {
  if (status == CUSOLVER_STATUS_SUCCESS)
    return;
  cudaGetLastError();  // clears an error that is not sticky
  throw EnvironmentError(std::string("cuSOLVER: ") + what + " failed with status " + std::to_string(static_cast<int>(status)));
}

/// Runs `call` and waits for it; then what it says of itself.
template <class Call>
double timed(Context& context, Array<int> const& info, char const* what, Call const& call) {
  context.synchronize();
  auto const start = std::chrono::steady_clock::now();
  check(call(), what);
  context.synchronize();
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  int result = 0;
  info.download({&result, 1});
  if (result != 0)
    throw EnvironmentError(std::string("cuSOLVER: ") + what + " ended with info = " + std::to_string(result));
  return seconds;
}

}  // namespace

std::string why_no_cusolver() {
  return cusolver().library.missing();
}

double cusolver_svd(SvdPeer peer, CuSolverArrays const& arrays, Context& context) {
  if (std::string const& missing = cusolver().library.missing(); !missing.empty())
    throw EnvironmentError(missing);
  std::int64_t const m = arrays.n_rows, n = arrays.n_columns, k = m < n ? m : n;
  cusolverEigMode_t const mode = arrays.vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  signed char const job = arrays.vectors ? 'S' : 'N';
  cuda::OwnedHandle<cusolverDnHandle_t, decltype(cusolver().Destroy)> handle(cusolver().Destroy);
  check(cusolver().Create(&handle.handle), "cusolverDnCreate");
  check(cusolver().SetStream(handle.handle, cuda::of(context).stream()), "cusolverDnSetStream");
  Array<int> info(context, 1);
  info.set_zero();
  std::size_t on_device = 0, on_host = 0;

  if (peer == SvdPeer::gesvdj) {
    cuda::OwnedHandle<gesvdjInfo_t, decltype(cusolver().DestroyGesvdjInfo)> parameters(cusolver().DestroyGesvdjInfo);
    check(cusolver().CreateGesvdjInfo(&parameters.handle), "cusolverDnCreateGesvdjInfo");
    constexpr int economy = 1;
    int const rows = static_cast<int>(m), columns = static_cast<int>(n);
    int lwork = 0;
    check(cusolver().Dgesvdj_bufferSize(handle.handle, mode, economy, rows, columns, arrays.a, rows, arrays.s, arrays.u, rows,
                                        arrays.v, columns, &lwork, parameters.handle),
          "cusolverDnDgesvdj_bufferSize");
    Array<double> work(context, lwork);
    return timed(context, info, "cusolverDnDgesvdj", [&] {
      return cusolver().Dgesvdj(handle.handle, mode, economy, rows, columns, arrays.a, rows, arrays.s, arrays.u, rows, arrays.v,
                                columns, work.data(), lwork, info.data(), parameters.handle);
    });
  }
  cuda::OwnedHandle<cusolverDnParams_t, decltype(cusolver().DestroyParams)> parameters(cusolver().DestroyParams);
  check(cusolver().CreateParams(&parameters.handle), "cusolverDnCreateParams");
  if (peer == SvdPeer::gesvdp) {
    constexpr int economy = 1;
    check(cusolver().Xgesvdp_bufferSize(handle.handle, parameters.handle, mode, economy, m, n, CUDA_R_64F, arrays.a, m, CUDA_R_64F,
                                        arrays.s, CUDA_R_64F, arrays.u, m, CUDA_R_64F, arrays.v, n, CUDA_R_64F, &on_device,
                                        &on_host),
          "cusolverDnXgesvdp_bufferSize");
    Array<char> device_work(context, static_cast<std::int64_t>(on_device));
    std::vector<char> host_work(on_host);
    double error = 0;
    return timed(context, info, "cusolverDnXgesvdp", [&] {
      return cusolver().Xgesvdp(handle.handle, parameters.handle, mode, economy, m, n, CUDA_R_64F, arrays.a, m, CUDA_R_64F,
                                arrays.s, CUDA_R_64F, arrays.u, m, CUDA_R_64F, arrays.v, n, CUDA_R_64F, device_work.data(),
                                on_device, host_work.data(), on_host, info.data(), &error);
    });
  }
  if (peer == SvdPeer::syevd) {
    check(cusolver().Xsyevd_bufferSize(handle.handle, parameters.handle, mode, CUBLAS_FILL_MODE_LOWER, n, CUDA_R_64F, arrays.a, n,
                                       CUDA_R_64F, arrays.s, CUDA_R_64F, &on_device, &on_host),
          "cusolverDnXsyevd_bufferSize");
    Array<char> device_work(context, static_cast<std::int64_t>(on_device));
    std::vector<char> host_work(on_host);
    return timed(context, info, "cusolverDnXsyevd", [&] {
      return cusolver().Xsyevd(handle.handle, parameters.handle, mode, CUBLAS_FILL_MODE_LOWER, n, CUDA_R_64F, arrays.a, n,
                               CUDA_R_64F, arrays.s, CUDA_R_64F, device_work.data(), on_device, host_work.data(), on_host,
                               info.data());
    });
  }
  if (peer != SvdPeer::gesvd)
    throw EnvironmentError("cuSOLVER has no such decomposition");
  check(cusolver().Xgesvd_bufferSize(handle.handle, parameters.handle, job, job, m, n, CUDA_R_64F, arrays.a, m, CUDA_R_64F,
                                     arrays.s, CUDA_R_64F, arrays.u, m, CUDA_R_64F, arrays.v, k, CUDA_R_64F, &on_device, &on_host),
        "cusolverDnXgesvd_bufferSize");
  Array<char> device_work(context, static_cast<std::int64_t>(on_device));
  std::vector<char> host_work(on_host);
  return timed(context, info, "cusolverDnXgesvd", [&] {
    return cusolver().Xgesvd(handle.handle, parameters.handle, job, job, m, n, CUDA_R_64F, arrays.a, m, CUDA_R_64F, arrays.s,
                             CUDA_R_64F, arrays.u, m, CUDA_R_64F, arrays.v, k, CUDA_R_64F, device_work.data(), on_device,
                             host_work.data(), on_host, info.data());
  });
}

}  // namespace poisson
