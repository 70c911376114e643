#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/linear_operator.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// What is known of the ends of a spectrum after some iterations. Both lie within the spectrum, so that their ratio is at most the
/// condition.
struct ExtremeValues {
  double largest = 0, smallest = 0;
  std::int64_t iterations = 0;
  bool settled = false;  ///< neither changed by more than a thousandth in the last tenth of the iterations
};

/// Extreme eigenvalues of a symmetric positive definite operator, or semi-definite with the constants as null space where
/// `constants`, among vectors that are zero where `fixed` is 1: conjugate gradients from a residual of random numbers, whose
/// coefficients are the factors of the tridiagonal matrix that Lanczos' process makes (Golub, Van Loan, Matrix Computations, 4th
/// ed., 11.3.6). 64 bytes a row an iteration beside the product. Throws Interrupted.
[[nodiscard]] ExtremeValues extreme_values(LinearOperator<double> const& a, std::span<std::uint8_t const> fixed,
                                           std::span<double const> null_vector, Context& context,
                                           std::int64_t max_iterations = 2000);

}  // namespace poisson
