#pragma once

#include <string>
#include <vector>

namespace poisson::app {

/// `poisson bench svd`: `words` are the arguments after it. Returns the exit code. Throws InputError or EnvironmentError.
int run_svd_bench_command(std::vector<std::string> const& words);

}  // namespace poisson::app
