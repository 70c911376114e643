#pragma once

#include "assembly/space/constraints.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/lattice_problem.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace poisson::assembly {

/// The problem as gpu/elements assembles it, but for the number of couplings. Where the space is not numbered by lattices, every
/// cell is one, with all its nodes in the tables. Errors: InputError for values on the boundary that must not be, where the
/// solution is not unique, and where the tables would exceed 32-bit indices.
[[nodiscard]] LatticeProblem lattice_problem(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// Returns the cells, coordinates and k of that problem. Materials have the order of space.material_ids, here and below. Spaces
/// outlive what is returned.
[[nodiscard]] LatticeGeometry lattice_geometry(Space const& space, ProblemData const& data);

/// Returns the same of a rank's own cells, each of which is a lattice. Its unknowns are those of the space `around` them, in which
/// `in_around` has the places of the unknowns of `own`.
[[nodiscard]] LatticeGeometry lattice_geometry(Space const& own, Space const& around, std::span<std::int32_t const> in_around,
                                               ProblemData const& data);

/// Returns the problem of a rank's own pieces of lattices, which are the lattices of the space `around` (OwnPieces). Loads are
/// those of own rows, from all faces; the rest comes from own pieces only. `dirichlet` has the values of all unknowns around.
/// pure_neumann tells whether nothing here fixes the constant. Errors: InputError for values on the boundary that must not be.
[[nodiscard]] LatticeProblem lattice_problem_of_pieces(Space const& around, ReferenceElement const& element,
                                                       ProblemData const& data, DirichletValues const& dirichlet);

/// Returns the problem of a rank's own cells, which are the space `own`. Each cell is a lattice. `number` has for every unknown
/// here its place in `dirichlet`, which has the values of own unknowns, the rows, and then of ghosts; NaN where there is none.
/// Loads are those of own cells. Where `with_source` is false, f is 0. pure_neumann tells whether nothing here fixes the constant.
/// Errors: InputError for values on the boundary that must not be.
[[nodiscard]] LatticeProblem lattice_problem(Space const& own, ReferenceElement const& element, ProblemData const& data,
                                             std::span<std::int32_t const> number, std::span<double const> dirichlet,
                                             bool with_source);

/// Returns the problem of a rank that has no own cells, but may have unknowns of other ranks' cells.
[[nodiscard]] LatticeProblem problem_without_cells(int order, std::span<double const> dirichlet);

/// Bytes of a LatticeProblem; of `layout` its sizes. `shares_coordinates`: they are the mesh's, as its tables of rims
/// are, and count there.
[[nodiscard]] std::int64_t lattice_problem_bytes(LatticeLayout const& layout, bool shares_coordinates);

/// Entries of the matrix that Dirichlet values take out of the rows of unknowns with is_row(i) and out of their columns; those that
/// two of them share count half. Preconditions: the space has all cells around these unknowns; of a mesh of lattices only unknowns
/// on rims have values.
[[nodiscard]] std::int64_t emptied_entries(Space const& around, DirichletValues const& dirichlet,
                                           std::function<bool(std::int64_t)> const& is_row);

}  // namespace poisson::assembly
