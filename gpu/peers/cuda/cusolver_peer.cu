#include "gpu/core/array.hpp"
#include "gpu/core/dynamic_library.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/peers/svd_peers.hpp"

#include <cusolverDn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace poisson {

namespace {

struct CuSolver {
  DynamicLibrary library{"cuSOLVER",
                         {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so", "/usr/local/cuda/lib64/libcusolver.so"}};
#define POISSON_CUSOLVER_FUNCTION(name) decltype(&cusolverDn##name) name = nullptr
  POISSON_CUSOLVER_FUNCTION(Create);
  POISSON_CUSOLVER_FUNCTION(Destroy);
  POISSON_CUSOLVER_FUNCTION(SetStream);
  POISSON_CUSOLVER_FUNCTION(CreateParams);
  POISSON_CUSOLVER_FUNCTION(DestroyParams);
  POISSON_CUSOLVER_FUNCTION(CreateGesvdjInfo);
  POISSON_CUSOLVER_FUNCTION(DestroyGesvdjInfo);
  POISSON_CUSOLVER_FUNCTION(Dgesvd_bufferSize);
  POISSON_CUSOLVER_FUNCTION(Dgesvd);
  POISSON_CUSOLVER_FUNCTION(Dgesvdj_bufferSize);
  POISSON_CUSOLVER_FUNCTION(Dgesvdj);
  POISSON_CUSOLVER_FUNCTION(Xgesvdp_bufferSize);
  POISSON_CUSOLVER_FUNCTION(Xgesvdp);
  POISSON_CUSOLVER_FUNCTION(Dsyevd_bufferSize);
  POISSON_CUSOLVER_FUNCTION(Dsyevd);
#undef POISSON_CUSOLVER_FUNCTION

  CuSolver() {
    library.find(Create, "cusolverDnCreate");
    library.find(Destroy, "cusolverDnDestroy");
    library.find(SetStream, "cusolverDnSetStream");
    library.find(CreateParams, "cusolverDnCreateParams");
    library.find(DestroyParams, "cusolverDnDestroyParams");
    library.find(CreateGesvdjInfo, "cusolverDnCreateGesvdjInfo");
    library.find(DestroyGesvdjInfo, "cusolverDnDestroyGesvdjInfo");
    library.find(Dgesvd_bufferSize, "cusolverDnDgesvd_bufferSize");
    library.find(Dgesvd, "cusolverDnDgesvd");
    library.find(Dgesvdj_bufferSize, "cusolverDnDgesvdj_bufferSize");
    library.find(Dgesvdj, "cusolverDnDgesvdj");
    library.find(Xgesvdp_bufferSize, "cusolverDnXgesvdp_bufferSize");
    library.find(Xgesvdp, "cusolverDnXgesvdp");
    library.find(Dsyevd_bufferSize, "cusolverDnDsyevd_bufferSize");
    library.find(Dsyevd, "cusolverDnDsyevd");
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

template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, std::function<void(Handle)>>;

}  // namespace

std::string why_no_cusolver() {
  std::string const reason = why_no_cuda();
  return reason.empty() ? cusolver().library.missing() : reason;
}

Svd cusolver_svd(SvdPeer peer, DenseMatrix const& a, bool vectors, Context& context) {
  if (std::string const reason = why_no_cusolver(); !reason.empty())
    throw EnvironmentError(reason);
  auto& device = cuda::of(context);
  CuSolver const& lib = cusolver();
  cusolverDnHandle_t handle = nullptr;
  check(lib.Create(&handle), "cusolverDnCreate");
  Owned<cusolverDnHandle_t> const owned(handle, [&](cusolverDnHandle_t h) { static_cast<void>(lib.Destroy(h)); });
  check(lib.SetStream(handle, device.stream()), "cusolverDnSetStream");
  int const m = static_cast<int>(a.n_rows), n = static_cast<int>(a.n_columns);
  bool const keeps = vectors && peer != SvdPeer::cusolver_syevd;
  bool const has_room = keeps || peer == SvdPeer::cusolver_gesvdp;  // which fails without it even where only values are wanted
  Array<double> matrix(context, std::span<double const>(a.values)), s(context, n), u(context, has_room ? a.n_rows * n : 1),
      v(context, has_room ? std::int64_t{n} * n : 1);
  Array<int> info(context, 1);
  auto const mode = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  Svd result;
  auto const timed = [&](auto const& call, char const* what) {
    context.synchronize();
    auto const start = std::chrono::steady_clock::now();
    check(call(), what);
    context.synchronize();
    result.seconds.total = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  bool v_is_transposed = false;
  if (peer == SvdPeer::cusolver_gesvd) {
    int size = 0;
    check(lib.Dgesvd_bufferSize(handle, m, n, &size), "cusolverDnDgesvd_bufferSize");
    Array<double> work(context, size), rwork(context, n);
    signed char const job = vectors ? 'S' : 'N';
    timed(
        [&] {
          return lib.Dgesvd(handle, job, job, m, n, matrix.data(), m, s.data(), u.data(), m, v.data(), n, work.data(), size,
                            rwork.data(), info.data());
        },
        "cusolverDnDgesvd");
    v_is_transposed = true;
  } else if (peer == SvdPeer::cusolver_gesvdj) {
    gesvdjInfo_t parameters = nullptr;
    check(lib.CreateGesvdjInfo(&parameters), "cusolverDnCreateGesvdjInfo");
    Owned<gesvdjInfo_t> const owned_parameters(parameters, [&](gesvdjInfo_t p) { static_cast<void>(lib.DestroyGesvdjInfo(p)); });
    int size = 0;
    check(lib.Dgesvdj_bufferSize(handle, mode, 1, m, n, matrix.data(), m, s.data(), u.data(), m, v.data(), n, &size, parameters),
          "cusolverDnDgesvdj_bufferSize");
    Array<double> work(context, size);
    timed(
        [&] {
          return lib.Dgesvdj(handle, mode, 1, m, n, matrix.data(), m, s.data(), u.data(), m, v.data(), n, work.data(), size,
                             info.data(), parameters);
        },
        "cusolverDnDgesvdj");
  } else if (peer == SvdPeer::cusolver_gesvdp) {
    cusolverDnParams_t parameters = nullptr;
    check(lib.CreateParams(&parameters), "cusolverDnCreateParams");
    Owned<cusolverDnParams_t> const owned_parameters(parameters,
                                                     [&](cusolverDnParams_t p) { static_cast<void>(lib.DestroyParams(p)); });
    std::size_t on_device = 0, on_host = 0;
    check(lib.Xgesvdp_bufferSize(handle, parameters, mode, 1, m, n, CUDA_R_64F, matrix.data(), m, CUDA_R_64F, s.data(), CUDA_R_64F,
                                 u.data(), m, CUDA_R_64F, v.data(), n, CUDA_R_64F, &on_device, &on_host),
          "cusolverDnXgesvdp_bufferSize");
    Array<char> work(context, static_cast<std::int64_t>(on_device));
    HostVector<char> host_work(on_host);
    double error = 0;
    timed(
        [&] {
          return lib.Xgesvdp(handle, parameters, mode, 1, m, n, CUDA_R_64F, matrix.data(), m, CUDA_R_64F, s.data(), CUDA_R_64F,
                             u.data(), m, CUDA_R_64F, v.data(), n, CUDA_R_64F, work.data(), on_device, host_work.data(), on_host,
                             info.data(), &error);
        },
        "cusolverDnXgesvdp");
  } else {
    int size = 0;
    check(lib.Dsyevd_bufferSize(handle, mode, CUBLAS_FILL_MODE_LOWER, n, matrix.data(), m, s.data(), &size),
          "cusolverDnDsyevd_bufferSize");
    Array<double> work(context, size);
    timed(
        [&] {
          return lib.Dsyevd(handle, mode, CUBLAS_FILL_MODE_LOWER, n, matrix.data(), m, s.data(), work.data(), size, info.data());
        },
        "cusolverDnDsyevd");
  }
  int failed = 0;
  info.download({&failed, 1});
  if (failed != 0)
    throw EnvironmentError("cuSOLVER's " + std::string(name_of(peer)) + " did not converge: info = " + std::to_string(failed));
  result.values.resize(static_cast<std::size_t>(n));
  s.download(result.values);
  if (peer == SvdPeer::cusolver_syevd) {
    for (double& value : result.values)
      value = std::abs(value);
    std::sort(result.values.begin(), result.values.end(), std::greater<>());
  }
  if (keeps) {
    result.u = DenseMatrix(m, n);
    u.download(result.u.values);
    result.v = DenseMatrix(n, n);
    v.download(result.v.values);
    if (v_is_transposed)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < j; ++i)
          std::swap(result.v(i, j), result.v(j, i));
  }
  return result;
}

}  // namespace poisson
