#include "gpu/solvers/solver_state.hpp"

#include "gpu/core/error.hpp"

namespace poisson {

void StateStream::require(bool fits) {
  if (!fits)
    throw InputError("the saved state is of another solve");
}

}  // namespace poisson
