#pragma once

#include "app/config.hpp"

#include <functional>

namespace poisson {

/// Calls `body` and returns its exit code; turns every exception into one "poisson: error: ..." on standard error and the exit code
/// that belongs to it. `configuration` (may be null) tells the place in the file that an error's key stands at.
int guarded(Configuration const* configuration, std::function<int()> const& body);

}  // namespace poisson
