#pragma once

#include "assembly/dealii/mesh.hpp"
#include "assembly/image/labels.hpp"

#include <array>
#include <cstdint>
#include <deal.II/base/point.h>
#include <deal.II/base/types.h>
#include <deal.II/grid/tria_description.h>
#include <memory>
#include <set>
#include <vector>

/// The cells of a coarse mesh before some of them are taken out. Internal to assembly/dealii.
namespace poisson::assembly {

/// Cells by number. Vertices, faces and lines of a cell are in deal.II's order.
class MeshCells {
public:
  struct Neighbor {
    std::int64_t cell = -1;  ///< -1: the face is on the boundary
    unsigned face = 0;       ///< which of its faces it is
  };

  virtual ~MeshCells() = default;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual std::int64_t n_vertices() const = 0;
  [[nodiscard]] virtual dealii::Point<3> vertex(unsigned number) const = 0;
  [[nodiscard]] virtual std::set<unsigned> boundary_ids() const = 0;
  [[nodiscard]] virtual std::set<unsigned> materials() const = 0;  ///< that cells have

  [[nodiscard]] virtual std::array<unsigned, 8> vertices(std::int64_t cell) const = 0;
  [[nodiscard]] virtual unsigned material(std::int64_t cell) const = 0;
  [[nodiscard]] virtual double volume(std::int64_t cell) const = 0;
  /// The point at a place in [0, 1]^3.
  [[nodiscard]] virtual dealii::Point<3> at(std::int64_t cell, dealii::Point<3> const& place) const = 0;
  [[nodiscard]] virtual Neighbor neighbor(std::int64_t cell, unsigned face) const = 0;
  /// Precondition: the face has no neighbour.
  [[nodiscard]] virtual unsigned boundary_id(std::int64_t cell, unsigned face) const = 0;

  /// Manifolds; flat ones, and no lines, unless a mesh says more.
  [[nodiscard]] virtual dealii::types::manifold_id manifold(std::int64_t /*cell*/) const {
    return dealii::numbers::flat_manifold_id;
  }
  [[nodiscard]] virtual dealii::types::manifold_id manifold_of_face(std::int64_t /*cell*/, unsigned /*face*/) const {
    return dealii::numbers::flat_manifold_id;
  }
  /// The lines of a cell whose manifold is not flat.
  [[nodiscard]] virtual std::vector<dealii::CellData<1>> curved_lines(std::int64_t /*cell*/) const { return {}; }
};

/// Those of mesh.triangulation, whose active cells are all on one level. The result refers to `mesh`.
[[nodiscard]] std::unique_ptr<MeshCells> cells_of_triangulation(Mesh const& mesh);
/// Those of a box, of which there is no triangulation: that of all voxels of an image takes far more time and memory than that of
/// the cells that stay. `labels`: the materials, or null, where all are 0. Cells and vertices have x fastest. The result refers to
/// the arguments.
[[nodiscard]] std::unique_ptr<MeshCells> cells_of_box(BoxGrid const& box, LabelImage const* labels);

}  // namespace poisson::assembly
