#include "app/launch/exit_code.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <system_error>

namespace poisson::app {

namespace {

std::atomic<int> interrupt_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

std::atomic<bool> asks_for_checkpoint{false};
static_assert(std::atomic<bool>::is_always_lock_free);

std::atomic<bool> exit_is_meant{false};
std::atomic<Communicator*> ranks_of_now{nullptr};

constexpr char out_of_memory[] = "out of memory; 'poisson check CONFIG' estimates what a configuration needs";

extern "C" void end_late(int) {
  _exit(exit_environment);
}

/// There may be no memory, and other threads may hold any lock; so this takes neither.
[[noreturn]] void end_by_force(char const* message) noexcept {
  static std::atomic_flag begun = ATOMIC_FLAG_INIT;
  while (begun.test_and_set())
    pause();  // another thread ends the program
  exit_is_meant = true;
  for (char const* const part : {"poisson: error: ", message, "\n"})
    static_cast<void>(!write(STDERR_FILENO, part, std::strlen(part)));
  if (Communicator* const ranks = ranks_of_now) {
    constexpr unsigned longest_wait = 10;  // seconds: MPI may need memory or a lock, too
    std::signal(SIGALRM, end_late);
    alarm(longest_wait);
    ranks->end_all(exit_environment);
  }
  _exit(exit_environment);
}

std::terminate_handler terminate_otherwise = nullptr;
thread_local bool lacks_memory = false;

void on_lack_of_memory() {
  lacks_memory = true;
  throw std::bad_alloc();
}

[[noreturn]] void on_terminate() {
  try {
    if (std::exception_ptr const error = std::current_exception())
      std::rethrow_exception(error);
  } catch (std::bad_alloc const&) {
    end_by_force(out_of_memory);
  } catch (EnvironmentError const& error) {
    end_by_force(error.what());
  } catch (...) {
    lacks_memory = false;
  }
  if (lacks_memory)  // compilers call this without an exception where one is about to leave a function that must not throw
    end_by_force(out_of_memory);
  terminate_otherwise();  // an error of the program
  std::abort();
}

void on_exit_by_others() {
  if (!exit_is_meant)
    end_by_force("a library has ended the program; it has said why above, if it did");
}

}  // namespace

void interrupt_by(int signal) noexcept {
  int none = 0;
  interrupt_signal.compare_exchange_strong(none, signal);
  request_interrupt();
}

bool was_interrupted() noexcept {
  return interrupt_signal.load() != 0;
}

void ask_for_checkpoint() noexcept {
  asks_for_checkpoint = true;
}

bool checkpoint_is_asked() noexcept {
  return asks_for_checkpoint;
}

void forget_asked_checkpoint() noexcept {
  asks_for_checkpoint = false;
}

ExitCode interrupted_code() noexcept {
  int const signal = interrupt_signal.load();
  return signal != 0 ? static_cast<ExitCode>(128 + signal) : exit_interrupted;
}

void share_interrupt(Communicator& ranks) {
  // That of the lowest rank that has one.
  int const signal = combined(
      ranks, interrupt_signal.load(), [](int& found, int other) { found = found != 0 ? found : other; },
      Communicator::Order::of_ranks);
  int none = 0;
  if (signal != 0)
    interrupt_signal.compare_exchange_strong(none, signal);
}

ExitCode exit_code_of(std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (InputError const&) {
    return exit_usage;
  } catch (Interrupted const&) {
    return interrupted_code();
  } catch (...) {
    return exit_environment;
  }
}

Failure failure_of(Configuration const* configuration, std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (InputError const& input) {
    if (configuration != nullptr)
      return {configuration->locate(input), exit_usage};
    bool const tell_key = !input.key().empty() && dynamic_cast<ConfigError const*>(&input) == nullptr;
    return {(tell_key ? input.key() + ": " : "") + input.what(), exit_usage};
  } catch (EnvironmentError const& environment) {
    return {environment.what(), exit_environment};
  } catch (Interrupted const&) {
    return {"interrupted", interrupted_code()};
  } catch (std::bad_alloc const&) {
    return {out_of_memory, exit_environment};
  } catch (std::system_error const& of_system) {
    if (of_system.code() == std::errc::not_enough_memory)
      return {out_of_memory, exit_environment};
    if (of_system.code() == std::errc::resource_unavailable_try_again)
      return {"the system makes no more threads (limits are shown by 'ulimit -u' and 'ulimit -v'); --threads takes fewer",
              exit_environment};
    return {std::string("internal error, please report it: ") + of_system.what(), exit_environment};
  } catch (std::exception const& other) {
    return {std::string("internal error, please report it: ") + other.what(), exit_environment};
  }
}

void tell_failure(std::string const& message) {
  std::cout << std::flush;
  std::cerr << "poisson: error: " << message << std::endl;
}

int exit_code_of(Configuration const* configuration, std::function<int()> const& body) {
  try {
    return body();
  } catch (...) {
    Failure const failure = failure_of(configuration, std::current_exception());
    tell_failure(failure.message);
    return failure.code;
  }
}

ForcedEnd::ForcedEnd() {
  terminate_otherwise = std::set_terminate(on_terminate);
  std::set_new_handler(on_lack_of_memory);
  static_cast<void>(std::atexit(on_exit_by_others));  // what is registered later is called before
}

ForcedEnd::~ForcedEnd() {
  exit_is_meant = true;
}

ForcedEnd::OfRanks::OfRanks(Communicator& ranks) noexcept {
  ranks_of_now = &ranks;
}

ForcedEnd::OfRanks::~OfRanks() {
  ranks_of_now = nullptr;
}

void end_all(Communicator& ranks, ExitCode code) {
  exit_is_meant = true;
  ranks.end_all(code);
  _exit(code);
}

}  // namespace poisson::app
