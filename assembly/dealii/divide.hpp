#pragma once

#include "assembly/mesh/coarse_mesh.hpp"

#include <cstdint>
#include <vector>

namespace poisson::assembly {

/// As divide (mesh/coarse_mesh.hpp).
[[nodiscard]] std::vector<std::int32_t> divide_by_metis(Graph const& graph, int n_parts);

}  // namespace poisson::assembly
