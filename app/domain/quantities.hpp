#pragma once

#include "app/domain/domain.hpp"
#include "app/launch/team.hpp"
#include "assembly/discretization.hpp"
#include "assembly/system/data_check.hpp"

#include <span>
#include <utility>

namespace poisson::app {

/// The quantities of the whole mesh, on every rank. `u_around` and `u`: of the unknowns of mesh.around and mesh.own; finite.
/// `u_low`: low parts of u_around, or empty (Discretization::quantities). Collective. Throws what Discretization::quantities
/// throws.
[[nodiscard]] assembly::Quantities quantities_of(Domain const& mesh, Team& team, std::span<double const> u_around,
                                                 std::span<double const> u, std::span<double const> u_low = {});

/// What the data of the problem are, in all own cells; the same on all ranks. Collective.
[[nodiscard]] assembly::DataFindings data_of(Domain const& mesh, Team& team, RunConfig const& config);

/// The smallest and the largest k of the whole mesh; u as above. Collective.
[[nodiscard]] std::pair<double, double> range_of_k(Domain const& mesh, Team& team, std::span<double const> u_around);

/// The norms of the error over the whole mesh, on every rank. Collective. Throws what Discretization::errors throws.
[[nodiscard]] assembly::ErrorNorms errors_of(Domain const& mesh, Team& team, std::span<double const> u);

}  // namespace poisson::app
