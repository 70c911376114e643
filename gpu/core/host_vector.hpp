#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace poisson {

/// Asks for huge pages for the memory, of which no page has been touched. Products read a dozen arrays at once: with small pages
/// their address translations do not fit the processor. A hint: where it is refused, nothing changes but the speed.
void use_huge_pages(void* memory, std::size_t bytes) noexcept;

/// Allocates cache-line aligned memory and leaves numbers uninitialised, so that the threads which fill an array also touch
/// its pages first, and no pass over memory is spent on zeros that are overwritten.
template <class T>
struct UninitializedAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  UninitializedAllocator() = default;
  template <class U>
  UninitializedAllocator(UninitializedAllocator<U> const&) noexcept {}

  T* allocate(std::size_t n) {
    void* const memory = ::operator new(n * sizeof(T), alignment);
    use_huge_pages(memory, n * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, alignment); }

  template <class U>
  void construct(U* p) noexcept(noexcept(::new (static_cast<void*>(p)) U)) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  friend bool operator==(UninitializedAllocator, UninitializedAllocator) noexcept { return true; }
};

/// A std::vector whose `resize(n)` does not write; `resize(n, value)` does.
template <class T>
using HostVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace poisson
