#pragma once

#include "app/analysis/effective.hpp"
#include "app/domain/domain.hpp"
#include "app/launch/run_options.hpp"
#include "app/launch/team.hpp"
#include "app/results/output.hpp"
#include "app/run/run_device.hpp"
#include "app/run/system.hpp"
#include "app/run/system_solver.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/field.hpp"

namespace poisson::app {

/// What the problem of a run has, which is one of those of analysis.effective. All outlive the call.
struct EffectiveParts {
  RunConfig const& config;
  RunOptions const& options;
  Domain const& mesh;
  Team& team;
  System const& system;
  SystemSolver& solver;  ///< it has solved, with keep_setup
  RunDevice& device;
  FieldPair const& u;  ///< the solution, at the unknowns of mesh.around
  assembly::Quantities const& quantities;
  bool frees_matrix;       ///< nobody needs that of the run any more
  OtherSolutions* others;  ///< gets those of the other periodic problems, at the unknowns of mesh.around; null: nobody needs them
};

/// Solves the other problems of analysis.effective, and gives the tensor from all of them. Periodic ones have the matrix of the run
/// and its preconditioner, if the run's problem is one; each other one has its own matrix, after the other. A problem that is not
/// solved to the tolerance gives its status to the record of the run; fluxes and energies that differ by more than the tolerance
/// lets through are a warning. Collective. Throws what System and SystemSolver throw; Interrupted.
[[nodiscard]] EffectiveResult effective_of_run(EffectiveParts const& parts);

}  // namespace poisson::app
