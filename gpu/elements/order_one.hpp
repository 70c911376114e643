#pragma once

#include "gpu/core/box_problem.hpp"
#include "gpu/core/lattice_problem.hpp"
#include "gpu/preconditioners/options.hpp"

#include <optional>

namespace poisson {

/// The same problem with elements of order 1 on the same cells, without loads: nodes are the vertices. Weights of Robin faces go to
/// the nearest of the new Gauss points.
[[nodiscard]] LatticeProblem with_order_one(LatticeProblem const& problem);

/// What multigrid goes on with from a matrix of `problem`, assembled in the context's memory: by `box` where there is one, which is
/// the same problem on a box with elements of order 1. Throws DataError, OutOfMemoryError, Interrupted.
[[nodiscard]] OrderOne make_order_one(Context& context, LatticeProblem const& problem, std::optional<BoxProblem> const& box);
/// The same from a matrix of order 1 in any format. Precondition: BoxSystem assembles `box` into half_cds.
[[nodiscard]] OrderOne make_order_one(Context& context, BoxProblem const& box);

}  // namespace poisson
