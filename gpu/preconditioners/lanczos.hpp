#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// Pseudo-random numbers between -0.5 and 0.5, the same for the same n: a vector to start from.
template <class V>
[[nodiscard]] Array<V> pseudo_random_vector(Context& context, std::int64_t n, std::int64_t first = 0);

/// An estimate from below of the largest eigenvalue of D^-1 A on a level: that of the tridiagonal matrix of six steps of Lanczos's
/// method from D^-1 start, in the inner product of D (Golub and Van Loan, Matrix Computations, section 10.1). On meshes it is 4 to
/// 6 % too small, as the power method is after 14 steps. `start` has at least as many entries as the level has rows here. NaN where
/// D^-1 A is not positive semidefinite. V is float or double, in which the level's matrix has products. With `ranks` collective.
template <class V>
[[nodiscard]] double largest_by_lanczos(MultigridLevel<V> const& level, Array<V> const& start, Communicator& ranks = alone());

/// The largest eigenvalue of a symmetric tridiagonal matrix with this diagonal and these squares of entries beside it, to rounding.
/// Precondition: squares.size() + 1 == diagonal.size().
[[nodiscard]] double largest_of_tridiagonal(std::span<double const> diagonal, std::span<double const> squares);

}  // namespace poisson
