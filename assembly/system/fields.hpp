#pragma once

#include "assembly/system/field_values.hpp"
#include "assembly/system/periodic_nodes.hpp"
#include "gpu/core/host_vector.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <variant>
#include <vector>

/// Results that are derived from a solution u, as plain data. Vectors in space are x, y, z.
namespace poisson::assembly {

/// Absolute norms of u - exact over the mesh.
struct ErrorNorms {
  double l2 = 0, h1_seminorm = 0;
  double linf = 0;  ///< the largest over quadrature points and nodes
};

/// The integral of the exact solution over the mesh, or a part of it, and the volume.
struct ExactMean {
  double integral = 0, volume = 0;
  [[nodiscard]] double mean() const { return integral / volume; }
};

/// A part of the boundary: its area, and the integral of -k du/dn over it, n outwards; the integral of u over it, and the least and
/// the largest value at its nodes.
struct BoundaryFlux {
  double area = 0, flux = 0;
  double integral_u = 0;
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();

  /// Adds another part of the boundary.
  void add(BoundaryFlux const& other) {
    area += other.area;
    flux += other.flux;
    integral_u += other.integral_u;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
  }
};

/// What boundary_fluxes finds.
struct BoundaryFluxes {
  std::map<unsigned, BoundaryFlux> boundaries;  ///< by boundary id
  std::map<unsigned, BoundaryFlux> surfaces;    ///< inside the mesh, by id
  std::vector<PeriodicFlux> periodic;  ///< what is missing there: of nodes on periodic boundaries, by number, then boundary
};

/// Where a point lies: in the cell with the lowest number that holds it, at these reference coordinates.
struct LocatedPoint {
  std::array<double, 3> x{}, reference{};
  std::int64_t cell = -1;            ///< -1: outside the mesh
  double moved = 0;                  ///< how far it was moved onto the mesh; x is the place there
  std::vector<std::int64_t> others;  ///< further cells that hold it, ascending: it is on their surface
};

/// A cell that holds a point on its surface.
struct PointSide {
  std::int64_t point = 0, cell = 0;
  unsigned material = 0;
  std::array<double, 6> k{};  ///< in this cell, at the point: xx, yy, zz, xy, xz, yz
  int surface = 0;  ///< the point is on a surface inside the mesh with a condition: at its first side, 1, or at its second, 2

  /// Tells by how much k differs on the other side, as a share of the larger one; more where a surface with a condition lies
  /// between them.
  [[nodiscard]] double difference(PointSide const& other) const;
};

/// The side of a point from which its gradient and flux are taken: the cell of the lowest material, then of the lowest number. So a
/// line in an interface has them all from one side, whatever the number of ranks.
struct ChosenSide {
  PointSide side;
  /// The side on which k differs most, or beyond a surface with a condition. None: the gradient does not jump there.
  std::optional<PointSide> other;
};
/// By point, of all sides in any order.
[[nodiscard]] std::vector<ChosenSide> choose_sides(std::vector<PointSide> sides);

/// What a solution is at a point.
struct PointValues {
  double u = 0, exact = 0;                   ///< exact: only where it is known, less the mean in a pure Neumann problem
  std::array<double, 3> gradient{}, flux{};  ///< grad u and -k grad u, in the cell that the point was located in
};

/// u in a material; as the members of Quantities with these names.
struct MaterialValues {
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();
  double integral_u = 0, energy = 0;
};

/// Figures that summarise a solution. Integrals are over the mesh, with the assembly's quadrature: its Gauss points per
/// direction.
struct Quantities {
  double min = 0, max = 0;                       ///< of u at the nodes
  std::array<double, 3> min_at{}, max_at{};      ///< of the nodes where they are taken, as most_low and least_high say, the lowest
                                                 ///< place by z, then y, then x
  double mean = 0, integral_u = 0;               ///< mean: the integral of u divided by the volume
  double energy = 0;                             ///< 1/2 int grad u . k grad u; boundary terms are not included
  std::map<unsigned, double> volumes;            ///< by material id
  std::map<unsigned, MaterialValues> materials;  ///< by material id
  std::map<unsigned, BoundaryFlux> boundaries;   ///< by boundary id; with surfaces inside the mesh that have a condition
  std::map<unsigned, BoundaryFlux> surfaces;     ///< inside the mesh, without a condition: what flows through them

