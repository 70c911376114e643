#pragma once

#include "gpu/core/host_vector.hpp"

#include <cstdint>

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

}  // namespace poisson
