#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace poisson::assembly {

/// Tables of an element: its functions and those of its map at the points of its inside and its faces. The parts of a mesh have
/// the same.
struct FluxTables {
  FluxTables(Space const& space, ReferenceElement const& element);
  PointTables shape, map;
  std::array<PointTables, 6> face_shape, face_map;
  std::array<std::vector<int>, 6> face_nodes;
};

/// Area of the boundary with each id, and the integral of -k du/dn over it: what flows out of the mesh there. `u` has space.n_dofs
/// values and solves the discrete problem.
///
/// Where du/dn is prescribed (Neumann), or a function of u (Robin), it is the integral of that. On Dirichlet boundaries it is the
/// sum of the residuals int k grad u . grad phi_i - int f phi_i - int g phi_i over their unknowns i, with the assembly's
/// quadrature, and not an integral of the gradient of u, which converges half as fast: see Carey, Chow and Seager, Approximate
/// boundary-flux calculations, Computer Methods in Applied Mechanics and Engineering 50 (1985). So all fluxes together equal the
/// integral of f up to the solver's residual. The residual of an unknown on several Dirichlet boundaries is divided among them:
/// each gets the integral of k du/dn phi_i over itself, and of the rest a share that goes with the integral of phi_i.
/// What a hanging node has goes to the unknowns that it depends on, by their weights, as in the assembly.
/// Surfaces inside the mesh: where they have Dirichlet or Neumann values, the flux is what leaves the domain there, of both sides,
/// so that all fluxes of these and of the boundaries equal the integral of f. Through one without a condition it is what goes from
/// the material with the lower id to that with the higher one; within a material to larger x, or y where the normal has no part
/// along x, or z (InnerFace). A node there has a residual of the cells on each side; what flows from side to side, and to Dirichlet
/// boundaries, adds up to these. So a material that such surfaces and boundaries enclose is in balance, too. At the rim of a
/// surface that ends inside the mesh the mean of both gradients counts, and on periodic boundaries. A surface with the id of a
/// boundary, and without a condition, is left out.
///
/// Nodes on periodic boundaries need those that they are tied to: add_periodic_fluxes. Threaded; the same bits for any number of
/// threads. Of residuals only those of unknowns with counted[i] != 0 count (empty: all): on a part of a mesh that has all cells
/// around these, the sums over parts are then those of the whole. Errors: InputError for values that a coefficient, source or
/// condition must not take. `u_low`: low parts of u, or empty. They count where k is so large that the differences of u are
/// rounding. `counted_cells`: by cell, whose faces count in areas, integrals, extremes, and where du/dn is prescribed (empty: all).
[[nodiscard]] BoundaryFluxes boundary_fluxes(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                             std::span<double const> u, std::span<std::uint8_t const> counted = {},
                                             std::span<double const> u_low = {}, std::span<std::uint8_t const> counted_cells = {});
/// The same with tables that are there.
[[nodiscard]] BoundaryFluxes boundary_fluxes(Space const& space, ReferenceElement const& element, FluxTables const& tables,
                                             ProblemData const& data, std::span<double const> u,
                                             std::span<std::uint8_t const> counted, std::span<double const> u_low,
                                             std::span<std::uint8_t const> counted_cells);

/// What the discrete problem has left at a solution.
struct SolutionResidual {
  /// int f phi_i + int g phi_i - int k grad u . grad phi_i for every unknown i, Dirichlet and tied unknowns included. The sum over
  /// all unknowns is what sources give and natural boundaries take.
  HostVector<double> values;
  double smallest_k = 0, largest_k = 0;  ///< at the assembly's points; of a tensor on its diagonal
};

/// The residual of u + u_low (n_dofs values each; u_low may be empty). Only differences of u within a cell count, so that rounding
/// is relative to what flows there, however large k is. Threaded; the same bits for any number of threads. On a part of a mesh the
/// values are those of the whole where all cells around an unknown are in it. Errors: those of boundary_fluxes.
[[nodiscard]] SolutionResidual solution_residual(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                                 std::span<double const> u, std::span<double const> u_low);

/// Adds the fluxes of the nodes on periodic boundaries of the whole mesh, in any order; each (node, boundary) once.
///
/// What leaves through one of two periodic boundaries enters through the other, node by node: a flow from a node to its image.
/// Where nodes have Dirichlet values, too, flows lead to these boundaries. The flows at a node add up to its residual. They are
/// those of the gradient of u with the least correction that does this; the square of a correction counts over the integral of phi.
/// So the fluxes of two periodic boundaries cancel, and Dirichlet boundaries have all of the residuals of nodes that are tied to
/// theirs.
void add_periodic_fluxes(std::span<PeriodicFlux const> of_whole, ProblemData const& data, BoundaryFluxes& to);

/// u (n_dofs values) and its flux on the boundary. The flux is that of the polynomials of the cells. Memory: of the size of the
/// boundary. The same bits for any number of threads. Errors: InputError for values that a coefficient must not take.
[[nodiscard]] BoundarySurface boundary_surface(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                               std::span<double const> u);

}  // namespace poisson::assembly
