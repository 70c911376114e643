#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <memory>

namespace poisson {

/// M = diag(A). It fails when a diagonal entry is 0 or, where the method needs it, not positive.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_jacobi(MultiPrecisionOperator const& a,
                                                               PreconditionerOptions const& options);

}  // namespace poisson
