#include "app/run/exit_code.hpp"

#include "gpu/core/error.hpp"

#include <iostream>
#include <new>

namespace poisson::app {

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
    return fail("interrupted", exit_not_converged);
  } catch (std::bad_alloc const&) {
    return fail("out of memory; 'poisson check CONFIG' estimates what a configuration needs", exit_environment);
  } catch (std::exception const& error) {
    return fail(std::string("internal error, please report it: ") + error.what(), exit_environment);
  }
}

}  // namespace poisson::app
