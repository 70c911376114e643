#include "gpu/kernels/cpu/sparse_lu.hpp"

#include "gpu/core/module.hpp"

extern "C" __attribute__((weak)) poisson::SparseLuFunctions const* poisson_umfpack();

namespace poisson {

SparseLuFunctions const& sparse_lu() {
  static Module<SparseLuFunctions> const module("poisson_umfpack", poisson_umfpack, "direct solves", false, true);
  return module.functions();
}

}  // namespace poisson
