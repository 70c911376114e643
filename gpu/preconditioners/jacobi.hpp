#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <memory>

namespace poisson {

/// M = diag(A). The setup has a failure() when a diagonal entry is 0 or, with options.positive, not positive. Throws
/// OutOfMemoryError.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_jacobi(MultiPrecisionOperator const& a,
                                                               PreconditionerOptions const& options);

}  // namespace poisson
