#include "gpu/core/array.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/cuda/cublas.cuh"
#include "gpu/peers/peers.hpp"

#include <chrono>
#include <cmath>

namespace poisson {

namespace {

using cuda::check, cuda::cublas;

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
  OwnedHandle<cublasHandle_t, decltype(&cublasDestroy_v2)> library(cublas().Destroy);
  check(cublas().Create(&library.handle), "cublasCreate");
  check(cublas().SetStream(library.handle, cuda::of(context).stream()), "cublasSetStream");
  auto const n = static_cast<int>(a.n_rows);  // columns have 32 bits
  auto const dot = [&](double const* v, double const* w) {
    double sum = 0;
    check(cublas().Ddot(library.handle, n, v, 1, w, 1, &sum), "cublasDdot");  // returns when the sum is on the host
    return sum;
  };
  auto const axpy = [&](double factor, double const* from, double* to) {
    check(cublas().Daxpy(library.handle, n, &factor, from, 1, to, 1), "cublasDaxpy");
  };
  Array<double> r(context, a.n_rows), p(context, a.n_rows), q(context, a.n_rows);
  p.set_zero();
  auto const product = make_peer(Peer::cusparse_csr_alg1, context, a, p.data(), q.data());
  // The product's x and y, the two dots (of which one reads a single vector), three axpy and a scal.
  result.bytes_per_iteration = static_cast<double>(product->bytes + (16 + 16 + 8 + 3 * 24 + 16) * a.n_rows);
  context.set_zero(x, 8 * a.n_rows);
  check(cublas().Dcopy(library.handle, n, b, 1, r.data(), 1), "cublasDcopy");
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
      check(cublas().Dcopy(library.handle, n, r.data(), 1, p.data(), 1), "cublasDcopy");
    else {
      double const beta = rr / before;
      check(cublas().Dscal(library.handle, n, &beta, p.data(), 1), "cublasDscal");
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
