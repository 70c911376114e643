#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/linear_operator.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// Ritz values: estimates of the extreme eigenvalues from within the spectrum, so that their ratio is at most the condition.
struct ExtremeEigenvalues {
  double largest = 0, smallest = 0;
  std::int64_t iterations = 0;
  bool converged = false;  ///< neither has changed by more than 0.1 % in the last 10 % of the iterations
};

/// Extreme eigenvalues of a symmetric positive definite operator, restricted to the vectors that are zero where `fixed` is 1
/// (n_rows entries); or the extreme positive ones of a semi-definite operator, whose null space is then spanned by `null_vector`
/// (else empty). The Lanczos process by conjugate gradients from a random residual, whose coefficients give the bidiagonal factor
/// of the tridiagonal matrix (Golub, Van Loan, Matrix Computations, 4th ed., 11.3.6). Ends when the estimates have converged or
/// after max_iterations. 64 bytes a row and iteration beside the product. Throws InputError when the operator is zero or not
/// positive definite; OutOfMemoryError; Interrupted.
[[nodiscard]] ExtremeEigenvalues extreme_eigenvalues(LinearOperator<double> const& a, std::span<std::uint8_t const> fixed,
                                                     std::span<double const> null_vector, Context& context,
                                                     std::int64_t max_iterations = 2000);

}  // namespace poisson
