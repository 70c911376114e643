#include "app/run/exit_code.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <atomic>
#include <iostream>
#include <new>

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

int exit_code_of(Configuration const* configuration, std::function<int()> const& body) {
  auto const fail = [](std::string const& message, int code) {
    std::cout << std::flush;
    std::cerr << "poisson: error: " << message << std::endl;
    return code;
  };
  try {
    return body();
  } catch (InputError const& error) {
    if (configuration != nullptr)
      return fail(configuration->locate(error), exit_usage);
    bool const tell_key = !error.key().empty() && dynamic_cast<ConfigError const*>(&error) == nullptr;
    return fail((tell_key ? error.key() + ": " : "") + error.what(), exit_usage);
  } catch (EnvironmentError const& error) {
    return fail(error.what(), exit_environment);
  } catch (Interrupted const&) {
    return fail("interrupted", interrupted_code());
  } catch (std::bad_alloc const&) {
    return fail("out of memory; 'poisson check CONFIG' estimates what a configuration needs", exit_environment);
  } catch (std::exception const& error) {
    return fail(std::string("internal error, please report it: ") + error.what(), exit_environment);
  }
}

}  // namespace poisson::app
