#pragma once

#include "assembly/mesh/counts.hpp"
#include "assembly/space/space.hpp"
#include "assembly/space/space_partition.hpp"

#include <string>
#include <vector>

/// What the first rank, which has made a mesh as a whole, sends to the others, as bytes.
namespace poisson::app {

/// Counts of a mesh that is no box.
[[nodiscard]] std::string packed(assembly::MeshCounts const& counts);
[[nodiscard]] assembly::MeshCounts unpacked_counts(std::string const& bytes);

/// What a rank has of the mesh.
struct MeshShare {
  assembly::PartOfSpace part;
  assembly::SpaceArrays around;  ///< of part.around_cells
};
[[nodiscard]] std::vector<char> packed(MeshShare const& share);
[[nodiscard]] MeshShare unpacked_share(std::vector<char> const& bytes);

}  // namespace poisson::app
