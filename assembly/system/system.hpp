#pragma once

#include "assembly/discretization.hpp"
#include "assembly/system/problem_data.hpp"
#include "assembly/space/space.hpp"

namespace poisson::assembly {

/// Seconds, for benchmarks.
struct AssemblyTimes {
  double pattern = 0, values = 0;
};

/// The system of a problem on a space. Errors: InputError for values that a coefficient, source or condition must not take, for
/// a mesh whose cells are turned inside out, and for problems without a solution or with several.
[[nodiscard]] LinearSystem assemble_system(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                           AssemblyTimes* times = nullptr);

/// Nothing fixes the constant: no Dirichlet condition, and no Robin condition with alpha > 0. Errors: as assemble_system.
[[nodiscard]] bool is_pure_neumann(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// The integral of every basis function: their sum is the volume, and the integral of u is their product with u.
[[nodiscard]] HostVector<double> basis_integrals(Space const& space, ReferenceElement const& element);

/// u . v, summed in an order that does not depend on the threads.
[[nodiscard]] double ordered_dot(std::span<double const> u, std::span<double const> v);
[[nodiscard]] double ordered_sum(std::span<double const> u);

/// InputError for a cell whose map has a determinant that is not positive at the point.
[[noreturn]] void throw_inverted_cell(Point3 const& x, double determinant);

}  // namespace poisson::assembly
