#include "app/launch/same_configuration.hpp"

#include "app/config/config.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace poisson::app {

void require_same_configuration(RunConfig const& config, Team& team) {
  if (team.is_alone())
    return;
  std::string const mine = resolved_yaml(config);
  int const differs = -max_over(team.communicator(), -(team.of_first(mine) != mine ? team.rank() : team.size()));
  team.together([&] {
    if (differs < team.size())
      throw InputError("the ranks have different configurations: rank " + std::to_string(differs) +
                       " has another one than rank 0; give all of them the same file and options");
  });
}

}  // namespace poisson::app
