#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {

class Space;
struct ProblemData;
struct ReferenceElement;

/// What the data of a problem are like at the Gauss points of a mesh, or of a part of one: values that jump within cells, which the
/// quadrature does not see, and the ranges that bound the solution.
struct DataFindings {
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  /// Cells, or faces, in which a value differs by more than a factor of two between neighbouring Gauss points.
  struct Jumps {
    double count = 0;
    std::array<double, 3> where{};   ///< in one of them
    double integral = 0, finer = 0;  ///< of a Neumann or Robin value over its boundary: as assembled, and by a finer quadrature
    std::int32_t dirichlet = 0;      ///< of a Dirichlet value
    /// Of a value that is not constant, over a sample of the faces: as assembled, and by many points; the integral of its size, and
    /// the sum of the differences on faces.
    double sampled = 0, sampled_finer = 0, sampled_size = 0, sampled_difference = 0;
    double sampled_area = 0, sampled_low = infinity, sampled_high = -infinity;  ///< of a Dirichlet value
    /// How much a Dirichlet value varies: the integral above its least value, or below its largest one, whichever is less.
    [[nodiscard]] double variation() const;
    void add(Jumps const& part);
  };
  /// Cells with values of k between the Gauss points that are far from those at the points, among those that were looked at.
  struct Unseen {
    double count = 0, looked_at = 0;
    std::array<double, 3> where{};  ///< in one of them
    void add(Unseen const& part);
  };
  /// Least and largest values.
  struct Ranges {
    double dirichlet_low = infinity, dirichlet_high = -infinity;
    double inflow_low = 0, inflow_high = 0;  ///< of constant sources, of Neumann values, and of point and line sources
    std::int32_t known = 1;                  ///< no Robin or periodic condition, and no source that is not constant
  };
  std::vector<Jumps> jumps;  ///< of k, of f, then of the value of every condition
  Unseen unseen;
  Ranges ranges;
  /// The sum of the loads of a source, and the part of it that is at unknowns with Dirichlet values. Point sources come first, then
  /// line sources.
  struct Loads {
    double all = 0, lost = 0;
  };
  std::vector<Loads> sources;
  /// Nodes at which two conditions hold u at different values, the conditions, and one of the nodes.
  struct Meeting {
    double count = 0;
    std::array<double, 3> where{};
    std::array<double, 2> values{};
    std::array<std::int32_t, 2> conditions{};
    double stiffness = 0;  ///< alpha h / k there, h as in check_nodes; of Robin conditions
    void add(Meeting const& part);
  };
  Meeting meeting;        ///< of Dirichlet conditions
  Meeting robin_meeting;  ///< of a Robin condition with another one, or with a Dirichlet condition
  /// Of a Dirichlet condition on both sides of a periodic one, which comes second in `conditions`: nodes of the first side, u
  /// there, and u at the image less the jump.
  Meeting periodic_meeting;

  /// Adds the findings of another part of the mesh.
  void add(DataFindings const& part);
  /// Warnings, each with the key that it is about. The configuration has so many conditions and point sources.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> warnings(std::size_t n_conditions, std::size_t n_points) const;
  /// The warning that u, in [low, high], leaves what its boundary values and the signs of the sources allow; empty where it does
  /// not.
  [[nodiscard]] std::string range_warning(double low, std::array<double, 3> const& low_at, double high,
                                          std::array<double, 3> const& high_at) const;
};

/// Looks at the data at the Gauss points, and at a sample of points between them. k is compared where it is not constant. f and
/// boundary values are compared only where
/// their expressions can jump, and such a jump must stay one between points as near as rounding allows, since smooth functions may
/// cross 0 anywhere. Meshes of many cells are sampled, and counts are then estimates. Findings of a part of a mesh are without
/// `sources` and meetings: see check_nodes. Threaded; the same result for any number of threads.
[[nodiscard]] DataFindings check_data(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// Adds what sources lose at unknowns on Dirichlet faces, and where two conditions meet that hold u at different values; on a box,
/// and on a mesh as a whole, also where Dirichlet values on both sides of a periodic condition differ by another number than its
/// jump. A Robin condition does so where alpha h / k is large: h is the thickness of a cell, over the order of elements. Only
/// unknowns for which counted(i) holds count (none: all). On parts that have all cells around these, the findings add up to those
/// of the whole. Precondition: found.ranges are those of the whole.
void check_nodes(Space const& space, ReferenceElement const& element, ProblemData const& data,
                 std::function<bool(std::int64_t unknown)> const& counted, DataFindings& found);

}  // namespace poisson::assembly
