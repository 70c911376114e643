#pragma once

#include "gpu/core/context.hpp"
#include "gpu/svd/peers.hpp"

#include <cstdint>
#include <string>

namespace poisson {

/// What cuSOLVER works on, column by column in the memory of a context whose backend is cuda.
struct CuSolverArrays {
  std::int64_t n_rows = 0, n_columns = 0;
  bool vectors = false;
  double* a = nullptr;  ///< n_rows x n_columns; destroyed, or of syevd the eigenvectors
  double* s = nullptr;  ///< k = min(n_rows, n_columns) values: descending, of syevd the eigenvalues ascending
  double* u = nullptr;  ///< n_rows x k; of syevd not touched
  double* v = nullptr;  ///< n_columns x k; of gesvd V^T, k x n_columns; of syevd not touched
};

/// Empty when cuSOLVER can be loaded; otherwise why not.
[[nodiscard]] std::string why_no_cusolver();

/// The seconds of the call alone. Throws EnvironmentError: why_no_cusolver(), no memory, or the library fails.
[[nodiscard]] double cusolver_svd(SvdPeer peer, CuSolverArrays const& arrays, Context& context);

}  // namespace poisson
