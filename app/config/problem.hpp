#pragma once

#include "app/config/run_config.hpp"

#include <optional>
#include <string>

namespace poisson::app {

/// The problem with the functions of its fields, whose files are opened. Throws InputError with the key path.
[[nodiscard]] assembly::ProblemSpec problem_of(RunConfig const& config);

/// The value of an expression of the problem that has one everywhere; none where it may differ, as functions from files do.
/// Precondition: the expression is right, as it is where a mesh was made.
[[nodiscard]] std::optional<double> constant_value(assembly::ProblemSpec const& problem, std::string const& expression);

}  // namespace poisson::app
