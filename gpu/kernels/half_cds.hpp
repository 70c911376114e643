#pragma once

#include "gpu/kernels/product.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// A symmetric matrix by its main diagonal and the diagonals on its left: values[k * n + i] = a(i, i - offsets[k]), 0 where i <
/// offsets[k].
struct HalfCdsView {
  std::int64_t n = 0;
  std::span<std::int32_t const> offsets;          ///< host memory; ascending, the first is 0
  std::int32_t const* backend_offsets = nullptr;  ///< the same in the backend's memory
  double const* values = nullptr;
  double const* low_values = nullptr;    ///< see stored_values
  float const* single_values = nullptr;  ///< the same
};

/// Terms of a row are added in a fixed order: main diagonal, lower diagonals by ascending offset, upper diagonals by ascending
/// offset. Results depend neither on the number of threads nor on the launch.
class HalfCdsKernels : public ProductKernels<HalfCdsView> {
public:
  static HalfCdsKernels const& cpu();
  static HalfCdsKernels const& cuda();
};

}  // namespace poisson
