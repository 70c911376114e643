#pragma once

#include "app/launch/team.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <vector>

namespace poisson::app {

struct Domain;

/// An unknown of a periodic boundary: u there is u at an unknown of any rank plus `offset`.
struct RankTie {
  std::int32_t unknown = 0;  ///< of Domain::around
  std::int32_t row = 0;      ///< of the one that it is tied to, on its rank
  int rank = 0;
  double offset = 0;
};

/// Finds what the periodic boundaries of the mesh tie, into mesh.ties; unknowns that are tied to a Dirichlet value get theirs.
/// Nodes on these boundaries are known to all ranks for a moment. Collective. Throws InputError where boundaries do not match.
void tie_unknowns(Domain& mesh, Team& team);

/// The system of this rank with u = C x + g of the ties: C^T A C x = C^T (f - A g). A tied unknown keeps its row, with the
/// diagonal entry alone.
struct TiedRows {
  RankRows rows;
  HostVector<std::int32_t> places;  ///< of the unknowns around, as Domain::places; a tied one has that of the other
  HostVector<double> offsets;       ///< of the unknowns around, g
  HostVector<double> rhs;           ///< of own rows
};
/// Makes the system with ties from the matrix and the right-hand side of mesh.around without ties, in which rows of own unknowns
/// are complete. Collective.
[[nodiscard]] TiedRows tie_rows(Domain const& mesh, Team& team, CsrMatrix const& assembled, HostVector<double> const& rhs);

/// C^T f of values f at own rows. Collective.
void restrict_to_free(Domain const& mesh, Team& team, HostVector<double>& f);

/// Holds the unknown with the lowest number, in a matrix that is singular but for rows of tied unknowns. The row and column of this
/// unknown keep the diagonal entry alone, and its right-hand side becomes 0, as on one rank. Collective.
void hold_first_unknown(Domain const& mesh, Team& team, RankRows& rows, Field& rhs);

}  // namespace poisson::app
