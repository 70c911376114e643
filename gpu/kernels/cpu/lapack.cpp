#include "gpu/kernels/cpu/lapack.hpp"

#include "gpu/core/module.hpp"

#include <cstddef>
#include <sys/mman.h>
#include <sys/resource.h>

extern "C" __attribute__((weak)) poisson::LapackFunctions const* poisson_lapack();

namespace poisson {

void require_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return;
  constexpr std::size_t bytes = std::size_t{384} << 20;  // OpenBLAS 0.3.21 takes almost 300 MiB for a moment
  void* const there = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (there == MAP_FAILED)
    throw EnvironmentError("the limit on virtual memory (ulimit -v) leaves less than 384 MiB, which LAPACK needs to start");
  munmap(there, bytes);
}

LapackFunctions const& lapack() {
  static Module<LapackFunctions> const module = [] {
    if (poisson_lapack == nullptr)
      require_address_space();
    return Module<LapackFunctions>("poisson_lapack", poisson_lapack, "singular values");
  }();
  return module.functions();
}

}  // namespace poisson
