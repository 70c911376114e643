#pragma once

#include "gpu/formats/matrix.hpp"

#include <memory>
#include <span>

namespace poisson {

/// One row per format: everything that the rest of the library needs to know of it.
struct FormatEntry {
  Format format;
  bool symmetric_only;
  FormatEstimate (*estimate)(MatrixShape const& shape, FormatOptions const& options);
  /// The estimate from the matrix itself; null where the shape says it all.
  FormatEstimate (*estimate_exact)(CsrMatrix const& matrix, FormatOptions const& options);
  /// Precondition: the matrix is symmetric (to rounding) where the format wants it, and `estimate` did not refuse its shape.
  std::unique_ptr<Matrix> (*make)(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const& options);
};

[[nodiscard]] std::span<FormatEntry const> format_registry();

}  // namespace poisson
