#pragma once

#include <string>
#include <vector>

namespace poisson::app {

/// `poisson schema`: `words` are the arguments after it. Returns the exit code. Throws InputError.
int run_schema_command(std::vector<std::string> const& words);

}  // namespace poisson::app
