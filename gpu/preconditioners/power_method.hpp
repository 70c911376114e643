#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>

namespace poisson {

inline constexpr int steps_of_power_method = 14;

/// Pseudo-random numbers between -0.5 and 0.5, the same for the same n: a vector to start from.
template <class V>
[[nodiscard]] Array<V> pseudo_random_vector(Context& context, std::int64_t n);

/// An estimate of the largest eigenvalue of D^-1 A: the square root of the quotient of the last two of the products x_k^T A x_k
/// with x_k = (D^-1 A)^k x_0. `start` is x_0, with at least as many entries as A has rows. NaN where D^-1 A is not positive
/// semidefinite. V is float or double, in which `matrix` has products.
template <class V>
[[nodiscard]] double largest_by_power(Matrix const& matrix, Array<V> const& diagonal, Array<V> const& start);

}  // namespace poisson
