#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"

#include <span>

namespace poisson::assembly {

/// The axis-aligned bounding box of all nodes.
[[nodiscard]] Extent extent_of(Space const& space);

/// u (n_dofs values) at the points of a lattice: lattice.size() values, NaN at points outside all cells. A point that several cells
/// contain is evaluated in the one with the lowest number. Threaded; the same bits for any number of threads.
[[nodiscard]] HostVector<double> sample(Space const& space, ReferenceElement const& element, std::span<double const> u,
                                        Lattice const& lattice);

}  // namespace poisson::assembly
