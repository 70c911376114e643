#pragma once

#include <array>
#include <cstdint>

namespace poisson::assembly {

/// A node on a periodic boundary.
struct PeriodicNode {
  unsigned boundary = 0;    ///< its id
  bool fixed = false;       ///< it has a Dirichlet value, too
  std::int64_t number = 0;  ///< of the unknown
  std::array<double, 3> at{};
};
/// u at a node is u at another one plus `offset`.
struct PeriodicTie {
  std::int64_t number = 0, to = 0;
  double offset = 0;
};

}  // namespace poisson::assembly
