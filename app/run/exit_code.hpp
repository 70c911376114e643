#pragma once

#include "app/config/config.hpp"

#include <exception>
#include <functional>

namespace poisson::app {

/// Exit codes of the program (see docs/usage.md). After an interrupt it is 128 + the signal, as shells have it.
enum ExitCode : int { exit_done = 0, exit_usage = 1, exit_not_converged = 2, exit_environment = 3, exit_interrupted = 130 };

/// Asks every stage to stop, and remembers the signal for interrupted_code(). For a signal handler.
void interrupt_by(int signal) noexcept;
/// Whether a signal has asked to stop, even where clear_interrupt() has been called since.
[[nodiscard]] bool was_interrupted() noexcept;
/// 130 for Ctrl-C (SIGINT), 143 for SIGTERM, 129 for SIGHUP; 130 without a signal.
[[nodiscard]] ExitCode interrupted_code() noexcept;

/// The exit code that belongs to an exception.
[[nodiscard]] ExitCode exit_code_of(std::exception_ptr const& error);

/// Calls `body` and returns its exit code; turns every exception into one "poisson: error: ..." on standard error and the exit code
/// that belongs to it. `configuration` (may be null) tells the place in the file that an error's key stands at.
int exit_code_of(Configuration const* configuration, std::function<int()> const& body);

}  // namespace poisson::app
