#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace poisson::output {

/// A solution and its coefficient, from which -k grad u follows.
struct FluxData {
  std::span<double const> u;            ///< per point
  std::span<double const> coefficient;  ///< per cell: 1 component, 3 (along x, y, z), or 6: xx, yy, zz, xy, yz, xz
  int coefficient_components = 1;
  std::span<int const> material = {};  ///< per cell; empty: there is one
  /// In place of u: writes it at some points, ascending.
  std::function<void(std::span<std::int64_t const> points, double* out)> get{};
};

}  // namespace poisson::output
