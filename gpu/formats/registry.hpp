#pragma once

#include "gpu/formats/matrix.hpp"

#include <memory>
#include <span>

namespace poisson {

/// One row per format: everything that the rest of the library needs to know of it.
struct FormatEntry {
  Format format;
  bool symmetric_only;
  FormatEstimate (*estimate)(MatrixShape const& shape);
  /// Precondition: the matrix is symmetric (to rounding) where the format wants it, and `estimate` did not refuse its shape.
  std::unique_ptr<Matrix> (*make)(std::shared_ptr<CsrMatrix const> csr, Context& context);
};

[[nodiscard]] std::span<FormatEntry const> format_registry();

}  // namespace poisson
