#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/dynamic_library.hpp"
#include "gpu/kernels/peers.hpp"

#include <cublas_v2.h>

#include <chrono>
#include <cmath>

namespace poisson {

namespace {

struct CuBlas {
  cuda::DynamicLibrary library{"cuBLAS",
                               {"libcublas.so.13", "libcublas.so.12", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so.13",
                                "/usr/local/cuda/lib64/libcublas.so"}};
  decltype(&cublasGetStatusString) status_string = nullptr;
  decltype(&cublasCreate) create = nullptr;
  decltype(&cublasDestroy) destroy = nullptr;
  decltype(&cublasSetStream) set_stream = nullptr;
  decltype(&cublasDcopy) copy = nullptr;
  decltype(&cublasDdot) dot = nullptr;
  decltype(&cublasDaxpy) axpy = nullptr;
  decltype(&cublasDscal) scal = nullptr;

  CuBlas() {
    library.find(status_string, "cublasGetStatusString");
    library.find(create, "cublasCreate_v2");
    library.find(destroy, "cublasDestroy_v2");
    library.find(set_stream, "cublasSetStream_v2");
    library.find(copy, "cublasDcopy_v2");
    library.find(dot, "cublasDdot_v2");
    library.find(axpy, "cublasDaxpy_v2");
    library.find(scal, "cublasDscal_v2");
  }
};

CuBlas const& cublas() {
  static CuBlas const functions;
  return functions;
}

void check(cublasStatus_t status, char const* what) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  cudaGetLastError();  // clears an error that is not sticky
  throw EnvironmentError(std::string("cuBLAS: ") + what + " failed: " + cublas().status_string(status));
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::string why_no_peer_cg() {
  std::string const reason = why_no_peers();
  return reason.empty() ? cublas().library.missing() : reason;
}

PeerSolve peer_cg(Context& context, CsrView const& a, double const* b, double* x, double tolerance, std::int64_t max_iterations,
                  double max_seconds) {
  if (std::string const reason = why_no_peer_cg(); !reason.empty())
    throw EnvironmentError(reason);
  PeerSolve result;
  context.synchronize();
  auto start = Clock::now();
  cuda::OwnedHandle<cublasHandle_t, decltype(&cublasDestroy)> library(cublas().destroy);
  check(cublas().create(&library.handle), "cublasCreate");
  check(cublas().set_stream(library.handle, cuda::of(context).stream()), "cublasSetStream");
  auto const n = static_cast<int>(a.n_rows);  // columns have 32 bits
  auto const dot = [&](double const* v, double const* w) {
    double sum = 0;
    check(cublas().dot(library.handle, n, v, 1, w, 1, &sum), "cublasDdot");  // returns when the sum is on the host
    return sum;
  };
  auto const axpy = [&](double factor, double const* from, double* to) {
    check(cublas().axpy(library.handle, n, &factor, from, 1, to, 1), "cublasDaxpy");
  };
  Array<double> r(context, a.n_rows), p(context, a.n_rows), q(context, a.n_rows);
  p.set_zero();
  auto const product = make_peer(Peer::cusparse_csr_alg1, context, a, p.data(), q.data());
  // The product's x and y, the two dots (of which one reads a single vector), three axpy and a scal.
  result.bytes_per_iteration = static_cast<double>(product->bytes + (16 + 16 + 8 + 3 * 24 + 16) * a.n_rows);
  context.set_zero(x, 8 * a.n_rows);
  check(cublas().copy(library.handle, n, b, 1, r.data(), 1), "cublasDcopy");
  double rr = dot(r.data(), r.data());
  result.setup_seconds = seconds_since(start);

  start = Clock::now();
  double const b_norm = std::sqrt(rr), target = tolerance * tolerance * rr;
  double before = 0;
  // Stops as well where rr is no number.
  while (rr > target && result.iterations < max_iterations && seconds_since(start) < max_seconds) {
    if (interrupt_requested())
      throw Interrupted();
    if (result.iterations == 0)
      check(cublas().copy(library.handle, n, r.data(), 1, p.data(), 1), "cublasDcopy");
    else {
      double const beta = rr / before;
      check(cublas().scal(library.handle, n, &beta, p.data(), 1), "cublasDscal");
      axpy(1, r.data(), p.data());
    }
    product->product();
    double const alpha = rr / dot(p.data(), q.data());
    axpy(alpha, p.data(), x);
    axpy(-alpha, q.data(), r.data());
    before = rr;
    rr = dot(r.data(), r.data());
    ++result.iterations;
  }
  context.synchronize();
  result.seconds = seconds_since(start);
  result.residual_recursive = b_norm == 0 ? 0 : std::sqrt(rr) / b_norm;
  return result;
}

}  // namespace poisson
