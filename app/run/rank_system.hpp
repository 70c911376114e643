#pragma once

#include "app/run/rank_mesh.hpp"
#include "app/run/rank_team.hpp"
#include "assembly/space/constraints.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_rows.hpp"

#include <optional>
#include <span>

namespace poisson::app {

/// The system of a problem on several ranks, each with its rows. All functions are collective.
class RankSystem {
public:
  /// Assembles it. The parts of `mesh` get the mean of the exact solution in a pure Neumann problem. Errors: as
  /// Discretization::assemble. `mesh` outlives this.
  RankSystem(RankMesh& mesh, RankTeam& team);

  RankRows rows;                               ///< to be taken
  HostVector<double> b;                        ///< of own rows
  double integral_f = 0;                       ///< of all sources, over the whole mesh
  std::optional<double> compatibility_defect;  ///< pure Neumann only, as in LinearSystem

  [[nodiscard]] bool pure_neumann() const { return compatibility_defect.has_value(); }
  /// u at the unknowns of mesh.around, from the solution x of own rows. In a pure Neumann problem the mean of u is 0.
  [[nodiscard]] HostVector<double> reconstruct(std::span<double const> x) const;

private:
  void assemble();
  void make_compatible();

  RankMesh& mesh_;
  RankTeam& team_;
  assembly::Constraints constraints_;
  bool anchored_ = false;       ///< a condition here fixes the constant
  HostVector<double> weights_;  ///< pure Neumann only: the integrals of the basis functions of own rows
  double volume_ = 0;           ///< their sum over all ranks
};

}  // namespace poisson::app
