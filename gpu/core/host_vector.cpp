#include "gpu/core/host_vector.hpp"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace poisson {

namespace {

constexpr std::size_t cache_line = 64, huge_page = std::size_t{1} << 21;

}  // namespace

void* allocate_uninitialized(std::size_t bytes) {
  bool const is_large = bytes >= 2 * huge_page;
  void* memory = nullptr;
  if (::posix_memalign(&memory, is_large ? huge_page : cache_line, bytes) != 0)
    throw std::bad_alloc();
  if (is_large)
    static_cast<void>(::madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE));
#ifdef POISSON_NAN_MEMORY
  std::memset(memory, 0xff, bytes);
#endif
  return memory;
}

void deallocate_uninitialized(void* memory) noexcept {
  std::free(memory);
}

}  // namespace poisson
