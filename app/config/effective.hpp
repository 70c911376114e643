#pragma once

#include "app/config/run_config.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace poisson::app {

/// Gives the configuration the boundary conditions of one problem of analysis.effective: u - (the coordinate in this direction) is
/// periodic, or u is 0 and the length of the box on the two sides of this direction, and the others are insulated. Precondition:
/// the mesh is a box, whose coordinates are known.
void set_effective_problem(RunConfig& config, bool periodic, Direction direction);

/// The first cells of the sub-volumes of a box of so many cells, all different, uniformly distributed. With more sub-volumes the
/// first ones are the same. Precondition: there are so many places.
[[nodiscard]] std::vector<std::array<std::int64_t, 3>> sub_volume_places(EffectiveSpec::SubVolumes const& spec,
                                                                         std::array<std::int64_t, 3> const& cells);

}  // namespace poisson::app
