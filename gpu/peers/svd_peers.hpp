#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/names.hpp"
#include "gpu/spectral/svd.hpp"

#include <string>

namespace poisson {

/// Singular value decompositions of other libraries, to compare this library's with. Only benchmarks and tests use them.
enum class SvdPeer { lapack_gesdd, cusolver_gesvd, cusolver_gesvdj, cusolver_gesvdp, cusolver_syevd };
template <>
struct Names<SvdPeer> {
  static constexpr std::array<Named<SvdPeer>, 5> values{{{SvdPeer::lapack_gesdd, "lapack gesdd"},
                                                         {SvdPeer::cusolver_gesvd, "cusolver gesvd"},
                                                         {SvdPeer::cusolver_gesvdj, "cusolver gesvdj"},
                                                         {SvdPeer::cusolver_gesvdp, "cusolver gesvdp"},
                                                         {SvdPeer::cusolver_syevd, "cusolver syevd"}}};
};

/// The backend that a peer runs on.
[[nodiscard]] constexpr Backend backend_of(SvdPeer peer) {
  return peer == SvdPeer::lapack_gesdd ? Backend::cpu : Backend::cuda;
}

/// Empty when cuSOLVER can be used; otherwise why not, in one sentence. It is loaded when it is first needed.
[[nodiscard]] std::string why_no_cusolver();

/// A = U S V^T by another library. seconds.total is the decomposition alone, without transfers and the allocation of workspace.
/// syevd needs a symmetric matrix, of which it reads the lower triangle, and returns no vectors: the singular values are the
/// absolute eigenvalues. Preconditions: `a` has at least as many rows as columns; `context` is of backend_of(peer). Throws
/// EnvironmentError: why_no_cusolver(), the library does not converge, or (as OutOfMemoryError) memory does not suffice.
[[nodiscard]] Svd cusolver_svd(SvdPeer peer, DenseMatrix const& a, bool vectors, Context& context);
[[nodiscard]] Svd lapack_svd(DenseMatrix a, bool vectors);
[[nodiscard]] inline Svd peer_svd(SvdPeer peer, DenseMatrix const& a, bool vectors, Context& context) {
  return peer == SvdPeer::lapack_gesdd ? lapack_svd(a, vectors) : cusolver_svd(peer, a, vectors, context);
}

}  // namespace poisson
