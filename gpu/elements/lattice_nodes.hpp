#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/lattice_interior.hpp"

#include <cstdint>
#include <span>

namespace poisson {

class Context;

/// Makes the nodes of lattices in the context's memory: [(3 lattice + direction) m^3 + node], x fastest. `of_sides`: see
/// FillLattices; host memory. Throws OutOfMemoryError.
[[nodiscard]] Array<double> make_lattice_nodes(Context& context, LatticesToFill const& lattices, std::span<double> of_sides);

/// Places some unknowns on rims anew, in all of their copies: 3 coordinates each, of unknowns from `first` on. Waits.
void place_lattice_nodes(Context& context, LatticeLayout const& lattices, std::int64_t first, std::span<double const> coordinates,
                         Array<double>& nodes);

}  // namespace poisson
