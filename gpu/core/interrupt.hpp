#pragma once

#include <atomic>
#include <cstdint>

namespace poisson {

namespace detail {
inline std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);
/// Tests interrupt at a place that no clock decides: the n-th question from now on is answered with yes. 0: never.
inline std::atomic<std::int64_t> questions_to_interrupt{0};
}  // namespace detail

/// Asks every long stage to stop at its next safe point. May be called from a signal handler.
inline void request_interrupt() noexcept {
  detail::interrupt_flag.store(true);
}
/// Clears the request once it is honoured, so that the stages that follow (writing results) are not interrupted as well.
inline void clear_interrupt() noexcept {
  detail::interrupt_flag.store(false);
}
[[nodiscard]] inline bool interrupt_requested() noexcept {
  if (detail::questions_to_interrupt.load(std::memory_order_relaxed) > 0 && detail::questions_to_interrupt.fetch_sub(1) == 1)
    request_interrupt();
  return detail::interrupt_flag.load(std::memory_order_relaxed);
}

}  // namespace poisson
