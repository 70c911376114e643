#pragma once

#include "app/config/run_config.hpp"
#include "app/plan/assembly_plan.hpp"
#include "assembly/discretization.hpp"
#include "gpu/formats/cost.hpp"
#include "gpu/solvers/solver.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace poisson::app {

/// The most memory that every stage of a run takes on the rank with most unknowns, known before anything is refined or assembled.
/// A run on one rank is one in which this rank has the whole mesh.
struct MemoryForecast {
  struct OfStage {
    std::string name;  ///< as in result.json
    std::int64_t bytes = 0;
  };
  std::vector<OfStage> host;    ///< the program included
  std::vector<OfStage> device;  ///< empty with the cpu backend
  std::int64_t program = 0;     ///< bytes on the host for code and libraries, in every stage
  AssemblyPlan plan;
  FormatChoice format;
  PreconditionerKind preconditioner{};

  std::string division;  ///< of the mesh among ranks, with its name; empty for one rank
  std::int64_t rows = 0, ghosts = 0;
  std::size_t neighbors = 0;  ///< ranks that have the ghosts; 0: not known
  bool is_exact = true;       ///< the rows are; else they are those of parts of about equal size

  [[nodiscard]] static OfStage const& peak(std::vector<OfStage> const& stages);
  [[nodiscard]] OfStage const& host_peak() const { return peak(host); }
  [[nodiscard]] std::int64_t device_peak() const { return device.empty() ? 0 : peak(device).bytes; }
};

/// Forecasts the memory of a run on so many ranks, without its analyses. These refuse by themselves what does not fit. `problem` is
/// that of the configuration; for a box on several ranks with MeshSpec::shared. Errors: InputError for what is wrong with it.
[[nodiscard]] MemoryForecast forecast_memory(RunConfig const& config, Backend backend, assembly::CheckedProblem const& problem,
                                             int ranks);
/// The same; but where the format is `auto`, and `fits` says of such a run that it does not fit, that of a run in matrix_free, if
/// there is one and it fits. `fits` is asked on one rank only: several take what they have planned.
[[nodiscard]] MemoryForecast forecast_that_fits(RunConfig const& config, Backend backend, assembly::CheckedProblem const& problem,
                                                int ranks, std::function<bool(MemoryForecast const&)> const& fits);
/// Throws EnvironmentError where the machine has less memory than this stage of a run will need, on so many ranks at a time.
void require_host_memory_for(MemoryForecast::OfStage const& largest, int ranks);
/// Whether the machine, and the device where it is the backend, have memory for two such runs in this process: for one, and for
/// what it may leave for the next one. `context`: null where it is not made yet, or on the host.
[[nodiscard]] bool has_room_for_two(MemoryForecast const& forecast, Context const* context);

}  // namespace poisson::app
