#pragma once

#include "output/grid.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace poisson::output {

using Vec3 = std::array<double, 3>;

/// The axis-aligned bounding box of the finite points of a mesh; of size zero when there are none.
struct BoundingBox {
  Vec3 low{}, high{};
};
[[nodiscard]] BoundingBox bounding_box(Mesh const& mesh);

struct BoundaryFace {
  std::int64_t cell = 0;
  int face = 0;  ///< 2 * axis + (0 at the cell's start, 1 at its end)
  friend bool operator==(BoundaryFace const&, BoundaryFace const&) = default;
};
/// The faces that belong to one cell only, ordered by cell and face. For a Grid it takes 4 bytes per node, and memory for the faces
/// that were met once so far; these are few when cells that are close in the list are close in space.
[[nodiscard]] std::vector<BoundaryFace> boundary_faces(Mesh const& mesh);

/// The part of space that is cut away: where sign[a] * (x[a] - corner[a]) > 0 for all three axes.
struct Octant {
  Vec3 corner{};
  std::array<int, 3> sign{1, 1, 1};
};

struct SurfaceVertex {
  Vec3 position{};
  std::array<float, 3> reference{};  ///< reference coordinates in [0, 1]^3; one that varies on a triangle is 0 or 1 on mesh lines
  double value = 0;
};
struct SurfaceTriangle {
  std::array<SurfaceVertex, 3> vertex;
  int plane = -1;  ///< axis (0, 1, 2) normal to the cut plane that it lies on; -1: it is on the boundary of the mesh
};

/// The surface of a mesh without an octant: the boundary `faces`, and the sections with the octant's three planes. Triangles may
/// extend into the octant; rasterize() clips them. Each cell is divided into subdivisions^3 parts at whose vertices its polynomials
/// are evaluated, so that curved cells look curved. `values` has a value per point.
[[nodiscard]] std::vector<SurfaceTriangle> cut_surface(Mesh const& mesh, std::span<double const> values, Octant const& octant,
                                                       std::span<BoundaryFace const> faces, int subdivisions);

}  // namespace poisson::output
