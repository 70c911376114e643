#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/csr.hpp"

#include <string>
#include <vector>

namespace poisson {

/// The storage that cds and half_cds share: whole diagonals in a backend's memory, laid out as ConversionKernels::fill_diagonals
/// says. `half`: of a symmetric matrix the main diagonal and those below.
struct DiagonalStorage {
  std::vector<std::int32_t> offsets;
  Array<std::int32_t> backend_offsets;
  StoredEntries entries;
  double padding_ratio = 1;  ///< stored values over entries of the matrix that they hold

  [[nodiscard]] static DiagonalStorage convert(CsrView const& csr, Context& context, bool half, FormatOptions const& options);
  [[nodiscard]] DiagonalStorage copy_to(Context& target) const;
  [[nodiscard]] std::int64_t bytes() const { return entries.bytes() + backend_offsets.bytes(); }
  /// The matrix in CSR, with `half` both triangles. Precondition: the arrays are in host memory.
  [[nodiscard]] CsrMatrix to_csr(std::int64_t n_rows, std::int64_t n_columns, bool half) const;

  /// The estimate for `stored_diagonals` diagonals that hold `entries` entries; `what` names them in a refusal. Refused when they
  /// take more bytes than CSR, or when their number is not known.
  [[nodiscard]] static FormatEstimate estimate(Format format, MatrixShape const& shape, FormatOptions const& options,
                                               std::int64_t stored_diagonals, double entries, std::string const& what);
};

}  // namespace poisson
