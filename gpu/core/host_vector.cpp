#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>

namespace poisson {

namespace {

constexpr std::align_val_t alignment{64};

void use_huge_pages(void* memory, std::size_t bytes) noexcept {
  constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
  if (bytes < 2 * page)
    return;
  auto const begin = reinterpret_cast<std::uintptr_t>(memory);
  auto const first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
}

}  // namespace

void* allocate_uninitialized(std::size_t bytes) {
  void* const memory = ::operator new(bytes, alignment);
  use_huge_pages(memory, bytes);
#ifdef POISSON_NAN_MEMORY
  std::memset(memory, 0xff, bytes);
#endif
  return memory;
}

void deallocate_uninitialized(void* memory) noexcept {
  ::operator delete(memory, alignment);
}

}  // namespace poisson
