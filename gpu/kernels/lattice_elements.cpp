#include "gpu/kernels/lattice_elements.hpp"

#include <cmath>

namespace poisson {

LatticeTables lattice_tables() {
  double const near = 0.5 + 0.5 / std::sqrt(3.), far = 0.5 - 0.5 / std::sqrt(3.);
  auto const bit = [](int n, int d) { return n >> d & 1; };
  LatticeTables tables{};
  for (int q = 0; q < 8; ++q)
    for (int b = 0; b < 8; ++b) {
      double of_direction[3];
      for (int d = 0; d < 3; ++d)
        of_direction[d] = bit(b, d) == bit(q, d) ? near : far;
      tables.value[q][b] = of_direction[0] * of_direction[1] * of_direction[2];
      for (int d = 0; d < 3; ++d)
        tables.gradient[q][b][d] = (bit(b, d) == 1 ? 1 : -1) * of_direction[(d + 1) % 3] * of_direction[(d + 2) % 3];
    }
  return tables;
}

}  // namespace poisson
