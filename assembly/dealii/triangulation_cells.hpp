#pragma once

#include "assembly/dealii/mesh.hpp"
#include "assembly/space/mesh_cells.hpp"

#include <cstdint>
#include <deal.II/base/types.h>
#include <deal.II/grid/tria_description.h>
#include <memory>
#include <vector>

/// The cells of a coarse mesh that is a triangulation. Internal to assembly/dealii.
namespace poisson::assembly {

class TriangulationCells : public MeshCells {
public:
  [[nodiscard]] virtual dealii::types::manifold_id manifold(std::int64_t cell) const = 0;
  [[nodiscard]] virtual dealii::types::manifold_id manifold_of_face(std::int64_t cell, unsigned face) const = 0;
  /// The lines of a cell whose manifold is not flat.
  [[nodiscard]] virtual std::vector<dealii::CellData<1>> curved_lines(std::int64_t cell) const = 0;
};

/// Those of mesh.triangulation, whose active cells are all on one level. The result refers to the triangulation, and to the shapes
/// of its cells.
[[nodiscard]] std::unique_ptr<TriangulationCells> cells_of_triangulation(Mesh const& mesh);

}  // namespace poisson::assembly
