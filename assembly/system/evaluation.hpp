#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <cstdint>
#include <span>

namespace poisson::assembly {

/// The integrals of f and |f|, by the quadrature of the assembly. Throws InputError where f is not finite.
[[nodiscard]] FieldSums source_integral(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// Gauss points per direction at which `exact` is evaluated: p + 3, and more on coarse meshes. They carry the quadrature and the
/// interpolation that `exact` is differentiated through, so that its gradient needs no evaluations of its own and none outside the
/// cell.
[[nodiscard]] int points_of_exact(Space const& space);

/// Returns the integral of data.exact over the mesh, and the volume. Precondition here and in error_norms: data.exact is set.
/// Throws InputError where it is not finite.
[[nodiscard]] ExactMean mean_of_exact(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// Norms of u - (exact - shift). `u` has space.n_dofs values, here and below. `shift` is the mean of `exact` in a pure Neumann
/// problem, else 0.
[[nodiscard]] ErrorNorms error_norms(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                     std::span<double const> u, double shift);

/// `counted` and `u_low` as for boundary_fluxes, whose values alone see low parts; with periodic boundaries all unknowns
/// count, or none. Precondition: u is finite.
[[nodiscard]] Quantities solution_quantities(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             std::span<double const> u, std::span<std::uint8_t const> counted = {},
                                             std::span<double const> u_low = {});

/// Finds the first node, by z, then y, then x, of those with u <= low, and the first of those with u >= high. Threaded; the same
/// for any number of threads.
[[nodiscard]] ExtremePlaces extreme_places(Space const& space, std::span<double const> u, double low, double high);

/// Nodes and cells for output. For orders 1 and 2 the nodes are those of the unknowns; for higher orders, equidistant nodes in each
/// reference cell replace the Gauss-Lobatto nodes, as VTK's Lagrange cells need, unless `nodes` says otherwise.
[[nodiscard]] OutputMesh output_mesh(Space const& space, ReferenceElement const& element,
                                     OutputNodes nodes = OutputNodes::equidistant);

/// -k grad u (3 values) at these nodes, in the numbering of output_mesh: the mean over the cells around a node, each with its own
/// polynomials and its own k. NaN where no cell around a node has a positive Jacobian there. Threaded; the same bits for any number
/// of threads. Errors: InputError for values that a coefficient must not take.
[[nodiscard]] HostVector<double> flux_at_nodes(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                               FieldValues<double> const& u, OutputNodes nodes = OutputNodes::equidistant);

/// u, exact - shift and the error on these nodes, coefficient, flux and material on the cells, with what the options ask for but
/// flux_points. `exact` may be missing.
[[nodiscard]] SolutionFields solution_fields(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             FieldValues<double> const& u, double shift,
                                             OutputNodes nodes = OutputNodes::equidistant, FieldOptions const& options = {});

}  // namespace poisson::assembly
