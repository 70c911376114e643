#pragma once

#include "app/config/run_config.hpp"

namespace poisson::app {

/// The problem with the functions of its fields, whose files are opened. Throws InputError with the key path.
[[nodiscard]] assembly::ProblemSpec problem_of(RunConfig const& config);

}  // namespace poisson::app
