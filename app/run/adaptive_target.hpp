#pragma once

#include "app/config/run_config.hpp"
#include "app/results/quantities.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/host_vector.hpp"

namespace poisson::app {

/// The dual problem of a target (problem.mesh.adaptive.target): to first order an error of u changes the target by what it does to
/// this load.
struct DualProblem {
  assembly::LoadOfEstimate load;
  HostVector<double> lifted;  ///< the dual solution at unknowns with Dirichlet values; 0 elsewhere
  double energy = 0;          ///< the target's derivative with respect to the energy
};

/// Throws InputError for a target that there is not, or whose error is not known, and for an estimator that does not know the mesh,
/// as far as the counts of a mesh say. Precondition: the configuration asks for adaptive refinement.
/// `made`: the mesh was made, and the names of its places are known.
void check_refinement(RunConfig const& config, assembly::MeshSummary const& mesh, bool made = false);

/// The dual problem of a target that is not the energy norm, on a whole mesh. A quantity of the user's own is a function of others,
/// whose derivatives are central differences. Throws InputError where the error is not known, or there is none.
[[nodiscard]] DualProblem dual_problem_of(RunConfig const& config, assembly::Discretization const& mesh,
                                          NamedQuantities const& quantities);

}  // namespace poisson::app
