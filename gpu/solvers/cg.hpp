#pragma once

#include "gpu/solvers/operator.hpp"
#include "gpu/solvers/solver.hpp"

#include <span>

namespace poisson {

/// Preconditioned conjugate gradients (Hestenes, Stiefel 1952) from x = 0, for symmetric positive (semi-)definite operators, in the
/// arithmetic T on the context's backend. Preconditions: the operator is square and lives on the context; b is finite and
/// not zero, and b and x have n_rows entries. Three passes an iteration; see kernels/cg.hpp for their bytes.
template <class T>
[[nodiscard]] SolverResult cg(Operator<T> const& a, std::span<double const> b, std::span<double> x, SolverOptions const& options,
                              Context& context);

}  // namespace poisson
