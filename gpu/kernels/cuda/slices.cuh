#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace poisson::cuda {

// Slices of C rows. Short slices take several threads for each row: neighbouring threads then read neighbouring entries of a
// slice, and a warp's loads are as long as with C = 32. (A box of 256^3 nodes in SELL-C-sigma on an H200, C = 32, 16, 8, 4: 1.32,
// 1.33, 1.37, 1.40 ms with 1, 2, 4, 4 threads a row; with one, C = 8 and 4 took 1.52 and 2.1.)

/// Rows of a unit, for C known to the compiler; 0 stands for any C above 32.
template <int fixed_c>
inline constexpr int unit_of = fixed_c == 0 ? 32 : fixed_c;

template <int fixed_c>
inline constexpr int phases_of = fixed_c == 0 || fixed_c == 32 ? 1
                                 : fixed_c == 16               ? 2
                                 : fixed_c >= 4                ? 4
                                                               : 8;

/// Calls launch with C as an integral constant, 0 above 32.
template <class Launch>
void with_slice_size(std::int32_t c, Launch const& launch) {
  switch (c) {
  case 1:
    return launch(std::integral_constant<int, 1>{});
  case 2:
    return launch(std::integral_constant<int, 2>{});
  case 4:
    return launch(std::integral_constant<int, 4>{});
  case 8:
    return launch(std::integral_constant<int, 8>{});
  case 16:
    return launch(std::integral_constant<int, 16>{});
  case 32:
    return launch(std::integral_constant<int, 32>{});
  default:
    return launch(std::integral_constant<int, 0>{});
  }
}

[[nodiscard]] inline int log2_of(std::int32_t c) {
  return std::countr_zero(static_cast<std::uint32_t>(c));
}

}  // namespace poisson::cuda
