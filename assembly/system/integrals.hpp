#pragma once

#include "assembly/space/space.hpp"

#include <functional>
#include <span>

namespace poisson::assembly {

/// w_i, the integral of basis function i over the mesh: sum_i w_i is the volume, and w . u the integral of u. n_dofs values.
/// `density`: of a material, times which it counts; null: 1.
[[nodiscard]] HostVector<double> basis_integrals(Space const& space, ReferenceElement const& element,
                                                 std::function<double(unsigned)> const& density = {});

/// u . v for vectors of one length. Summed in an order that does not depend on the number of threads.
[[nodiscard]] double ordered_dot(std::span<double const> u, std::span<double const> v);
/// The sum of u_i, in the same order.
[[nodiscard]] double ordered_sum(std::span<double const> u);

/// Subtracts the loads of a constant source, a multiple of `integrals` (basis_integrals), so that the sum of all loads is 0.
void subtract_constant_source(std::span<double> rhs, std::span<double const> integrals);

/// Throws the InputError for a cell whose map has a Jacobian determinant that is not positive at the point x.
[[noreturn]] void throw_inverted_cell(Point3 const& x, double determinant);

}  // namespace poisson::assembly
