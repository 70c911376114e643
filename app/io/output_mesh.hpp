#pragma once

#include "assembly/system/fields.hpp"
#include "output/grid.hpp"

#include <cstdint>
#include <variant>

namespace poisson::app {

/// A view of a discretisation's mesh for output/. Precondition: `mesh` outlives it, as the discretisation does.
[[nodiscard]] inline output::Mesh as_output(assembly::OutputMesh const& mesh) {
  if (auto const* const lattice = std::get_if<assembly::Lattice>(&mesh))
    return output::ImageGrid{lattice->low, lattice->spacing, lattice->n};
  if (auto const* const lattice = std::get_if<assembly::NodeLattice>(&mesh))
    return output::RectilinearGrid{lattice->order, {lattice->coordinates[0], lattice->coordinates[1], lattice->coordinates[2]}};
  auto const& nodes = std::get<assembly::NodeMesh>(mesh);
  output::Grid grid{nodes.order, {}, {}};
  if (nodes.points.fill()) {
    grid.make_points = nodes.points.fill();
    grid.n_made_points = static_cast<std::int64_t>(nodes.points.size());
  } else {
    grid.points = nodes.points.all();
  }
  grid.make_cells = nodes.cells.fill();
  grid.n_made_cells = static_cast<std::int64_t>(nodes.cells.size());
  return grid;
}

}  // namespace poisson::app
