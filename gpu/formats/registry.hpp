#pragma once

#include "gpu/formats/matrix.hpp"

#include <memory>
#include <span>

namespace poisson {

/// A format as the rest of the library sees it.
struct FormatEntry {
  Format format;
  bool symmetric_only;
  bool shares_csr;  ///< holds the arrays of the CSR matrix that it was made from, and allocates nothing
  FormatEstimate (*estimate)(MatrixShape const& shape, FormatOptions const& options);
  /// The estimate from the matrix itself, on its backend; null where the estimate from the shape is exact.
  FormatEstimate (*estimate_exact)(Csr const& matrix, FormatOptions const& options);
  /// A lower bound on the bytes, from the shape; null where estimate_exact is fast.
  FormatEstimate (*estimate_lower_bound)(MatrixShape const& shape, FormatOptions const& options);
  /// The matrix in this format in the memory of csr.context(), converted there. `csr` need not outlive it. Exactly bytes() remain
  /// allocated, or none where arrays are shared with `csr`. Throws OutOfMemoryError.
  /// Preconditions: the matrix is symmetric (to rounding) if symmetric_only, and `estimate` does not refuse its shape.
  std::unique_ptr<Matrix> (*convert)(Csr const& csr, FormatOptions const& options);
};

[[nodiscard]] std::span<FormatEntry const> format_registry();

}  // namespace poisson
