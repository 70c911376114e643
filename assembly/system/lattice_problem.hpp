#pragma once

#include "assembly/space/constraints.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/lattice_problem.hpp"

namespace poisson::assembly {

/// The problem as gpu/elements assembles it, but for the number of couplings. Where the space is not numbered by lattices, every
/// cell is one, with all its nodes in the tables. Errors: InputError for values on the boundary that must not be, where the
/// solution is not unique, and where the tables would exceed 32-bit indices.
[[nodiscard]] LatticeProblem lattice_problem(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// Of a rank's own pieces of lattices, from the part around its rows (PartOfSpace). Unknowns are numbered
/// as OwnPieces says; loads are those of own rows, from all faces, and the rest comes from own pieces only. `dirichlet`: of all
/// unknowns around. pure_neumann tells whether nothing here fixes the constant. Errors: InputError for values on the boundary that
/// must not be.
[[nodiscard]] LatticeProblem lattice_problem(Space const& around, ReferenceElement const& element, ProblemData const& data,
                                             Constraints const& dirichlet, OwnPieces const& own);

/// Entries of the matrix that Dirichlet values of the first n_rows unknowns take out of their rows and columns; those that two of
/// them share count half. Precondition: the space has all cells around these unknowns.
[[nodiscard]] std::int64_t emptied_entries(Space const& around, Constraints const& dirichlet, std::int64_t n_rows);

}  // namespace poisson::assembly
