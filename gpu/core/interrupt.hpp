#pragma once

#include <atomic>
#include <cstdint>

namespace poisson {

namespace detail {
inline std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);
/// For tests, so that the place of an interrupt does not depend on timing: the n-th call of interrupt_requested() from now on
/// makes the request. 0: none does.
inline std::atomic<std::int64_t> polls_until_interrupt{0};
}  // namespace detail

/// Requests every long computation to stop where it polls next. May be called from a signal handler.
inline void request_interrupt() noexcept {
  detail::interrupt_flag.store(true);
}
/// Clears the request once it is honoured, so that what follows (writing results) is not interrupted as well.
inline void clear_interrupt() noexcept {
  detail::interrupt_flag.store(false);
}
/// Whether there is a request; long loops poll it.
[[nodiscard]] inline bool interrupt_requested() noexcept {
  if (detail::polls_until_interrupt.load(std::memory_order_relaxed) > 0 && detail::polls_until_interrupt.fetch_sub(1) == 1)
    request_interrupt();
  return detail::interrupt_flag.load(std::memory_order_relaxed);
}

}  // namespace poisson
