#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <memory>

namespace poisson {

/// One symmetric V-cycle of multigrid on a box, in single precision. Coarse matrices are P^T A P with P from the matrix itself
/// (BoxLevelKernels); directions are halved where the coupling is strong (at least a quarter of the strongest), so that stretched
/// cells and orthotropic coefficients become isotropic first. The smoother, before and after the correction, is Chebyshev's method
/// of the fourth kind on D^-1 A (Lottes 2022, "Optimal polynomial smoothers for multigrid V-cycles", without its weights), so the
/// cycle is symmetric and positive definite while the largest eigenvalue is not underestimated by much. The coarsest matrix is
/// inverted; where constants are its null space, on their complement. The setup has a failure() where the operator is no half_cds
/// of that box (options.box_nodes), or not positive definite. Throws OutOfMemoryError.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_multigrid(MultiPrecisionOperator const& a,
                                                                  PreconditionerOptions const& options);

}  // namespace poisson
