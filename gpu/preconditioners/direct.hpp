#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <memory>

namespace poisson {

/// M = A: complete factors, by UMFPACK on the host, so that a method takes an iteration or two, which mend what rounding has left.
/// Where the null space of A is spanned by the constant vector, M has twice its first diagonal entry; a residual that is orthogonal
/// to the constants is solved for all the same. `failure()` tells where M cannot be: a singular matrix, a device, several ranks,
/// and with options.only_if_cheap factors that are predicted to take long. Throws InputError without options.csr, OutOfMemoryError.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_direct(MultiPrecisionOperator const& a,
                                                               PreconditionerOptions const& options);

}  // namespace poisson
