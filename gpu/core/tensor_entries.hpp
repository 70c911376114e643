#pragma once

#include "gpu/core/host_device.hpp"

/// Symmetric 3 x 3 tensors as six numbers: xx, yy, zz, xy, xz, yz.
namespace poisson {

inline constexpr int tensor_entries = 6;

/// The row and the column of an entry: row <= column.
[[nodiscard]] POISSON_HOST_DEVICE constexpr int tensor_row(int entry) {
  return entry < 3 ? entry : entry == 5 ? 1 : 0;
}
[[nodiscard]] POISSON_HOST_DEVICE constexpr int tensor_column(int entry) {
  return entry < 3 ? entry : entry == 3 ? 1 : 2;
}

/// Whether a tensor is positive definite and finite, by more than rounding: the pivots of L D L^T are more than 1e-15 of the
/// largest entry, which is their error. (Leading minors have that of its cube.)
[[nodiscard]] inline POISSON_HOST_DEVICE bool is_positive_definite(double const (&k)[tensor_entries]) {
  double sum = 0;
  for (double const entry : k)
    sum += entry - entry;  // 0, or not a number where an entry is not finite
  double const l_yx = k[3] / k[0], l_zx = k[4] / k[0], second = k[1] - l_yx * k[3], of_zy = k[5] - l_yx * k[4];
  double const third = k[2] - l_zx * k[4] - of_zy / second * of_zy;
  double const largest = k[0] > k[1] ? (k[0] > k[2] ? k[0] : k[2]) : (k[1] > k[2] ? k[1] : k[2]), least = 1e-15 * largest;
  return sum == 0 && k[0] > least && second > least && third > least;
}

}  // namespace poisson
