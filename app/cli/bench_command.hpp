#pragma once

#include <string>
#include <vector>

namespace poisson::app {

/// `poisson bench` with the words after it; returns the exit code. Throws InputError or EnvironmentError.
int run_bench_command(std::vector<std::string> const& words);

}  // namespace poisson::app
