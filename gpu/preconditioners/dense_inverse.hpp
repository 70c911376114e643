#pragma once

#include <cstdint>
#include <vector>

namespace poisson {

/// The inverse of a matrix of n x n, row by row in host memory, for the coarsest level; with `constants` of A restricted to vectors
/// whose entries have the sum 0 at the unknowns that are coupled to others. Empty where a pivot is 0 to rounding, or with
/// `positive` not positive. Gauss-Jordan's elimination without pivoting, of those unknowns; the others (Dirichlet values) have a
/// diagonal entry only. The same bits for any number of threads.
[[nodiscard]] std::vector<double> dense_inverse(std::vector<double> const& a, std::int64_t n, bool constants, bool positive);

}  // namespace poisson
