#pragma once

#include "gpu/formats/matrix.hpp"

#include <memory>
#include <span>

namespace poisson {

/// One row per format: everything that the rest of the library needs to know of it.
struct FormatEntry {
  Format format;
  bool symmetric_only;
  bool shares_csr;  ///< holds the arrays of the CSR matrix that it was made from, and allocates nothing
  FormatEstimate (*estimate)(MatrixShape const& shape, FormatOptions const& options);
  /// The estimate from the matrix itself, on its backend; null where the shape says it all.
  FormatEstimate (*estimate_exact)(Csr const& matrix, FormatOptions const& options);
  /// Bytes that the matrix takes at least, from its shape; null where estimate_exact is quick.
  FormatEstimate (*estimate_least)(MatrixShape const& shape, FormatOptions const& options);
  /// The matrix in this format in the memory of csr.context(), converted there. `csr` need not outlive it. Exactly bytes() remain
  /// allocated, or none where arrays are shared with `csr`. Throws OutOfMemoryError.
  /// Precondition: the matrix is symmetric (to rounding) where the format wants it, and `estimate` did not refuse its shape.
  std::unique_ptr<Matrix> (*convert)(Csr const& csr, FormatOptions const& options);
};

[[nodiscard]] std::span<FormatEntry const> format_registry();

}  // namespace poisson
