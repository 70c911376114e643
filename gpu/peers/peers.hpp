#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/names.hpp"
#include "gpu/kernels/csr.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace poisson {

// Products and solvers of vendors' libraries, to compare this library with. Only benchmarks use them.

enum class Peer { cusparse_csr_alg1, cusparse_csr_alg2, cusparse_sell };
template <>
struct Names<Peer> {
  static constexpr std::array<Named<Peer>, 3> values{{{Peer::cusparse_csr_alg1, "cusparse csr alg1"},
                                                      {Peer::cusparse_csr_alg2, "cusparse csr alg2"},
                                                      {Peer::cusparse_sell, "cusparse sell"}}};
};

/// y = A x by a vendor's library, with the x and y of make_peer.
class PeerProduct {
public:
  virtual ~PeerProduct() = default;
  virtual void product() = 0;  ///< enqueues; does not wait

  std::int64_t bytes = 0;            ///< of the matrix as the library reads it
  std::int64_t workspace_bytes = 0;  ///< scratch memory of the library
  double setup_seconds = 0;  ///< from CSR on the device to the first product: copies, descriptors, the library's preprocessing
};

/// Empty when peers can be measured; otherwise why not, in one sentence. The libraries are loaded when they are first needed:
/// the program starts without them.
[[nodiscard]] std::string why_no_peers();

/// The library's product with `a`. Row offsets are passed in 32 bits where they fit, the fastest case of the library. SELL has
/// slices of 32 rows in their natural order. Preconditions: `context` is of the CUDA backend; `a`, `x` (n_columns) and `y` (n_rows)
/// are in its memory and outlive the result. Throws EnvironmentError: why_no_peers(), the matrix has no entries, a call of the
/// library fails, or (as OutOfMemoryError) memory does not suffice.
[[nodiscard]] std::unique_ptr<PeerProduct> make_peer(Peer peer, Context& context, CsrView const& a, double const* x, double* y);

/// The result of a peer's solver.
struct PeerSolve {
  std::int64_t iterations = 0;
  double residual_recursive = 0;  ///< ||r|| / ||b||
  double setup_seconds = 0;       ///< from CSR on the device to the first iteration: the library's copies, workspace and vectors
  double seconds = 0;             ///< iterations only
  double bytes_per_iteration = 0;
};

/// Empty when peer_cg can be run; otherwise why not, in one sentence.
[[nodiscard]] std::string why_no_peer_cg();

/// Conjugate gradients in double from x = 0, as programs that use cuSPARSE and cuBLAS usually have them: a call each for the
/// product (CSR, ALG1), the two dots and the four updates, with scalars on the host, which waits for every dot. `a`, `b` and `x`
/// (n_rows entries each) are in the memory of `context`, which is of the CUDA backend. Ends when ||r|| <= tolerance ||b||, after
/// max_iterations or after max_seconds. Throws EnvironmentError: why_no_peer_cg(), a call of a library fails, or (as
/// OutOfMemoryError) memory does not suffice; Interrupted.
[[nodiscard]] PeerSolve peer_cg(Context& context, CsrView const& a, double const* b, double* x, double tolerance,
                                std::int64_t max_iterations, double max_seconds);

/// Empty when peer_multigrid can be run; otherwise why not, in one sentence.
[[nodiscard]] std::string why_no_peer_multigrid();

/// Conjugate gradients with BoomerAMG of hypre, from x = 0, on one core of the host: HMIS coarsening with one aggressive level,
/// extended+i interpolation, symmetric Gauss-Seidel; of eight settings the fastest on boxes of 27-point elements. `a` is symmetric,
/// with fewer than 2^31 entries; entries that are 0 are left out. Ends when ||r|| <= tolerance ||b|| or after max_iterations.
/// The setup is BoomerAMG's. hypre needs MPI, which is begun with the first call. Throws EnvironmentError:
/// why_no_peer_multigrid(), or hypre fails; InputError for more entries.
[[nodiscard]] PeerSolve peer_multigrid(CsrMatrix const& a, std::span<double const> b, std::span<double> x, double tolerance,
                                       std::int64_t max_iterations);

}  // namespace poisson
