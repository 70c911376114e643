#include "gpu/kernels/cpu/lapack.hpp"

#include "gpu/core/module.hpp"

extern "C" __attribute__((weak)) poisson::LapackFunctions const* poisson_lapack();

namespace poisson {

LapackFunctions const& lapack() {
  static Module<LapackFunctions> const module("poisson_lapack", poisson_lapack, "singular values", false, true);
  return module.functions();
}

}  // namespace poisson