  /// Values between these and the extremes count as equal to them: where values tie, rounding must not choose the place.
  [[nodiscard]] double most_low() const { return min + 1e-9 * (max - min); }
  [[nodiscard]] double least_high() const { return max - 1e-9 * (max - min); }
  /// Adds surfaces inside the mesh, some of which have conditions.
  void add_surfaces(std::map<unsigned, BoundaryFlux> const& found, std::set<unsigned> const& with_condition) {
    for (auto const& [id, surface] : found)
      (with_condition.contains(id) ? boundaries : surfaces)[id].add(surface);
  }
};

/// Gives u at nodes of a mesh that is a box, from wherever it is: at count[0] x count[1] x count[2] nodes from `first` on, x
/// fastest.
using NodesOfBox =
    std::function<void(std::array<std::int64_t, 3> const& first, std::array<std::int64_t, 3> const& count, HostVector<double>& u)>;

/// What cells or nodes of a box have, from `first` to before `end`.
struct RangeOfBox {
  std::array<std::int64_t, 3> first{}, end{};
};
/// What the faces of some cells at a side of a box have, and the flux of nodes inside of that side where u is prescribed, from
/// wherever u is. Loads of points are left out.
using InsideOfSide = std::function<BoundaryFlux(int side, RangeOfBox const& faces, RangeOfBox const& nodes)>;

/// Gives u at some unknowns, from wherever it is.
using ValuesOfUnknowns = std::function<HostVector<double>(std::span<std::int32_t const> unknowns)>;
/// Whether the residual of an unknown counts, called by threads. Null: those of all do.
using CountedUnknowns = std::function<bool(std::int64_t unknown)>;
/// Those among values at all unknowns, which outlive it.
[[nodiscard]] inline ValuesOfUnknowns values_among(std::span<double const> u) {
  return [u](std::span<std::int32_t const> unknowns) {
    HostVector<double> values;
    values.reserve(unknowns.size());
    for (std::int32_t const unknown : unknowns)
      values.push_back(u[static_cast<std::size_t>(unknown)]);
    return values;
  };
}

/// Places where u is low and where it is high; none where no node is.
struct ExtremePlaces {
  std::optional<std::array<double, 3>> low, high;

  /// Whether a is before b: by z, then y, then x.
  [[nodiscard]] static bool before(std::array<double, 3> const& a, std::array<double, 3> const& b) {
    return std::tie(a[2], a[1], a[0]) < std::tie(b[2], b[1], b[0]);
  }
  void add(ExtremePlaces const& other) {
    if (other.low && (!low || before(*other.low, *low)))
      low = other.low;
    if (other.high && (!high || before(*other.high, *high)))
      high = other.high;
  }
};

/// An axis-aligned box.
struct Extent {
  std::array<double, 3> low{}, high{};
  /// Becomes as large as a point needs.
  void add(std::array<double, 3> const& x) {
    for (std::size_t d = 0; d < 3; ++d) {
      low[d] = std::min(low[d], x[d]);
      high[d] = std::max(high[d], x[d]);
    }
  }
  /// Either may be inverted, as one without a point is.
  void add(Extent const& other) {
    for (std::size_t d = 0; d < 3; ++d) {
      low[d] = std::min(low[d], other.low[d]);
      high[d] = std::max(high[d], other.high[d]);
    }
  }
};

/// A boundary of the mesh, or a material.
struct MeshPart {
  std::int64_t count = 0;  ///< of its faces, or cells
  double size = 0;         ///< its area, or volume
  /// The bounding box of its nodes; inverted while it has none.
  Extent extent{{infinity, infinity, infinity}, {-infinity, -infinity, -infinity}};

private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
};
struct MeshParts {
  std::map<unsigned, MeshPart> boundaries, materials, surfaces;  ///< by id; the last are inside the mesh
};

/// n_x n_y n_z equidistant points low + (i h_x, j h_y, k h_z), numbered x fastest, with h the spacing; n >= 1 in each direction.
struct Lattice {
  std::array<double, 3> low{}, spacing{};
  std::array<std::int64_t, 3> n{1, 1, 1};

