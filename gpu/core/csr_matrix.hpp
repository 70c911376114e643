#pragma once

#include "gpu/core/host_vector.hpp"

#include <cstdint>

namespace poisson {

/// A sparse matrix in compressed sparse rows (CSR) in host memory, from which every format is converted. Within a row columns
/// ascend and are distinct; explicit zeros are kept.
struct CsrMatrix {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  HostVector<std::int64_t> row_ptr;  ///< n_rows + 1 offsets into columns and values
  HostVector<std::int32_t> columns;
  HostVector<double> values;
  HostVector<double> low_values;  ///< low parts of entries in double-double (entry minus `values`); empty: all 0

  [[nodiscard]] std::int64_t nnz() const noexcept { return static_cast<std::int64_t>(values.size()); }
  /// Bytes of the arrays: 12 nnz + 8 (n_rows + 1), and 8 nnz of low values.
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return csr_bytes(n_rows, nnz()) + 8 * static_cast<std::int64_t>(low_values.size());
  }
  [[nodiscard]] static constexpr std::int64_t csr_bytes(std::int64_t n_rows, std::int64_t nnz) noexcept {
    return 12 * nnz + 8 * (n_rows + 1);
  }
};

}  // namespace poisson
