#pragma once

#include "assembly/space/space.hpp"

#include <span>

namespace poisson::assembly {

/// The integral of every basis function: their sum is the volume, and the integral of u is their product with u.
[[nodiscard]] HostVector<double> basis_integrals(Space const& space, ReferenceElement const& element);

/// u . v, summed in an order that does not depend on the threads.
[[nodiscard]] double ordered_dot(std::span<double const> u, std::span<double const> v);
[[nodiscard]] double ordered_sum(std::span<double const> u);

/// InputError for a cell whose map has a determinant that is not positive at the point.
[[noreturn]] void throw_inverted_cell(Point3 const& x, double determinant);

}  // namespace poisson::assembly