  [[nodiscard]] std::int64_t size() const { return n[0] * n[1] * n[2]; }
};

/// Nodes and cells for output; cells share nodes, each node is listed once. The mesh that they are made from outlives it.
struct NodeMesh {
  int order = 1;
  FieldValues<double> points;  ///< 3 per node: x, y, z
  /// (order + 1)^3 nodes per cell, lexicographic (x fastest) and equidistant in the reference cell.
  FieldValues<std::int64_t> cells;
};

/// The nodes (x_i, y_j, z_k) of a box, numbered x fastest; a cell takes `order` intervals in each direction.
struct NodeLattice {
  int order = 1;
  std::array<std::vector<double>, 3> coordinates;  ///< ascending
};

/// A box of equal cells of order 1 is the lattice of its nodes, with the cells between them, x fastest; one of a higher order, or
/// with graded cells, is a NodeLattice where the nodes of the unknowns are asked for. All else is a NodeMesh.
using OutputMesh = std::variant<Lattice, NodeLattice, NodeMesh>;

/// The nodes that results are given on. From order 3 on those of the unknowns are not equidistant in a cell, as VTK's Lagrange
/// cells need it. `unknowns` makes a difference on boxes only.
enum class OutputNodes { equidistant, unknowns };

/// The solution on an OutputMesh: "per node" and "per cell" in its numbering; the components of a cell are adjacent.
struct SolutionFields {
  FieldValues<double> u;             ///< per node
  FieldValues<double> exact, error;  ///< per node; empty without `exact`
  FieldValues<int> material;         ///< per cell
  FieldValues<double> coefficient;   ///< k per cell, at its centre: coefficient_components values
  int coefficient_components = 1;    ///< 1 (isotropic), 3 (along x, y, z), or 6: xx, yy, zz, xy, yz, xz, as VTK has them
  FieldValues<double> flux;          ///< -k grad u per cell, at its centre: 3 values
  FieldValues<double> gradient;      ///< grad u per cell, at its centre: 3 values; empty unless asked for
  FieldValues<double> flux_points;   ///< -k grad u per node, the mean over the cells around it: 3 values; empty unless asked for
};

/// How fields are wanted.
struct FieldOptions {
  bool flux_points = false, gradient = false;  ///< these two, too
  /// u and the discretisation outlive the fields, which may read them when they are asked for values. Else they stand by
  /// themselves.
  bool refer_to_u = false;
};

/// A face of a cell: 2 * direction + (0 at the cell's start, 1 at its end), in the cell's own frame.
struct CellFace {
  std::int64_t cell = 0;
  int face = 0;
};

/// The solution on the boundary of the mesh: (order x order) quadrangles between the nodes of every face of a cell.
struct BoundarySurface {
  std::vector<double> points;           ///< 3 per node: x, y, z; each node is listed once
  std::vector<std::int64_t> quads;      ///< 4 nodes each, counterclockwise seen from outside
  std::vector<std::int64_t> unknowns;   ///< per node
  std::vector<int> faces_around;        ///< per node: faces of cells that it is on
  std::vector<double> u;                ///< per node
  std::vector<double> flux;             ///< -k grad u per node, the mean over the faces around it: 3 values
  std::vector<int> boundary, material;  ///< ids, per quadrangle
  std::vector<double> outward_flux;     ///< the mean of -k du/dn over the face that the quadrangle is a part of
};

}  // namespace poisson::assembly
