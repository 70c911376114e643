#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace poisson {

/// Uninitialised host memory, aligned to a cache line. Huge pages are requested: products read a dozen arrays at once, more small
/// pages than the processor's TLB holds. Where the request is refused, only the speed changes. Built with
/// POISSON_NAN_MEMORY, every bit is set to 1 (NaN as floating point, -1 as integers), so that tests see reads of memory that was
/// never written. Throws std::bad_alloc.
[[nodiscard]] void* allocate_uninitialized(std::size_t bytes);
void deallocate_uninitialized(void* memory) noexcept;

/// An allocator that default-initialises, so that numbers stay uninitialised: no pass writes zeros that would be overwritten, and
/// the threads that fill an array touch its pages first (NUMA's first touch).
template <class T>
struct UninitializedAllocator {
  using value_type = T;

  UninitializedAllocator() = default;
  template <class U>
  UninitializedAllocator(UninitializedAllocator<U> const&) noexcept {}

  T* allocate(std::size_t n) { return static_cast<T*>(allocate_uninitialized(n * sizeof(T))); }
  void deallocate(T* p, std::size_t) noexcept { deallocate_uninitialized(p); }

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
