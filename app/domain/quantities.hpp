#pragma once

#include "app/domain/domain.hpp"
#include "app/domain/solution_values.hpp"
#include "app/launch/team.hpp"
#include "assembly/discretization.hpp"
#include "assembly/system/data_check.hpp"

#include <utility>

namespace poisson::app {

/// The quantities of the whole mesh, on every rank. Precondition: u is finite. Collective. Throws what Discretization::quantities
/// throws.
[[nodiscard]] assembly::Quantities quantities_of(Team& team, SolutionValues const& u);

/// What the data of the problem are, in all own cells; the same on all ranks. Collective.
[[nodiscard]] assembly::DataFindings data_of(Domain const& mesh, Team& team, RunConfig const& config);

/// The smallest and the largest k of the whole mesh. Collective.
[[nodiscard]] std::pair<double, double> range_of_k(Team& team, SolutionValues const& u);

/// The norms of the error over the whole mesh, on every rank. In a pure Neumann problem the mean of `exact` is taken off it.
/// Collective. Throws what Discretization::errors throws.
[[nodiscard]] assembly::ErrorNorms errors_of(Team& team, SolutionValues const& u, bool pure_neumann);

}  // namespace poisson::app
