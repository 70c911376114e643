#pragma once

#include "gpu/core/csr_matrix.hpp"

#include <memory>
#include <string>

namespace poisson {

/// L U = P R A Q of a sparse square matrix on the host, by UMFPACK (Davis 2004): P and Q keep the factors sparse and the pivots
/// large, R scales rows.
class SparseLu {
public:
  virtual ~SparseLu() = default;
  /// What the factorisation takes by the analysis of the pattern, as an upper bound: bytes at its peak, and operations.
  [[nodiscard]] virtual double expected_bytes() const = 0;
  [[nodiscard]] virtual double expected_operations() const = 0;
  /// Computes the factors. Returns why there are none, or an empty text. Throws OutOfMemoryError.
  [[nodiscard]] virtual std::string factorize() = 0;
  /// x = A^-1 b, n entries each, in double. Preconditions: `factorize` returned an empty text; b and x do not overlap. Calls must
  /// not overlap: they share workspace.
  virtual void solve(double const* b, double* x) = 0;
};

struct SparseLuFunctions {
  /// Analyses the pattern; the matrix is copied. Precondition: it is square and finite. Throws OutOfMemoryError.
  std::unique_ptr<SparseLu> (*analyse)(CsrMatrix const& matrix);
};

/// The library poisson_umfpack, which is loaded by the first call. Throws EnvironmentError where it cannot be loaded.
[[nodiscard]] SparseLuFunctions const& sparse_lu();

}  // namespace poisson

extern "C" poisson::SparseLuFunctions const* poisson_umfpack();
