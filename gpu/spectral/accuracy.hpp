#pragma once

#include "gpu/core/context.hpp"
#include "gpu/spectral/svd.hpp"

#include <span>

namespace poisson {

/// Accuracy of a singular value decomposition, in the measures of Hirota, Hashimoto, Yamamoto 2012. |.| is the Frobenius norm.
struct SvdAccuracy {
  double orthogonality_u = 0;    ///< |I - U^T U|
  double orthogonality_v = 0;    ///< |I - V^T V|
  double residual = 0;           ///< |A - U S V^T|; |A V - U S| where `svd` has the leading vectors only
  double residual_relative = 0;  ///< residual / |A|; 0 for a zero matrix
};

/// Computed on the context's backend, in blocks of columns of A. Precondition: `svd` has vectors, of the shapes for `a`. Throws
/// OutOfMemoryError.
[[nodiscard]] SvdAccuracy svd_accuracy(Context& context, DenseMatrix const& a, Svd const& svd);

/// The largest |values[i] - reference[i]| over the indices that both have.
[[nodiscard]] double largest_value_error(std::span<double const> values, std::span<double const> reference);

}  // namespace poisson
