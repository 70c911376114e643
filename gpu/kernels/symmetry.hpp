#pragma once

#include "gpu/kernels/csr.hpp"

#include <cstdint>
#include <optional>

namespace poisson {

// How far a matrix is from symmetric: of an entry and its mirror image |a_ij - a_ji|, relative to the largest entry of rows i and j
// (row j stands for column j, which holds the same where the matrix is symmetric). Entries that are not stored count as 0, two NaNs
// as equal, and a difference that is not finite as infinity. Rows are measured by their finite entries.

/// A matrix with a larger asymmetry is not symmetric.
inline constexpr double symmetry_tolerance = 1e-10;
/// Rounding errors in double are below this. A larger asymmetry, up to symmetry_tolerance, comes from data with fewer digits, and
/// is worth a warning.
inline constexpr double rounding_asymmetry = 1e-14;

/// An entry and its mirror image that differ by more than rounding.
struct Asymmetry {
  std::int64_t row = 0, column = 0;
  double value = 0;   ///< a(row, column)
  double mirror = 0;  ///< a(column, row); 0 when it is not stored
};

struct Symmetry {
  double asymmetry = 0;            ///< the largest of all entries
  std::optional<Asymmetry> first;  ///< the first row's first column beyond symmetry_tolerance; none where the matrix is symmetric
};

/// Precondition: the matrix is square, and in host memory. Threaded.
[[nodiscard]] Symmetry find_symmetry(CsrView const& host_matrix);

}  // namespace poisson
