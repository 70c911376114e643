#pragma once

#include "gpu/core/array.hpp"

#include <cstdint>

namespace poisson {

/// Where entries are in slices; see SellView. Matrices that differ in their values only share it.
struct SlicePattern {
  Array<std::int32_t> rows;  ///< empty when all rows are in place
  Array<std::int64_t> slice_ptr;
  Array<std::int32_t> columns;

  [[nodiscard]] std::int64_t bytes() const { return rows.bytes() + slice_ptr.bytes() + columns.bytes(); }
};

}  // namespace poisson
