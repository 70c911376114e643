#include "gpu/svd/peers.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/svd_peers.hpp"
#include "gpu/svd/lapack.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace poisson {

namespace {

DenseMatrix transposed(DenseMatrix const& a) {
  DenseMatrix result(a.n_columns, a.n_rows);
  for (std::int64_t j = 0; j < a.n_columns; ++j)
    for (std::int64_t i = 0; i < a.n_rows; ++i)
      result(j, i) = a(i, j);
  return result;
}

Svd gesdd(DenseMatrix const& a, bool vectors) {
  if (std::max(a.n_rows, a.n_columns) > std::numeric_limits<int>::max())
    throw InputError("LAPACK counts rows in 32 bits");
  int const m = static_cast<int>(a.n_rows), n = static_cast<int>(a.n_columns), k = std::min(m, n);
  char const job = vectors ? 'S' : 'N';
  DenseMatrix copy = a, vt;
  Svd result;
  result.values.resize(static_cast<std::size_t>(k));
  if (vectors) {
    result.u = DenseMatrix(m, k);
    vt = DenseMatrix(k, n);
  }
  int const ldu = m, ldvt = k;
  int lwork = -1, info = 0;
  std::vector<int> iwork(8 * static_cast<std::size_t>(k));
  std::vector<double> work(1);
  auto const call = [&] {
    dgesdd_(&job, &m, &n, copy.values.data(), &m, result.values.data(), result.u.values.data(), &ldu, vt.values.data(), &ldvt,
            work.data(), &lwork, iwork.data(), &info);
    if (info != 0)
      throw EnvironmentError("LAPACK's dgesdd failed with info = " + std::to_string(info));
  };
  call();  // asks for the workspace
  if (!(work[0] < std::numeric_limits<int>::max()))
    throw InputError("LAPACK's workspace for this matrix is beyond 32 bits");
  lwork = static_cast<int>(work[0]);
  work.resize(static_cast<std::size_t>(lwork));
  auto const start = std::chrono::steady_clock::now();
  call();
  result.seconds.total = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (vectors)
    result.v = transposed(vt);
  return result;
}

/// Eigenvalues and vectors, ascending, as singular ones: by magnitude, the signs with U.
void order_by_magnitude(Svd& result, DenseMatrix const& q, bool vectors) {
  auto const n = static_cast<std::int64_t>(result.values.size());
  std::vector<std::int64_t> order(result.values.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  HostVector<double> const w = result.values;
  std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return std::abs(w[i]) > std::abs(w[j]); });
  if (vectors) {
    result.u = DenseMatrix(n, n);
    result.v = DenseMatrix(n, n);
  }
  for (std::int64_t j = 0; j < n; ++j) {
    std::int64_t const from = order[static_cast<std::size_t>(j)];
    result.values[static_cast<std::size_t>(j)] = std::abs(w[from]);
    for (std::int64_t i = 0; vectors && i < n; ++i) {
      result.v(i, j) = q(i, from);
      result.u(i, j) = w[from] < 0 ? -q(i, from) : q(i, from);
    }
  }
}

Svd on_device(SvdPeer peer, DenseMatrix const& a, bool vectors, Context& context) {
  std::int64_t const m = a.n_rows, n = a.n_columns, k = std::min(m, n);
  if (peer == SvdPeer::gesvd && m < n)
    throw InputError("cuSOLVER's gesvd takes matrices with at least as many rows as columns");
  if (peer == SvdPeer::syevd && m != n)
    throw InputError("syevd takes symmetric matrices");
  Array<double> matrix(context, std::span<double const>(a.values)), s(context, k);
  bool const both = vectors && peer != SvdPeer::syevd;
  Array<double> u(context, both ? m * k : 0), v(context, both ? n * k : 0);
  Svd result;
  result.seconds.total = cusolver_svd(peer, {m, n, vectors, matrix.data(), s.data(), u.data(), v.data()}, context);
  result.values.resize(static_cast<std::size_t>(k));
  s.download(result.values);
  if (peer == SvdPeer::syevd) {
    DenseMatrix q(vectors ? n : 0, vectors ? n : 0);
    if (vectors)
      matrix.download(q.values);
    order_by_magnitude(result, q, vectors);
  } else if (vectors) {
    result.u = DenseMatrix(m, k);
    u.download(result.u.values);
    result.v = DenseMatrix(n, k);
    v.download(result.v.values);
    if (peer == SvdPeer::gesvd) {  // gives V^T
      result.v.n_rows = k;
      result.v.n_columns = n;
      result.v = transposed(result.v);
    }
  }
  return result;
}

}  // namespace

std::string why_no_peer(SvdPeer peer, Context const& context) {
  if (peer == SvdPeer::gesdd)
    return "";
  return context.backend() == Backend::cuda ? why_no_cusolver() : "cuSOLVER works on a CUDA device";
}

Svd peer_svd(SvdPeer peer, DenseMatrix const& a, bool vectors, Context& context) {
  if (std::string const why = why_no_peer(peer, context); !why.empty())
    throw EnvironmentError(why);
  return peer == SvdPeer::gesdd ? gesdd(a, vectors) : on_device(peer, a, vectors, context);
}

}  // namespace poisson
