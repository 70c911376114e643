#pragma once

#include "gpu/core/names.hpp"
#include "gpu/svd/svd.hpp"

#include <array>
#include <string>

namespace poisson {

// Decompositions of other libraries, to measure ours beside them. Nothing but benchmarks uses them.

enum class SvdPeer { gesdd, gesvd, gesvdj, gesvdp, syevd };
template <>
struct Names<SvdPeer> {
  static constexpr std::array<Named<SvdPeer>, 5> values{{{SvdPeer::gesdd, "gesdd"},
                                                         {SvdPeer::gesvd, "gesvd"},
                                                         {SvdPeer::gesvdj, "gesvdj"},
                                                         {SvdPeer::gesvdp, "gesvdp"},
                                                         {SvdPeer::syevd, "syevd"}}};
};

/// Empty when the peer can be run; otherwise why not, in one sentence. gesdd is LAPACK's, on the host; the others are cuSOLVER's,
/// loaded when they are first needed, on a context whose backend is cuda.
[[nodiscard]] std::string why_no_peer(SvdPeer peer, Context const& context);

/// A = U diag(values) V^T by the peer, all values. seconds.total is that of the library's call alone: matrix, vectors and workspace
/// are in the memory in which it works. gesvd asks for n_rows >= n_columns; syevd takes the lower triangle of a symmetric matrix,
/// whose singular values are the eigenvalues without their signs. Throws EnvironmentError: why_no_peer, no memory, or the library
/// fails; InputError for a shape that it does not take.
[[nodiscard]] Svd peer_svd(SvdPeer peer, DenseMatrix const& a, bool vectors, Context& context);

}  // namespace poisson
