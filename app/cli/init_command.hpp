#pragma once

#include <string>
#include <vector>

namespace poisson::app {

/// `poisson init`: `words` are the arguments after it. Returns the exit code. Throws InputError or EnvironmentError.
int run_init_command(std::vector<std::string> const& words);

}  // namespace poisson::app
