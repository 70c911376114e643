#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/csr.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// A matrix as a list of entries in host memory, in any order; entries at the same place add up.
struct CooMatrix {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  HostVector<std::int32_t> rows;
  HostVector<std::int32_t> columns;
  HostVector<double> values;

  [[nodiscard]] std::int64_t nnz() const noexcept { return static_cast<std::int64_t>(values.size()); }
};

/// Entries at the same place are summed in the order of the list, so that the result depends neither on threads nor on the
/// backend; zeros are kept. Threaded. Throws InputError naming the first entry whose row or column the matrix does not have.
[[nodiscard]] CsrMatrix csr_from_coo(CooMatrix const& coo);
/// The same, sorted in the context's memory; on a device 32 bytes an entry are needed meanwhile.
/// Throws InputError as above; OutOfMemoryError.
[[nodiscard]] std::unique_ptr<Csr> csr_from_coo(CooMatrix const& coo, Context& context);

}  // namespace poisson
