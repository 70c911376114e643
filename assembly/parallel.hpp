#pragma once

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

namespace poisson::assembly {

/// Runs body(state, i) for every i in [0, n) on all OpenMP threads; each thread first makes its own state. An exception is rethrown
/// when all threads have stopped; of several that of the lowest i, so that messages do not depend on the number of threads.
/// Throws Interrupted when an interrupt was requested.
template <class MakeState, class Body>
void parallel_for(std::int64_t n, MakeState const& make_state, Body const& body) {
  std::atomic<std::int64_t> next{0}, failed_at{n};
  std::exception_ptr failure;
  std::mutex mutex;
  auto const fail = [&](std::int64_t i) {
    std::scoped_lock const lock(mutex);
    if (!failure || i < failed_at) {
      failure = std::current_exception();
      failed_at = i;
    }
  };
#pragma omp parallel
  {
    std::int64_t i = -1;
    try {
      auto state = make_state();
      // Indices are handed out in ascending order: everything below a failed one was started and will be finished.
      while ((i = next.fetch_add(1)) < failed_at && !interrupt_requested())
        body(state, i);
    } catch (...) {
      fail(i);
    }
  }
  if (failure)
    std::rethrow_exception(failure);
  if (interrupt_requested())
    throw Interrupted();
}

/// Runs body(i) for every i in [0, n) in the same way, without a state.
template <class Body>
void parallel_for(std::int64_t n, Body const& body) {
  parallel_for(
      n, [] { return 0; }, [&](int, std::int64_t i) { body(i); });
}

/// Items [begin, end) of a part. `n` items are divided into n_parts(n, size) parts of `size`; the last one may be smaller.
struct Part {
  std::int64_t begin, end;
};
[[nodiscard]] constexpr std::int64_t n_parts(std::int64_t n, std::int64_t size) {
  return (n + size - 1) / size;
}
[[nodiscard]] constexpr Part part(std::int64_t n, std::int64_t size, std::int64_t i) {
  return {i * size, (i + 1) * size < n ? (i + 1) * size : n};
}

}  // namespace poisson::assembly
