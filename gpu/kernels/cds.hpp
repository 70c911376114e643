#pragma once

#include "gpu/kernels/product.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// A matrix by its diagonals: values[k * n_rows + i] = a(i, i + offsets[k]), 0 where that entry is not stored, and where there is
/// no such column.
struct CdsView {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  std::span<std::int32_t const> offsets;          ///< host memory; column - row, ascending
  std::int32_t const* backend_offsets = nullptr;  ///< the same in the backend's memory
  double const* values = nullptr;
  double const* low_values = nullptr;    ///< see stored_values
  float const* single_values = nullptr;  ///< the same
};

/// Terms of a row are added by ascending offset, so that results depend neither on the number of threads nor on the launch.
/// Products read whole diagonals: an infinity in x makes NaN of a row that has a zero there.
class CdsKernels : public ProductKernels<CdsView> {
public:
  static CdsKernels const& cpu();
  static CdsKernels const& cuda();
};

}  // namespace poisson
