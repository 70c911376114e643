#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <memory>

namespace poisson {

/// One cycle of multigrid, by default a V-cycle in single precision, on levels that multigrid_hierarchy.hpp makes: those of a box
/// where the operator is a half_cds matrix of one, or matrix-free (options.box_nodes), else by aggregation of the matrix that
/// options.csr provides. The smoother, before and after the correction, is a polynomial in D^-1 A by its roots
/// (smoother_roots.hpp) or damped Jacobi; V- and W-cycles are
/// symmetric, and positive definite while the largest eigenvalue is not underestimated by much. The coarsest matrix is inverted;
/// where constants are its null space, on their complement. Where rounding to single makes a matrix of cg indefinite, the cycle is
/// in double. The setup has a failure() where a matrix is not positive definite. Throws InputError where entries are needed and
/// there are none, OutOfMemoryError.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_multigrid(MultiPrecisionOperator const& a,
                                                                  PreconditionerOptions const& options);

}  // namespace poisson
