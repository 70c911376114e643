#pragma once

#include "gpu/core/host_device.hpp"
#include "gpu/kernels/product.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// The lower half of a 27-point stencil on a box, by ascending offset: diagonal k couples a node to the one at (-dx(k), -dy(k),
/// -dz(k)).
namespace half_stencil {
inline constexpr int diagonals = 14, first_between_planes = 5;
[[nodiscard]] POISSON_HOST_DEVICE constexpr int dx(int k) {
  return (k + 13) % 3 - 1;
}
[[nodiscard]] POISSON_HOST_DEVICE constexpr int dy(int k) {
  return (k + 13) / 3 % 3 - 1;
}
[[nodiscard]] POISSON_HOST_DEVICE constexpr int dz(int k) {
  return k >= first_between_planes ? 1 : 0;
}
/// Returns the offset of diagonal k in a numbering with `line` nodes a line and `plane` nodes a plane.
[[nodiscard]] POISSON_HOST_DEVICE constexpr std::int64_t offset(int k, std::int64_t line, std::int64_t plane) {
  return dz(k) * plane + dy(k) * line + dx(k);
}
}  // namespace half_stencil

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
class HalfCdsKernels : public ProductKernels<HalfCdsView>, public SmoothingKernels<HalfCdsView> {
public:
  static HalfCdsKernels const& cpu();
  static HalfCdsKernels const& cuda();
};

}  // namespace poisson
