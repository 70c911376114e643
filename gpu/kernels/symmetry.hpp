#pragma once

#include "gpu/kernels/csr.hpp"

#include <cstdint>
#include <optional>

namespace poisson {

/// An entry and its mirror image that differ by more than rounding.
struct Asymmetry {
  std::int64_t row = 0, column = 0;
  double value = 0;   ///< a(row, column)
  double mirror = 0;  ///< a(column, row); 0 when it is not stored
};

/// The first row, and in it the first column, whose entry differs from its mirror image by more than 64 units in the last place of
/// the largest among the two entries and their diagonal entries (element matrices are symmetric to rounding only). Entries
/// that are not stored count as 0, and two NaNs as equal. Precondition: the matrix is square, and in host memory. Threaded.
[[nodiscard]] std::optional<Asymmetry> find_asymmetry(CsrView const& host_matrix);

}  // namespace poisson
