#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/estimates.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// Estimates of the error of a solution on a mesh that was refined locally, cell by cell.
namespace poisson::assembly {

/// Estimates the error of u (n_dofs values). With `dual`, the solution z of the problem whose load is `of_dual`, also what the
/// error changes the target J by, which that load is: the sum of the residuals of u times the estimated error of z on each cell, a
/// form of Becker and Rannacher's dual weighted residuals (Acta Numerica 10 (2001)). Of `Estimator::residual` only squares depend
/// on the choice; Estimator::equilibrated knows no dual. What the rule of the assembly misses of the data, and u_h of Dirichlet
/// values, counts by z as well. Jumps of k: the share of a jump that a cell gets goes with its k, so that
/// the estimate does not grow with k_1 / k_2. Threaded; the same bits for any number of threads. Preconditions: space.local is
/// there. Errors: those of boundary_fluxes.
[[nodiscard]] ErrorIndicators estimate_error(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             Estimator estimator, std::span<double const> u, std::span<double const> dual = {},
                                             LoadOfEstimate const& of_dual = {});

/// (int k |grad (u - exact)|^2)^1/2. Preconditions: data.exact is there. Errors: InputError where it is not finite.
[[nodiscard]] double energy_of_error(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                     std::span<double const> u);

/// The right-hand side of the dual problem of a load: l(phi_i) for every unknown, those of hanging nodes by themselves; with
/// `lifted`, values at all unknowns, less a(lifted, phi_i).
[[nodiscard]] HostVector<double> load_vector(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             LoadOfEstimate const& load, std::span<double const> lifted = {});

/// u (n_dofs values) of a mesh at the nodes of the mesh of the next refinement cycle. Precondition: `to` was made of `from` by one
/// more cycle.
[[nodiscard]] HostVector<double> transferred(Space const& from, std::span<double const> u, Space const& to,
                                             ReferenceElement const& element);

/// The cells whose indicators, the largest first, have the share `fraction` of the sum (Doerfler, A convergent adaptive algorithm
/// for Poisson's equation, SIAM Journal on Numerical Analysis 33 (1996), where that is theta^2); or, `of_number`, so many of the
/// cells. Those that equal the last of them but for 1e-6 count, too, so that a symmetric problem has a symmetric mesh. Ascending.
[[nodiscard]] std::vector<std::int32_t> largest_cells(std::span<double const> indicators, double fraction, bool of_number);

}  // namespace poisson::assembly
