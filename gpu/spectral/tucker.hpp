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

/// The Tucker approximation of an n0 x n1 x n2 tensor (the first index is the fastest): its projection onto the leading left
/// singular vectors of its unfoldings. Vectors below have an entry for each unfolding: three, or one if n2 = 1 and the tensor is a
/// matrix.
struct TuckerApproximation {
  std::vector<HostVector<double>> values;   ///< singular values
  std::vector<std::vector<double>> errors;  ///< see errors_by_rank
  std::vector<std::int64_t> ranks;          ///< number of vectors kept
  HostVector<double> approximation;         ///< the projected tensor
  HostVector<double> error;                 ///< the tensor minus its approximation
  double relative_error = 0;                ///< in the Frobenius norm; 0 for a tensor of zeros
  std::int64_t numbers_stored = 0;          ///< entries of the core and of the vectors; of a matrix, of left and right vectors
  Spectrum spectrum;                        ///< of the unfolding with the largest condition
  int band_width = 0;                       ///< see Svd
  SvdSeconds seconds;                       ///< the sum over all unfoldings
  SvdAccuracy accuracy;                     ///< the worst of all unfoldings
};

/// The truncated higher-order SVD (De Lathauwer, De Moor, Vandewalle, SIAM J. Matrix Anal. Appl. 21, 2000) with a relative error of
/// at most `error` in the Frobenius norm. The squared error is at most the sum of those of the unfoldings, so that each unfolding
/// of a tensor gets the smallest rank with a third of error^2. The SVDs run on the context's backend. Preconditions: all numbers
/// are finite; the shape is positive, and its product is tensor.size(). Throws what svd() throws.
[[nodiscard]] TuckerApproximation truncated_tucker(std::span<double const> tensor, std::array<std::int64_t, 3> const& shape,
                                                   double error, Context& context);

}  // namespace poisson
