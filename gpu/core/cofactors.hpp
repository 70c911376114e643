#pragma once

#include "gpu/core/host_device.hpp"

namespace poisson {

/// Computes c = det(m) m^-T from a 3 x 3 matrix, both nine numbers row by row. Returns det(m). c is not m. It is inlined, so that
/// loops over cells fill vector registers.
template <class Matrix>
[[gnu::always_inline]] POISSON_HOST_DEVICE inline double cofactors_of(Matrix const& m, Matrix& c) {
  c[0] = m[4] * m[8] - m[5] * m[7];
  c[1] = m[5] * m[6] - m[3] * m[8];
  c[2] = m[3] * m[7] - m[4] * m[6];
  c[3] = m[2] * m[7] - m[1] * m[8];
  c[4] = m[0] * m[8] - m[2] * m[6];
  c[5] = m[1] * m[6] - m[0] * m[7];
  c[6] = m[1] * m[5] - m[2] * m[4];
  c[7] = m[2] * m[3] - m[0] * m[5];
  c[8] = m[0] * m[4] - m[1] * m[3];
  return m[0] * c[0] + m[1] * c[1] + m[2] * c[2];
}

}  // namespace poisson
