#pragma once

#include "app/run/memory_forecast.hpp"
#include "gpu/core/context.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poisson::app {

/// What the rank with most unknowns of several takes, known before anything is refined or assembled.
struct RankForecast {
  assembly::MeshSummary mesh;
  std::string division;  ///< of the mesh, with its name
  std::int64_t rows = 0, ghosts = 0;
  std::size_t neighbors = 0;                    ///< ranks that have the ghosts; 0: not known
  bool is_exact = true;                         ///< the rows are; else what parts of about equal size have
  std::vector<MemoryForecast::OfStage> stages;  ///< on the host, the program included
  std::int64_t program = 0;
  std::int64_t on_device = 0;  ///< with the cuda backend
  std::string format;          ///< where it is known
  std::string assembly;        ///< AssemblyPlan::text
  PreconditionerKind preconditioner{};
};

/// `problem` is that of the configuration. Errors: InputError for what is wrong with it.
[[nodiscard]] RankForecast forecast_of_ranks(RunConfig const& config, Backend backend, int ranks,
                                             assembly::CheckedProblem const& problem);

}  // namespace poisson::app
