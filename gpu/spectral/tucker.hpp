#pragma once

#include "gpu/core/context.hpp"
#include "gpu/spectral/accuracy.hpp"
#include "gpu/spectral/spectrum.hpp"
#include "gpu/spectral/svd.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace poisson {

/// A tensor of n0 x n1 x n2 numbers, the first index fastest, projected on the leading singular vectors of its unfoldings. Lists
/// have an entry for each unfolding: three, or one where n2 = 1 and the tensor is a matrix.
struct TuckerApproximation {
  std::vector<HostVector<double>> values;   ///< singular values
  std::vector<std::vector<double>> errors;  ///< see errors_by_rank
  std::vector<std::int64_t> ranks;          ///< how many vectors are kept
  HostVector<double> approximation;         ///< the projected tensor
  HostVector<double> error;                 ///< the tensor minus its approximation
  double relative_error = 0;                ///< in the Frobenius norm; 0 for a tensor of zeros
  std::int64_t numbers_stored = 0;          ///< of the core and the vectors; of a matrix, of the vectors alone
  Spectrum spectrum;                        ///< of the unfolding with the largest condition
  int band_width = 0;                       ///< see Svd
  SvdSeconds seconds;                       ///< the sum over all unfoldings
  SvdAccuracy accuracy;                     ///< the worst of all unfoldings
};

/// The approximation of the smallest ranks that keep the relative error below `error`, by the truncated higher-order SVD (De
/// Lathauwer, De Moor, Vandewalle, SIAM J. Matrix Anal. Appl. 21, 2000): the squared errors of three unfoldings add up at most, so
/// that each may have a third. The SVDs run on the context's backend. Preconditions: all numbers are finite; the shape is positive
/// and fits `tensor`. Throws what svd() throws, and Interrupted.
[[nodiscard]] TuckerApproximation truncated_tucker(std::span<double const> tensor, std::array<std::int64_t, 3> const& shape,
                                                   double error, Context& context);

}  // namespace poisson
