#pragma once

#include "gpu/core/communicator.hpp"
#include "output/grid.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace poisson::output {

using Vec3 = std::array<double, 3>;
[[nodiscard]] inline double dot(Vec3 const& a, Vec3 const& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
[[nodiscard]] inline Vec3 cross(Vec3 const& a, Vec3 const& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
[[nodiscard]] inline Vec3 minus(Vec3 const& a, Vec3 const& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

/// The axis-aligned bounding box of the finite points of a mesh; of size zero when there are none.
struct BoundingBox {
  Vec3 low{}, high{};
};
[[nodiscard]] BoundingBox bounding_box(Mesh const& mesh);

/// The least and the largest value of what is shown.
struct ValueRange {
  double low = 0, high = 0;
  bool any = false;       ///< at least one finite value
  bool constant = false;  ///< up to rounding
};

/// The faces that belong to one cell only, ordered by cell and face. For a Grid that does not know them it takes 4 bytes per node,
/// and memory for the faces that were met once so far; these are few when cells that are close in the list are close in space.
[[nodiscard]] std::vector<BoundaryFace> boundary_faces(Mesh const& mesh);

/// A part of a mesh that one of several ranks has.
struct PicturePart {
  Communicator& ranks;
  std::span<BoundaryFace const> faces;  ///< those of the part's cells that are on the boundary of the whole mesh; ordered
  std::function<std::int64_t(std::int64_t node)> number_in_whole;  ///< of a node of the part
};

/// The part of space that is cut away: where sign[a] * (x[a] - corner[a]) > 0 for all axes a whose sign is not 0. Three signs: an
/// octant; one: a half-space; none: nothing is cut away.
struct CutAway {
  Vec3 corner{};
  std::array<int, 3> sign{1, 1, 1};

  [[nodiscard]] bool cuts() const { return sign[0] != 0 || sign[1] != 0 || sign[2] != 0; }
  /// How far beyond the plane of an axis, positive in the direction of its sign.
  [[nodiscard]] double beyond(Vec3 const& x, std::size_t axis) const { return sign[axis] * (x[axis] - corner[axis]); }
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

/// What a surface is colored by: `components` values at each node of a cell. Of three, the length of the vector counts, or one of
/// them. They may differ from cell to cell at a node that cells share.
struct CellField {
  int components = 1;
  /// Writes components * nodes_per_cell values of a cell: all of the first component, then those of the second.
  std::function<void(std::int64_t cell, double* out)> get;
  int component = -1;  ///< of three components the one that counts; -1: the length
};
/// A value for each point of the mesh, which must outlive the result; so must the values.
[[nodiscard]] CellField field_of_points(Mesh const& mesh, std::span<double const> values);

/// The cells that the planes of the cut may cross, ascending.
[[nodiscard]] std::vector<std::int64_t> cut_cells(Mesh const& mesh, CutAway const& cut);

/// The surface of a mesh without what is cut away: the boundary `faces`, and the sections of the cells `cut_through` (those of
/// cut_cells) with the planes of the cut. Triangles may extend into what is cut away; rasterize() clips them. Each cell is divided
/// into subdivisions^3 parts at whose vertices its polynomials are evaluated, so that curved cells look curved. With `towards`, the
/// direction to the viewer, triangles of the boundary are left out that cannot be seen: those that look away, since the surface is
/// closed by the sections, and those in what is cut away. The order of triangles does not depend on the number of threads.
[[nodiscard]] std::vector<SurfaceTriangle> cut_surface(Mesh const& mesh, CellField const& field, CutAway const& cut,
                                                       std::span<BoundaryFace const> faces,
                                                       std::span<std::int64_t const> cut_through, int subdivisions,
                                                       std::optional<Vec3> const& towards = std::nullopt);
/// Makes the surface of a mesh without what is cut away, from a value per point. It finds the cells that are cut through among all
/// cells.
[[nodiscard]] std::vector<SurfaceTriangle> cut_surface(Mesh const& mesh, std::span<double const> values, CutAway const& cut,
                                                       std::span<BoundaryFace const> faces, int subdivisions);

/// The nodes of a cell of the mesh in one direction, from 0 to its order.
[[nodiscard]] std::vector<double> nodes_of_a_cell(Mesh const& mesh);

}  // namespace poisson::output
