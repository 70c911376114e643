#include "app/run/rank_run.hpp"

#include "app/config/config.hpp"

#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace poisson::app {

void require_same_configuration(RunConfig const& config, RankTeam& team) {
  auto const all = gather_texts(team.communicator(), resolved_yaml(config));
  team.together([&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw InputError("the ranks have different configurations: rank " + std::to_string(rank) +
                         " has another one than rank 0; give all of them the same file and options");
  });
}

bool has_blocks(RunConfig const& config) {
  auto const cells = config.problem.mesh.refined_cells();
  auto const& boundary = config.problem.boundary;
  bool const periodic = std::any_of(boundary.begin(), boundary.end(), [](auto const& condition) {
    return condition.type == assembly::BoundaryType::periodic;  // which couples nodes that are far from each other
  });
  return config.is_box() && config.problem.order == 1 && cells[0] >= 2 && cells[1] >= 2 && !periodic;
}

void require_runs_on_ranks(RunConfig const& config, int ranks) {
  if (ranks > 1 && config.solver.to_discretization && !has_blocks(config))
    throw InputError("solver.tolerance",
                     "discretization is for boxes of two cells or more in x and y, without periodic boundaries, "
                     "on several ranks; run it without mpirun");
}

}  // namespace poisson::app
