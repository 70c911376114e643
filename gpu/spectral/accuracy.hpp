#pragma once

#include "gpu/core/context.hpp"
#include "gpu/spectral/svd.hpp"

#include <span>

namespace poisson {

/// Accuracy of a decomposition, as measured by Hirota et al. 2012. |.| is the Frobenius norm.
struct SvdAccuracy {
  double orthogonality_u = 0;    ///< |I - U^T U|
  double orthogonality_v = 0;    ///< |I - V^T V|
  double residual = 0;           ///< |A - U S V^T|; |A V - U S| where there are only leading vectors
  double residual_relative = 0;  ///< residual / |A|; 0 for a zero matrix
};

/// Precondition: `svd` is of `a`, with vectors. Computed on the context's backend, in blocks of columns of A.
[[nodiscard]] SvdAccuracy svd_accuracy(Context& context, DenseMatrix const& a, Svd const& svd);

/// max |values[i] - reference[i]| over the entries that both have.
[[nodiscard]] double largest_value_error(std::span<double const> values, std::span<double const> reference);

}  // namespace poisson
