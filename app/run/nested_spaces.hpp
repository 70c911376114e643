#pragma once

#include "app/domain/domain.hpp"
#include "app/launch/team.hpp"
#include "gpu/preconditioners/options.hpp"

namespace poisson::app {

/// The spaces on larger and larger cells inside that of a mesh of lattices, of which every rank has a part. Collective.
/// `order`: that of the elements. Precondition: mesh.pieces.
[[nodiscard]] RankNestedSpaces nested_lattices(Domain const& mesh, Team& team, int order);

/// The space of elements of order 1 inside that of the mesh, of which every rank has a part. Collective.
[[nodiscard]] RankNestedSpaces space_of_order_one(Domain const& mesh, Team& team);

}  // namespace poisson::app
