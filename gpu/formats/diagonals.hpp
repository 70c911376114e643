#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/csr.hpp"

#include <string>
#include <vector>

namespace poisson {

/// What cds and half_cds share: whole diagonals in a backend's memory, laid out as ConversionKernels::fill_diagonals says.
struct DiagonalStorage {
  std::vector<std::int32_t> offsets;
  Array<std::int32_t> backend_offsets;
  StoredEntries entries;
  double padding_ratio = 1;  ///< values over entries taken from the matrix

  [[nodiscard]] static DiagonalStorage convert(CsrView const& csr, Context& context, bool half, FormatOptions const& options);
  [[nodiscard]] DiagonalStorage copy_to(Context& target) const;
  [[nodiscard]] std::int64_t bytes() const { return entries.bytes() + backend_offsets.bytes(); }
  /// The matrix again; both triangles with `half`. Precondition: in host memory.
  [[nodiscard]] CsrMatrix to_csr(std::int64_t n_rows, std::int64_t n_columns, bool half) const;

  /// Bytes of `stored_diagonals` diagonals that hold `entries` non-zeros, called `what` in a refusal; refused when that is more
  /// than CSR takes or when it is not known how many diagonals there are.
  [[nodiscard]] static FormatEstimate estimate(Format format, MatrixShape const& shape, FormatOptions const& options,
                                               std::int64_t stored_diagonals, double entries, std::string const& what);
};

}  // namespace poisson
