#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>

namespace poisson {

/// Rates, in FLOP/s, of the operations that decide whether bidiagonalisation is faster in two stages than in one (Hirota,
/// Hashimoto, Yamamoto 2012, section 5.2.2), for matrices of order K = n / 2, the mean order during a reduction.
struct BidiagonalizationRates {
  double matrix_vector = 0;  ///< P_GEMV: K x K matrix by a vector, half of the one-stage reduction; from the read bandwidth
  double block_vector = 0;   ///< P_GEMM1: K x K matrix by K x width
  double chase_back = 0;     ///< P_GEMM3: blocks of the chase's back-transformation, 2 width x width by width x K

  /// Equation (1): two stages, with vectors, are faster when P_GEMV is below P_GEMM1 P_GEMM3 / (3 P_GEMM1 + P_GEMM3).
  [[nodiscard]] double threshold() const { return block_vector * chase_back / (3 * block_vector + chase_back); }
  [[nodiscard]] bool two_stages_faster() const { return matrix_vector < threshold(); }
};

/// Measures the rates on the context's backend for matrices of order n and bands of `width`; takes about a second on a device.
/// Throws OutOfMemoryError; Interrupted.
[[nodiscard]] BidiagonalizationRates measure_bidiagonalization_rates(Context& context, std::int64_t n, int width);

}  // namespace poisson
