#include "app/run/system.hpp"

#include "app/run/assembled_system.hpp"
#include "app/run/rank_system.hpp"

#include <utility>

namespace poisson::app {

std::unique_ptr<System> assemble(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan, RunDevice& device) {
  if (mesh.is_whole())
    return std::make_unique<AssembledSystem>(*mesh.own, config, std::move(plan), device);
  return std::make_unique<RankSystem>(mesh, team, config, std::move(plan), device.context());
}

}  // namespace poisson::app
