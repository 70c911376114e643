#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <cstdint>
#include <map>
#include <span>

namespace poisson::assembly {

/// Area of the boundary with each id, and the integral of -k du/dn over it: what flows out of the mesh there. `u` has space.n_dofs
/// values and solves the discrete problem.
///
/// Where du/dn is prescribed (Neumann), or a function of u (Robin), it is the integral of that. On Dirichlet boundaries it is the
/// sum of the residuals int k grad u . grad phi_i - int f phi_i - int g phi_i over their unknowns i, with the assembly's
/// quadrature, and not an integral of the gradient of u, which converges half as fast: see Carey, Chow and Seager, Approximate
/// boundary-flux calculations, Computer Methods in Applied Mechanics and Engineering 50 (1985). So all fluxes together equal the
/// integral of f up to the solver's residual. The residual of an unknown on several Dirichlet boundaries is divided among them:
/// each gets the integral of k du/dn phi_i over itself, and of the rest a share that goes with the integral of phi_i. Threaded; the
/// same bits for any number of threads. Of residuals only those of unknowns with counted[i] != 0 count (empty: all): on a part of a
/// mesh that has all cells around these, the sums over parts are then those of the whole, before balance_periodic. Errors:
/// InputError for values that a coefficient, source or condition must not take.
[[nodiscard]] std::map<unsigned, BoundaryFlux> boundary_fluxes(Space const& space, ReferenceElement const& element,
                                                               ProblemData const& data, std::span<double const> u,
                                                               std::span<std::uint8_t const> counted = {});

/// What leaves through one of two periodic boundaries enters through the other. On edges that they share with others the part of
/// each is not known exactly; what the two miss goes to the Dirichlet boundaries there, so that the sum of all stays.
/// boundary_fluxes does it for a whole mesh.
void balance_periodic(ProblemData const& data, std::map<unsigned, BoundaryFlux>& boundaries);

/// u (n_dofs values) and its flux on the boundary. The flux is that of the polynomials of the cells. Memory: of the size of the
/// boundary. The same bits for any number of threads. Errors: InputError for values that a coefficient must not take.
[[nodiscard]] BoundarySurface boundary_surface(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                               std::span<double const> u);

}  // namespace poisson::assembly
