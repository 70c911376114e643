#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace poisson {

/// Memory on a cache line, of which no page has been touched, and huge pages are asked for: products read a dozen arrays at once,
/// and with small pages their address translations do not fit the processor. A hint: where it is refused, nothing changes but the
/// speed. Built with POISSON_NAN_MEMORY, all of it is written: bytes of ones, NaN as floating point and -1 as integers, by which
/// tests see what is read before it is written. Throws std::bad_alloc.
[[nodiscard]] void* allocate_uninitialized(std::size_t bytes);
void deallocate_uninitialized(void* memory) noexcept;

/// Leaves numbers uninitialised, so that the threads which fill an array also touch its pages first, and no pass over memory is
/// spent on zeros that are overwritten.
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
