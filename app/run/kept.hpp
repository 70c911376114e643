#pragma once

#include "gpu/core/context.hpp"

#include <map>
#include <memory>

namespace poisson::app {

/// What a process keeps of a run for the runs that follow in it.
struct Kept {
  std::map<Backend, std::unique_ptr<Context>> contexts;  ///< null: not made yet
};

}  // namespace poisson::app
