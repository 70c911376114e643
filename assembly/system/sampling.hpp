#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"

#include <span>

namespace poisson::assembly {

[[nodiscard]] Extent extent_of(Space const& space);

/// u at the points of a lattice, NaN at those that no cell holds. Threaded; the same bits whatever the number of threads.
[[nodiscard]] HostVector<double> sample(Space const& space, ReferenceElement const& element, std::span<double const> u,
                                        Lattice const& lattice);

}  // namespace poisson::assembly
