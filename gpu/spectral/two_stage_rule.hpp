#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>

namespace poisson {

/// Rates, in FLOP/s, of the operations that decide whether bidiagonalisation in two stages beats one (Hirota et al. 2012,
/// section 5.2.2): of K = n / 2, the mean order during a reduction.
struct BidiagonalizationRates {
  double matrix_vector = 0;  ///< P_GEMV: K x K matrix by a vector, half of the one-stage reduction; from the read bandwidth
  double block_vector = 0;   ///< P_GEMM1: K x K matrix by K x width
  double chase_back = 0;     ///< P_GEMM3: blocks of the chase's back-transformation, 2 width x width by width x K

  /// Two stages, with vectors, are faster when products with one vector are slower than this: P1 P3 / (3 P1 + P3), equation (1).
  [[nodiscard]] double threshold() const { return block_vector * chase_back / (3 * block_vector + chase_back); }
  [[nodiscard]] bool two_stages_win() const { return matrix_vector < threshold(); }
};

/// Measures them on the context's backend for matrices of order n; takes about a second on a device.
[[nodiscard]] BidiagonalizationRates measure_bidiagonalization_rates(Context& context, std::int64_t n, int width);

}  // namespace poisson
