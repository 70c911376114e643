#pragma once

#include "app/domain/domain.hpp"
#include "app/domain/solution_values.hpp"
#include "app/launch/team.hpp"
#include "assembly/discretization.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace poisson::app {

/// Where points lie in the parts of a mesh that ranks have. All functions are collective, and all ranks give the same points.
class DomainPoints {
public:
  DomainPoints(Domain const& mesh, Team& team, std::vector<std::array<double, 3>> points);

  /// Which points are in the mesh.
  [[nodiscard]] std::vector<bool> const& inside() const { return inside_; }
  /// How far each was moved onto the mesh.
  [[nodiscard]] std::vector<double> const& moved() const { return moved_; }
  /// Where k jumps, the sides that are taken, as on one rank. Cells have their numbers in the whole mesh.
  [[nodiscard]] std::vector<assembly::ChosenSide> const& sides() const { return sides_; }
  /// The solution at each point that is in the mesh, on the first rank: in the cell that has the lowest number in the whole mesh,
  /// or which `sides` says, as on one rank. It is collective.
  [[nodiscard]] std::vector<assembly::PointValues> values(SolutionValues const& u) const;

private:
  void find(std::vector<std::array<double, 3>> const& points);
  void take_sides();

  Domain const& mesh_;
  Team& team_;
  std::vector<assembly::LocatedPoint> points_;  ///< in own cells
  std::vector<assembly::ChosenSide> sides_;
  std::vector<bool> inside_;
  std::vector<double> moved_;
};

/// On the first rank: the solution at the points of a lattice, as Discretization::sample gives it on one rank; other ranks get
/// nothing. Collective. Throws EnvironmentError, Interrupted.
[[nodiscard]] HostVector<double> sample_of(Team& team, SolutionValues const& u, assembly::Lattice const& lattice);

/// The bounding box of the whole mesh. Collective.
[[nodiscard]] assembly::Extent extent_of(Domain const& mesh, Team& team);

}  // namespace poisson::app
