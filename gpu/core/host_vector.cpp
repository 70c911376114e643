#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <sys/mman.h>

namespace poisson {

void use_huge_pages(void* memory, std::size_t bytes) noexcept {
  constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
  if (bytes < 2 * page)
    return;
  auto const begin = reinterpret_cast<std::uintptr_t>(memory);
  auto const first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
}

}  // namespace poisson
