#include "gpu/kernels/cpu/sparse_lu.hpp"

#include "gpu/core/module.hpp"
#include "gpu/kernels/cpu/lapack.hpp"

extern "C" __attribute__((weak)) poisson::SparseLuFunctions const* poisson_umfpack();

namespace poisson {

SparseLuFunctions const& sparse_lu() {
  static Module<SparseLuFunctions> const module = [] {
    if (poisson_umfpack == nullptr)
      require_address_space();  // UMFPACK is linked with a BLAS, which may be OpenBLAS
    return Module<SparseLuFunctions>("poisson_umfpack", poisson_umfpack, "direct solves");
  }();
  return module.functions();
}

}  // namespace poisson
