#pragma once

#include "app/config/config.hpp"
#include "gpu/core/communicator.hpp"

#include <exception>
#include <functional>
#include <string>

namespace poisson::app {

/// Exit codes of the program (see docs/usage.md). After an interrupt it is 128 + the signal number, as in shells.
enum ExitCode : int { exit_done = 0, exit_usage = 1, exit_not_converged = 2, exit_environment = 3, exit_interrupted = 130 };

/// Requests an interrupt, and stores the signal for interrupted_code(). Async-signal-safe.
void interrupt_by(int signal) noexcept;
/// Whether a signal has requested an interrupt, even if clear_interrupt() was called since.
[[nodiscard]] bool was_interrupted() noexcept;
/// 130 for Ctrl-C (SIGINT), 143 for SIGTERM, 129 for SIGHUP; 130 without a signal.
[[nodiscard]] ExitCode interrupted_code() noexcept;

/// Requests a checkpoint of the run. Async-signal-safe.
void ask_for_checkpoint() noexcept;
/// Whether one was requested since the last call of forget_asked_checkpoint.
[[nodiscard]] bool checkpoint_is_asked() noexcept;
void forget_asked_checkpoint() noexcept;

/// Ranks end by one code: one that had no signal takes that of the lowest rank that had one. Collective.
void share_interrupt(Communicator& ranks);

/// The exit code for an exception.
[[nodiscard]] ExitCode exit_code_of(std::exception_ptr const& error);

/// What the user is told of an exception, and the exit code. `configuration` (may be null) gives the place in the file of an
/// error's key.
struct Failure {
  std::string message;
  ExitCode code;
};
[[nodiscard]] Failure failure_of(Configuration const* configuration, std::exception_ptr const& error);
/// Prints "poisson: error: ..." on standard error.
void tell_failure(std::string const& message);

/// Calls `body` and returns its exit code. For an exception it prints "poisson: error: ..." on standard error and returns the exit
/// code of the exception. `configuration` (may be null) gives the place in the file of an error's key.
int exit_code_of(Configuration const* configuration, std::function<int()> const& body);

/// As long as this object exists, the program ends with one message and exit code 3 where no exception can tell what is wrong:
/// where there is no memory inside of a parallel loop or of a function that must not throw, and where a library ends the program by
/// itself, as OpenMP does without memory. There can be one such object.
class ForcedEnd {
public:
  ForcedEnd();
  ForcedEnd(ForcedEnd const&) = delete;
  ForcedEnd& operator=(ForcedEnd const&) = delete;
  ~ForcedEnd();

  /// As long as this object exists, these ranks end with this one.
  class OfRanks {
  public:
    explicit OfRanks(Communicator& ranks) noexcept;
    OfRanks(OfRanks const&) = delete;
    OfRanks& operator=(OfRanks const&) = delete;
    ~OfRanks();
  };
};

/// Ends the processes of all ranks.
[[noreturn]] void end_all(Communicator& ranks, ExitCode code);

}  // namespace poisson::app
