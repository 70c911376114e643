#include "app/launch/exit_code.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <atomic>
#include <iostream>
#include <new>
#include <system_error>

namespace poisson::app {

namespace {

std::atomic<int> interrupt_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

void interrupt_by(int signal) noexcept {
  int none = 0;
  interrupt_signal.compare_exchange_strong(none, signal);
  request_interrupt();
}

bool was_interrupted() noexcept {
  return interrupt_signal.load() != 0;
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
    return {"out of memory; 'poisson check CONFIG' estimates what a configuration needs", exit_environment};
  } catch (std::system_error const& of_system) {
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

}  // namespace poisson::app
