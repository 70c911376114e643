#pragma once

#include "assembly/system/fields.hpp"
#include "output/grid.hpp"

namespace poisson::app {

/// A view of a discretisation's mesh for output/. Precondition: `mesh` outlives it.
[[nodiscard]] inline output::Mesh as_output(assembly::OutputMesh const& mesh) {
  if (auto const* const lattice = std::get_if<assembly::Lattice>(&mesh))
    return output::ImageGrid{lattice->low, lattice->spacing, lattice->n};
  if (auto const* const lattice = std::get_if<assembly::NodeLattice>(&mesh))
    return output::RectilinearGrid{lattice->order, {lattice->coordinates[0], lattice->coordinates[1], lattice->coordinates[2]}};
  auto const& nodes = std::get<assembly::NodeMesh>(mesh);
  return output::Grid{nodes.order, nodes.points, nodes.cells};
}

}  // namespace poisson::app
