#pragma once

#include <atomic>

namespace poisson {

namespace detail {
inline std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);
}  // namespace detail

/// Asks every long stage to stop at its next safe point. May be called from a signal handler.
inline void request_interrupt() noexcept { detail::interrupt_flag.store(true); }
/// Clears the request once it is honoured, so that the stages that follow (writing results) are not interrupted as well.
inline void clear_interrupt() noexcept { detail::interrupt_flag.store(false); }
[[nodiscard]] inline bool interrupt_requested() noexcept { return detail::interrupt_flag.load(std::memory_order_relaxed); }

}  // namespace poisson
