#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/estimates.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <span>

/// A proven bound of the error of a solution in the energy norm, from a flux that is in balance.
namespace poisson::assembly {

/// A flux sigma near -k grad u with div sigma = f, but for what polynomials of order p leave of f, whose part across a face leaves
/// one cell and enters the next. In each cell it is a Raviart-Thomas function of degree p: the component along direction d of the
/// reference cell has degree p + 1 in d and p in the others.
struct EquilibratedFlux {
  int order = 0;
  HostVector<double> coefficients;  ///< of each cell, of the functions that equilibrated_flux.cpp describes
  ErrorIndicators bound;            ///< (int k |grad (u - exact)|^2)^1/2 is no larger than the root of the sum of its squares
  /// sigma at a point of the reference cell.
  [[nodiscard]] Point3 at(Space const& space, ReferenceElement const& element, std::int64_t cell, Point3 const& reference) const;
};

/// Finds it for the Galerkin solution u (n_dofs values), by one small problem around every vertex: of the fluxes with
/// div sigma_a = psi_a f - grad psi_a . k grad u, and none where psi_a is 0 on a face, the one nearest to -psi_a k grad u in the
/// norm by 1/k. psi_a is the hat function of vertex a, trilinear in each cell and continuous also where nodes hang; the sum of the
/// sigma_a is sigma (Braess and Schoeberl, Equilibrated residual error estimator for edge elements, Mathematics of Computation 77
/// (2008); Ern and Vohralik, Polynomial-degree-robust a posteriori estimates, SIAM Journal on Numerical Analysis 53 (2015)).
///
/// The error is no larger than the norm of sigma + k grad u (Prager and Synge, Approximations in elasticity based on the concept of
/// function space, Quarterly of Applied Mathematics 5 (1947)), and of what is left of the balance: in each cell by the inequality
/// of Poincare (Payne and Weinberger, An optimal Poincare inequality for convex domains, Archive for Rational Mechanics and
/// Analysis 5 (1960)), where f or the given flux is no polynomial; its largest value at points is taken. The mean that is left, by
/// the tolerance of the solver and by quadrature, is led from cell to cell to the nearest boundary where u is given. So no step
/// relies on u being solved for exactly. bound.why_no_bound says what is not proven: see docs/usage/adaptive.md.
///
/// Threaded; the same bits for any number of threads. Bytes: 64 (6 (p + 1)^2 + 1) a cell, and 8 of each coefficient. Precondition:
/// space.local is there. Errors: InputError where f or given values are not finite.
[[nodiscard]] EquilibratedFlux equilibrated_flux(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                                 std::span<double const> u);

}  // namespace poisson::assembly
