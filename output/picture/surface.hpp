#pragma once

#include "output/grid.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace poisson::output {

using Vec3 = std::array<double, 3>;

/// The smallest box around the points of a mesh; points that are not finite are left out. Zero size when there are none.
struct BoundingBox {
  Vec3 low{}, high{};
};
[[nodiscard]] BoundingBox bounding_box(Mesh const& mesh);

struct BoundaryFace {
  std::int64_t cell = 0;
  int face = 0;  ///< 2 * axis + (0 at the cell's start, 1 at its end)
  friend bool operator==(BoundaryFace const&, BoundaryFace const&) = default;
};
/// The faces that only one cell has, ordered by cell and face. Where the mesh is no lattice, it needs 4 bytes for each node, and
/// memory for the faces that are open at a time, which are few when neighbours in the list of cells are neighbours in space.
[[nodiscard]] std::vector<BoundaryFace> boundary_faces(Mesh const& mesh);

/// The part of the mesh to be left out: where sign[a] * (x[a] - corner[a]) > 0 for all three axes.
struct Octant {
  Vec3 corner{};
  std::array<int, 3> sign{1, 1, 1};
};

struct SurfaceVertex {
  Vec3 position{};
  std::array<float, 3> reference{};  ///< place in the cell's unit cube: mesh lines are where one of them is 0 or 1
  double value = 0;
};
struct SurfaceTriangle {
  std::array<SurfaceVertex, 3> vertex;
  int plane = -1;  ///< the axis that is normal to the cut plane it lies on; -1: on the boundary of the mesh
};

/// The visible surface of a mesh without an octant: its boundary and the cuts of the three planes. Triangles may reach into or
/// beyond the octant's edges and faces; the renderer clips them. Each cell is divided into
/// `subdivisions`^3 parts, in which the cell's polynomials are evaluated, so that curved cells look curved.
[[nodiscard]] std::vector<SurfaceTriangle> cut_surface(Mesh const& mesh, std::span<double const> values, Octant const& octant,
                                                       std::span<BoundaryFace const> faces, int subdivisions);

}  // namespace poisson::output
