#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/linear_operator.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// Estimates of the extreme eigenvalues. Both lie within the spectrum, so that their ratio is at most the condition.
struct ExtremeValues {
  double largest = 0, smallest = 0;
  std::int64_t iterations = 0;
  bool settled = false;  ///< neither changed by more than 0.1 % in the last 10 % of the iterations
};

/// Extreme eigenvalues of a symmetric positive definite operator on the vectors that are zero where `fixed` is 1; of a
/// semi-definite one where its null space is spanned by `null_vector` (else empty). Lanczos' process by conjugate gradients: they
/// start from a random residual, and their coefficients factorise the tridiagonal matrix (Golub, Van Loan, Matrix Computations, 4th
/// ed., 11.3.6). 64 bytes a row an iteration beside the product. Throws Interrupted.
[[nodiscard]] ExtremeValues extreme_values(LinearOperator<double> const& a, std::span<std::uint8_t const> fixed,
                                           std::span<double const> null_vector, Context& context,
                                           std::int64_t max_iterations = 2000);

}  // namespace poisson
